"""The fields of a response: sysparm_fields, sysparm_view, and both together."""

from typing import Any

import pytest

from accounts.models import User
from tableapi.database import catalogue_loader
from tests.tableapi.world import api, data_of, error_of, field, open_table, record, rule, table, view

pytestmark = pytest.mark.django_db


@pytest.fixture
def lamp(db: Any) -> str:
    """A lamp with a maker and its country; only buyers may read the price."""
    table("country")
    field("country", "name")
    table("maker")
    field("maker", "name", is_display=True)
    field("maker", "country", target="country")
    table("device")
    field("device", "name", is_display=True)
    field("device", "price", "integer")
    field("device", "maker", target="maker")
    for name in ("country", "maker", "device"):
        open_table(name)
    rule("read", "device", "price", roles=["buyer"])
    country = record("country", name="Finland")
    return record("device", name="Lamp", price=5, maker=record("maker", name="Lux", country=country))


def read_one(user: User, lamp: str, **options: Any) -> Any:
    """The response for the record; fails if a list of only this record differs."""
    record_response, list_response = (api(user).get(path, **options) for path in (f"device/{lamp}", "device"))
    assert record_response.get("X-Ignored-Fields") == list_response.get("X-Ignored-Fields")
    assert record_response.status_code == list_response.status_code
    assert record_response.content == list_response.content
    return record_response


class TestFields:
    def test_fields_are_returned_in_the_requested_order(self, lamp: str, bob: User):
        response = read_one(bob, lamp, fields="name,sys_id, sys_version ,name")
        assert list(data_of(response)[0].items()) == [("name", "Lamp"), ("sys_id", lamp), ("sys_version", 0)]
        assert "X-Ignored-Fields" not in response

    def test_dot_walked_field_is_named_by_its_path(self, lamp: str, bob: User):
        response = read_one(bob, lamp, fields="maker.country.name,maker.name")
        assert data_of(response) == [{"maker.country.name": "Finland", "maker.name": "Lux"}]

    def test_path_can_end_at_a_reference(self, lamp: str, bob: User):
        (record,) = data_of(read_one(bob, lamp, fields="maker.country", exclude_reference_link=1, display_value=1))
        assert record == {"maker.country": "Finland"}
        (record,) = data_of(read_one(bob, lamp, fields="maker.country"))
        reference = record["maker.country"]
        assert reference["link"] == f"http://testserver/rest/v1/table/country/{reference['value']}"

    def test_empty_reference_gives_null_paths(self, lamp: str, bob: User):
        other_device = record("device", name="Stone")
        response = api(bob).get(f"device/{other_device}", fields="maker,maker.name,maker.country,maker.country.name")
        assert data_of(response) == [
            {"maker": None, "maker.name": None, "maker.country": None, "maker.country.name": None}
        ]

    def test_dangling_reference_shows_its_id_and_null_paths(self, lamp: str, bob: User):
        # System columns keep the id of a deleted user.
        from tests.tableapi.designs import query_rows

        query_rows("UPDATE records.device SET sys_created_by = '179999999900000001'")
        response = api(bob).get(
            f"device/{lamp}",
            fields="sys_created_by,sys_created_by.login",
            display_value="all",
            exclude_reference_link=1,
        )
        assert data_of(response) == [
            {
                "sys_created_by": {"value": "179999999900000001", "display_value": None},
                "sys_created_by.login": {"value": None, "display_value": None},
            }
        ]

    def test_unknown_and_unreadable_fields_are_omitted(self, lamp: str, bob: User):  # B07
        response = read_one(bob, lamp, fields="name,price,nothing,maker.nothing,name.x,nothing.name")
        assert data_of(response) == [{"name": "Lamp"}]
        assert response["X-Ignored-Fields"] == "price,nothing,maker.nothing,name.x,nothing.name"
        assert "price" not in data_of(read_one(bob, lamp))[0]

    def test_readable_column_is_returned(self, lamp: str, alice: User):
        response = read_one(alice, lamp, fields="name,price")
        assert data_of(response) == [{"name": "Lamp", "price": 5}] and "X-Ignored-Fields" not in response

    @pytest.mark.parametrize(
        "fields", ["price", "nothing", "price,nothing", "maker.nothing", "A", "1", "sys_id.x", "é"]
    )
    def test_only_unknown_fields_are_refused(self, lamp: str, bob: User, fields: str):  # B08
        response = read_one(bob, lamp, fields=fields)
        assert error_of(response) == (400, "no_fields", "sysparm_fields")
        assert response.content == read_one(bob, lamp, fields="surely_not").content

    def test_header_lists_only_valid_names(self, lamp: str, bob: User):
        response = read_one(bob, lamp, fields='name,a"b,A,é,good_1.x,x\r\nSet-Cookie: a=b,<b>,' + "y" * 256)
        assert data_of(response) == [{"name": "Lamp"}]
        assert response["X-Ignored-Fields"] == "good_1.x"
        assert "Set-Cookie" not in response

    def test_header_lists_at_most_twenty_names(self, lamp: str, bob: User):
        names = [f"x{number}" for number in range(30)]
        assert read_one(bob, lamp, fields=",".join(["name", *names]))["X-Ignored-Fields"] == ",".join(names[:20])

    def test_path_with_more_than_five_hops_is_unknown(self, lamp: str, bob: User):  # B42
        field("device", "next", target="device")
        deep_path = "next." * 5 + "name"
        response = read_one(bob, lamp, fields=f"name,{deep_path},next.{deep_path}")
        assert data_of(response) == [{"name": "Lamp", deep_path: None}]
        assert response["X-Ignored-Fields"] == f"next.{deep_path}"

    def test_at_most_twelve_references_are_joined(self, lamp: str, bob: User):  # B42
        for number in range(13):
            field("device", f"r{number}", target="device")
        paths = [f"r{number}.name" for number in range(13)]
        assert len(data_of(read_one(bob, lamp, fields=",".join(paths[:12])))[0]) == 12
        too_many_error = (400, "invalid_parameter", "sysparm_fields")
        assert error_of(read_one(bob, lamp, fields=",".join(paths))) == too_many_error
        fields_and_query = {"fields": ",".join(paths[:6]), "query": "^".join(f"{path}ISEMPTY" for path in paths[6:])}
        assert error_of(api(bob).get("device", **fields_and_query)) == too_many_error
        # Two paths over one reference need one join.
        assert data_of(read_one(bob, lamp, fields=",".join([*paths[:12], "r1.price", "r1.sys_id"])))
        for query in ("PATHISEMPTY", "nameSAMEASPATH", "nameISEMPTY^ORDERBYPATH"):
            query = "^".join(query.replace("PATH", path) for path in paths)
            assert error_of(api(bob).get("device", query=query)) == (400, "invalid_query", "sysparm_query"), query
        assert len(data_of(api(bob).get("device", query="^".join(f"{path}ISEMPTY" for path in paths[:12])))) == 1

    def test_long_path_name_is_not_truncated(self, lamp: str, bob: User):
        name = "n" * 63
        field("maker", name)
        field("device", "next", target="device")
        paths = [f"next.maker.{name}", f"maker.{name}", "name"]
        (record,) = data_of(read_one(bob, lamp, fields=",".join(paths)))
        assert record == {paths[0]: None, paths[1]: None, "name": "Lamp"}

    def test_at_most_five_hundred_fields_are_accepted(self, lamp: str, bob: User):
        names = [f"x{number}" for number in range(500)]
        assert error_of(read_one(bob, lamp, fields=",".join(["name", *names]))) == (
            400,
            "invalid_parameter",
            "sysparm_fields",
        )
        assert data_of(read_one(bob, lamp, fields=",".join(["name", *names[:499]]))) == [{"name": "Lamp"}]


class TestViews:
    def test_view_selects_the_fields(self, lamp: str, bob: User):
        view("device", "short", "maker.name", "name")
        assert list(data_of(read_one(bob, lamp, view="short"))[0].items()) == [("maker.name", "Lux"), ("name", "Lamp")]

    def test_fields_narrow_the_view(self, lamp: str, bob: User):
        view("device", "short", "name", "maker.name", "sys_id")
        response = read_one(bob, lamp, view="short", fields="maker.name,sys_version,name")
        assert list(data_of(response)[0].items()) == [("maker.name", "Lux"), ("name", "Lamp")]

    def test_fields_outside_the_view_are_refused(self, lamp: str, bob: User):
        view("device", "short", "name")
        assert error_of(read_one(bob, lamp, view="short", fields="sys_id,sys_version")) == (
            400,
            "no_fields",
            "sysparm_fields",
        )

    def test_unreadable_columns_of_a_view_are_omitted(self, lamp: str, alice: User, bob: User):  # B09
        view("device", "prices", "name", "price")
        response = read_one(bob, lamp, view="prices")
        assert data_of(response) == [{"name": "Lamp"}] and "X-Ignored-Fields" not in response
        assert data_of(read_one(alice, lamp, view="prices")) == [{"name": "Lamp", "price": 5}]

    def test_path_of_a_dropped_column_is_omitted(self, lamp: str, bob: User):
        dropped_column = field("device", "gone")
        view("device", "short", "name", "gone")
        dropped_column.delete()
        catalogue_loader.reload_if_changed()
        response = read_one(bob, lamp, view="short")
        assert data_of(response) == [{"name": "Lamp"}] and "X-Ignored-Fields" not in response

    @pytest.mark.parametrize(
        "path",
        ["nothing", "maker.nothing", "name.name", "maker", "maker..name", "", ".", "Name", "pin", ".".join("x" * 7)],
    )
    def test_invalid_path_is_refused_on_saving(self, lamp: str, alice: User, path: str):
        field("device", "pin", "password")
        new_view = view("device", "short", "name")
        response = api(alice).post("sys_ui_view_column", {"view": new_view.pk, "path": path, "position": 2})
        if path == "maker":
            assert response.status_code == 201, "the reference itself is a field"
            return
        assert error_of(response)[0] == 422 and error_of(response)[2] == "path"
        assert path == "" or f"“{path}” is not a valid path from device." in response.json()["errors"][0]["message"]

    def test_view_with_too_many_joins_is_refused_on_saving(self, lamp: str, alice: User):
        new_view = view("device", "wide", "name")
        for number in range(12):
            field("device", f"maker{number}", target="maker")
            body = {"view": new_view.pk, "path": f"maker{number}.name", "position": number}
            assert api(alice).post("sys_ui_view_column", body).status_code == 201
        response = api(alice).post("sys_ui_view_column", {"view": new_view.pk, "path": "maker.name", "position": 20})
        assert error_of(response)[0] == 422 and "more than 12 references" in response.json()["errors"][0]["message"]
        assert len(data_of(read_one(alice, lamp, view="wide"))[0]) == 13

    def test_invalid_stored_path_can_be_moved_but_not_changed(self, lamp: str, alice: User):
        dropped_column = field("device", "gone")
        view_column = view("device", "short", "name", "gone").columns.get(path="gone")
        dropped_column.delete()
        path = f"sys_ui_view_column/{view_column.pk}"
        assert data_of(api(alice).patch(path, {"position": 9}))[0]["position"] == 9
        assert error_of(api(alice).patch(path, {"path": "also_gone"}))[2] == "path"

    def test_view_cannot_change_its_table(self, lamp: str, alice: User):
        new_view = view("device", "short", "name")
        other_table = table("other")
        assert error_of(api(alice).patch(f"sys_ui_view/{new_view.pk}", {"table": other_table.pk}))[0] == 422

    def test_view_without_readable_columns_is_empty(self, lamp: str, bob: User):  # B09
        view("device", "prices", "price")
        view("device", "empty")
        for name in ("prices", "empty"):
            assert error_of(read_one(bob, lamp, view=name)) == (400, "no_fields", "sysparm_fields")
            assert error_of(read_one(bob, lamp, view=name, fields="name")) == (400, "no_fields", "sysparm_fields")

    def test_unknown_view_is_refused(self, lamp: str, bob: User):
        view("maker", "short", "name")
        for name in ("short", "Short", "'", "é", "a b"):
            assert error_of(read_one(bob, lamp, view=name)) == (400, "invalid_parameter", "sysparm_view")

    @pytest.mark.parametrize("name", ["Default", "default"])
    def test_missing_default_view_means_all_columns(self, lamp: str, bob: User, name: str):
        assert read_one(bob, lamp, view=name).content == read_one(bob, lamp).content
        assert data_of(read_one(bob, lamp, view=name, fields="name")) == [{"name": "Lamp"}]

    @pytest.mark.parametrize("stored_name", ["Default", "default"])
    def test_default_view_name_ignores_case(self, lamp: str, bob: User, stored_name: str):
        view("device", stored_name, "name")
        for name in ("Default", "default"):
            assert data_of(read_one(bob, lamp, view=name)) == [{"name": "Lamp"}]

    def test_child_table_inherits_views(self, lamp: str, bob: User):
        table("laptop", parent="device")
        view("device", "short", "name")
        laptop = record("laptop", name="Slim")
        assert data_of(api(bob).get(f"laptop/{laptop}", view="short")) == [{"name": "Slim"}]
        view("laptop", "short", "sys_id")
        assert data_of(api(bob).get(f"laptop/{laptop}", view="short")) == [{"sys_id": laptop}]
