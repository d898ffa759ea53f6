"""`PATCH` changes the sent columns, `PUT` replaces the record; both accept a response as their body."""

from typing import Any

import pytest

from accounts.models import User
from system import property_definitions
from system.models import Property
from tableapi.design import saving
from tableapi.models import Choice, Column, State, Table
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, data_of, error_of, field, open_table, record, rule, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def device(db: Any) -> Table:
    """A table whose records everybody may read and change."""
    new_table = table("device")
    field("device", "name")
    field("device", "rank", "integer", default_value="7")
    field("device", "notes", "text")
    open_table("device")
    return new_table


@pytest.fixture
def lamp(device: Table) -> str:
    return record("device", name="Lamp", rank=1, notes="Old")


def stored_row(sys_id: str, *column_names: str) -> Any:
    (row,) = query_rows(f"SELECT {', '.join(column_names)} FROM records.device WHERE sys_id = %s", sys_id)
    return row[0] if len(column_names) == 1 else row


def set_property(name: str, value: str) -> None:
    property_record = Property.objects.get(name=name)
    property_record.value = value
    property_record.save()
    property_definitions.VALUE_CACHE.clear()


class TestPatch:
    def test_patch_changes_only_the_sent_columns(self, lamp: str, bob: User):
        (record_before,) = data_of(api(bob).get(f"device/{lamp}"))
        (record_after,) = data_of(api(bob).patch(f"device/{lamp}", {"name": "Torch"}))

        assert record_after == record_before | {
            "name": "Torch",
            "sys_version": 1,
            "sys_updated_at": record_after["sys_updated_at"],
            "sys_updated_by": {"value": bob.pk, "link": f"http://testserver/rest/v1/table/user/{bob.pk}"},
        }
        assert data_of(api(bob).get(f"device/{lamp}")) == [record_after]
        assert data_of(api(bob).patch(f"device/{lamp}", {"name": None}))[0]["name"] is None

    @pytest.mark.parametrize(
        "body", [{}, {"name": "Lamp"}, {"rank": "1"}, {"name": "Lamp", "notes": "Old", "rank": 1.0}]
    )
    def test_unchanged_record_keeps_its_version(self, lamp: str, bob: User, body: Any):
        (record_before,) = data_of(api(bob).get(f"device/{lamp}"))
        for response in (api(bob).patch(f"device/{lamp}", body), api(bob).put(f"device/{lamp}", record_before)):
            assert data_of(response) == [record_before]
        assert stored_row(lamp, "sys_version", "sys_updated_by") == (0, None)

    def test_version_counts_changes(self, lamp: str, bob: User):
        for name, version in (("a", 1), ("b", 2), ("b", 2), ("c", 3)):
            assert data_of(api(bob).patch(f"device/{lamp}", {"name": name}))[0]["sys_version"] == version

    def test_empty_string_is_text_and_clears_other_types(self, lamp: str, bob: User):
        data_of(api(bob).patch(f"device/{lamp}", {"name": "", "rank": ""}))
        assert stored_row(lamp, "name", "rank") == ("", None)

    def test_json_is_merged(self, lamp: str, bob: User):  # RFC 7396
        field("device", "tree", "json")
        steps = [
            ({"a": 1, "b": {"c": 2, "d": [1, 2]}}, {"a": 1, "b": {"c": 2, "d": [1, 2]}}),
            ({"a": None, "b": {"d": [3]}, "e": "x"}, {"b": {"c": 2, "d": [3]}, "e": "x"}),
            ({"b": 5}, {"b": 5, "e": "x"}),
            ({"b": {"n": None, "m": 1}}, {"b": {"m": 1}, "e": "x"}),
            ([1, None], [1, None]),
            ({"z": {"y": None}}, {"z": {}}),
            ("text", "text"),
            (None, None),
        ]
        for patch, expected in steps:
            assert data_of(api(bob).patch(f"device/{lamp}", {"tree": patch}))[0]["tree"] == expected
        assert data_of(api(bob).put(f"device/{lamp}", {"tree": {"a": None}}))[0]["tree"] == {"a": None}
        assert data_of(api(bob).put(f"device/{lamp}", {"tree": {"b": 1}}))[0]["tree"] == {"b": 1}

    def test_child_record_changes_in_both_tables(self, device: Table, bob: User):
        table("laptop", parent="device")
        field("laptop", "ram", "integer")
        record_id = record("laptop", name="X1", ram=8)
        for path in ("laptop", "device"):
            (record_after,) = data_of(api(bob).patch(f"{path}/{record_id}", {"name": path}))
            assert record_after["name"] == path
        (record_after,) = data_of(api(bob).patch(f"laptop/{record_id}", {"ram": 16}))
        assert (record_after["ram"], record_after["sys_version"]) == (16, 3)
        assert error_of(api(bob).patch(f"device/{record_id}", {"ram": 4})) == (400, "unknown_field", "ram")

    def test_mandatory_value_cannot_be_cleared(self, lamp: str, bob: User):
        field("device", "code", mandatory=True)
        assert error_of(api(bob).patch(f"device/{lamp}", {"code": ""})) == (422, "mandatory", "code")
        assert api(bob).patch(f"device/{lamp}", {"name": "x"}).status_code == 200, "the value was already empty"
        for body in ({"name": "y"}, {"name": "y", "code": None}):
            assert error_of(api(bob).put(f"device/{lamp}", body)) == (422, "mandatory", "code")
        data_of(api(bob).patch(f"device/{lamp}", {"code": "x"}))
        assert error_of(api(bob).patch(f"device/{lamp}", {"code": None})) == (422, "mandatory", "code")
        assert error_of(api(bob).put(f"device/{lamp}", {"name": "x"})) == (422, "mandatory", "code")
        assert stored_row(lamp, "code") == "x"

    def test_invalid_value_changes_nothing(self, lamp: str, bob: User):
        for send in (api(bob).patch, api(bob).put):
            assert error_of(send(f"device/{lamp}", {"name": "x", "rank": "many"})) == (422, "invalid_value", "rank")
            assert error_of(send(f"device/{lamp}", {"name": "x", "none": 1})) == (400, "unknown_field", "none")
        assert stored_row(lamp, "name", "rank", "sys_version") == ("Lamp", 1, 0)

    @pytest.mark.parametrize("sys_id", ["1", "A", "a-b", "x" * 33, "%20", "%00", "é", "1'--"])
    def test_missing_record_is_404(self, device: Table, bob: User, sys_id: str):
        for response in (api(bob).patch(f"device/{sys_id}", {}), api(bob).put(f"device/{sys_id}", {})):
            assert response.status_code == 404
            assert sys_id == "%00" or error_of(response) == (404, "record_not_found", None)


class TestPut:
    def test_omitted_columns_get_their_default_or_null(self, lamp: str, bob: User):
        field("device", "active", "boolean", default_value="true")
        (record_after,) = data_of(api(bob).put(f"device/{lamp}", {"name": "Torch"}))
        assert [record_after[name] for name in ("name", "rank", "notes", "active", "sys_version")] == [
            "Torch",
            7,
            None,
            True,
            1,
        ]
        (record_after,) = data_of(api(bob).put(f"device/{lamp}", {"rank": None}))
        assert [record_after[name] for name in ("name", "rank", "active")] == [None, None, True]

    def test_read_only_and_system_columns_are_kept(self, bob: User):
        table("ticket", number_prefix="TCK")
        field("ticket", "name")
        field("ticket", "score", "integer", read_only=True, default_value="3")
        open_table("ticket")
        (record,) = data_of(api(bob).post("ticket", {"name": "a"}))
        query_rows("UPDATE records.ticket SET score = 9")

        (record_after,) = data_of(api(bob).put(f"ticket/{record['sys_id']}", {"name": "b"}))
        assert (record_after["number"], record_after["score"], record_after["sys_created_at"]) == (
            record["number"],
            9,
            record["sys_created_at"],
        )

    def test_omitted_display_name_becomes_the_number(self, bob: User):
        table("ticket", number_prefix="TCK")
        field("ticket", "display_name")
        field("ticket", "name")
        open_table("ticket")
        (record,) = data_of(api(bob).post("ticket", {"name": "a"}))
        path = f"ticket/{record['sys_id']}"
        assert record["display_name"] == record["number"]

        for body, expected_name in (
            ({"name": "b"}, record["number"]),
            ({"name": "b", "display_name": "Own"}, "Own"),
            ({"name": "c"}, record["number"]),
            ({"display_name": None}, None),
        ):
            assert data_of(api(bob).put(path, body))[0]["display_name"] == expected_name, body
        assert data_of(api(bob).patch(path, {"name": "d"}))[0]["display_name"] is None
        rule("read", "ticket", "number", roles=["auditor"])
        assert api(bob).patch(path, {"display_name": "Own"}).status_code == 200
        (record_after,) = data_of(api(bob).put(path, {"name": "e"}))
        assert record_after["display_name"] == "Own" and "number" not in record_after, "number stays hidden"

    def test_hidden_columns_are_never_cleared(self, lamp: str, bob: User):  # B52
        rule("read", "device", "notes", roles=["auditor"])
        rule("read", "device", "rank", condition="name=Torch")

        (record_after,) = data_of(api(bob).put(f"device/{lamp}", {"name": "Lamp 2"}))
        assert record_after["name"] == "Lamp 2" and record_after["rank"] is None and "notes" not in record_after
        assert stored_row(lamp, "rank", "notes") == (1, "Old")

    def test_unwritable_columns_are_kept(self, lamp: str, bob: User):
        rule("write", "device", "notes", roles=["editor"])
        rule("write", "device", "rank", condition="name=Torch")

        (record_after,) = data_of(api(bob).put(f"device/{lamp}", {"name": "Lamp 2"}))
        assert (record_after["name"], record_after["rank"], record_after["notes"]) == ("Lamp 2", 1, "Old")

    def test_never_readable_columns_are_kept(self, lamp: str, bob: User):
        field("device", "pass", "password")
        field("device", "token", "secret")
        data_of(api(bob).patch(f"device/{lamp}", {"pass": "one two three", "token": "t"}))
        stored_secrets = stored_row(lamp, "pass", "token")
        assert all(stored_secrets)

        data_of(api(bob).put(f"device/{lamp}", {"name": "Torch"}))
        assert stored_row(lamp, "pass", "token") == stored_secrets


class TestRoundTrip:
    @pytest.fixture
    def full_device(self, device: Table, alice: User, bob: User) -> str:
        """A record with a value of every type, and with every kind of empty value."""
        for name, type_name in {
            "html": "wysiwyg", "exact": "decimal", "yes": "boolean", "at": "datetime", "on_day": "date", "tree": "json",
            "none": "string", "no_html": "wysiwyg", "no_tree": "json", "empty": "string", "empty_tree": "json",
        }.items():  # fmt: skip
            field("device", name, type_name)
        field("device", "owner", target="user")
        field("device", "users", "list", target="user")
        for name in ("nobody", "nobody_left"):
            field("device", name, "list", target="user")
        field("device", "state", choices={"1": "New", "2": "Old"})
        for name in ("fixed_text", "fixed_none"):
            field("device", name, read_only=True)
        field("device", "fixed_at", "datetime", read_only=True)
        field("device", "fixed_tree", "json", read_only=True)
        field("device", "fixed_users", "list", target="user", read_only=True)
        field("device", "fixed_owner", target="user", read_only=True)
        return record(
            "device", name="Lamp", rank=1, html="<p>Hi &amp; <b>you</b> &lt;3</p>", exact="0.1000", yes=False,
            at="2030-01-02T03:04:05.678+01:00", on_day="2030-01-02", tree={"a": [1.5, None], "b": {"c": True}},
            owner=bob.pk, users=[bob.pk, alice.pk], state="2", fixed_text="x", fixed_none="",
            fixed_at="2030-01-02T03:04:05.678Z", fixed_tree={"a": 1}, fixed_users=[alice.pk], fixed_owner=alice.pk,
            empty="", nobody_left=[], empty_tree=[],
        )  # fmt: skip

    @pytest.mark.parametrize("exclude_links", [0, 1])
    def test_record_sent_back_is_unchanged(self, full_device: str, bob: User, exclude_links: int):
        (stored_record,) = data_of(api(bob).get(f"device/{full_device}", exclude_reference_link=exclude_links))
        for send in (api(bob).put, api(bob).patch):
            assert data_of(send(f"device/{full_device}", stored_record, exclude_reference_link=exclude_links)) == [
                stored_record
            ]
        assert stored_row(full_device, "sys_version", "at", "exact::text", "fixed_none")[0] == 0

    @pytest.mark.parametrize("input_display_value", [0, 1])
    @pytest.mark.parametrize("exclude_links", [0, 1])
    def test_values_with_display_values_change_nothing(
        self, full_device: str, bob: User, exclude_links: int, input_display_value: int
    ):
        params: dict[str, Any] = {"display_value": "all", "exclude_reference_link": exclude_links}
        (stored_record,) = data_of(api(bob).get(f"device/{full_device}", **params))
        assert stored_record["state"] == {"value": "2", "display_value": "Old"}
        body = {name: value for name, value in stored_record.items() if "tree" not in name}
        assert data_of(
            api(bob).patch(f"device/{full_device}", body, **params, input_display_value=input_display_value)
        ) == [stored_record]
        trees = data_of(api(bob).get(f"device/{full_device}", fields="tree,no_tree,empty_tree"))[0]
        assert data_of(
            api(bob).put(f"device/{full_device}", body | trees, **params, input_display_value=input_display_value)
        ) == [stored_record]
        assert stored_row(full_device, "sys_version") == 0

    @pytest.mark.parametrize("input_display_value", [0, 1])
    def test_value_takes_precedence_over_display_value(
        self, full_device: str, bob: User, alice: User, input_display_value: int
    ):
        body: dict[str, Any] = {
            "state": {"value": "1", "display_value": "Old"},
            "yes": {"value": True, "display_value": "No"},
            "on_day": {"value": "2031-01-02", "display_value": "3 Jan 2031"},
            "owner": {"value": alice.pk, "display_value": "bob"},
            "rank": {"value": None, "display_value": "5"},
            "tree": {"value": 1, "display_value": "1"},
        }
        (record_after,) = data_of(
            api(bob).patch(
                f"device/{full_device}", body, input_display_value=input_display_value, exclude_reference_link=1
            )
        )
        assert [record_after[name] for name in body] == [
            "1", True, "2031-01-02", alice.pk, None, {"a": [1.5, None], "b": {"c": True}} | body["tree"]
        ]  # fmt: skip
        for invalid_value in (
            {"value": "3", "display_value": "New"},
            {"value": "1"},
            {"value": "1", "display_value": 1, "x": 1},
        ):
            response = api(bob).patch(
                f"device/{full_device}", {"state": invalid_value}, input_display_value=input_display_value
            )
            assert error_of(response) == (422, "invalid_value", "state")
        body_with_another_id = {"sys_id": {"value": "1", "display_value": full_device}}
        assert error_of(api(bob).patch(f"device/{full_device}", body_with_another_id)) == (400, "read_only", "sys_id")

    def test_new_record_accepts_values_with_display_values(self, full_device: str, bob: User):
        (stored_record,) = data_of(
            api(bob).get(f"device/{full_device}", display_value="all", fields="name,state,users,fixed_none")
        )
        (record,) = data_of(api(bob).post("device", stored_record))
        assert (record["name"], record["state"], len(record["users"])) == ("Lamp", "2", 2)

    def test_unwritable_column_can_be_sent_back_empty(self, full_device: str, bob: User):
        for name in ("empty", "nobody_left"):
            rule("write", "device", name, roles=("admin",))
        (stored_record,) = data_of(api(bob).get(f"device/{full_device}"))
        assert stored_record["empty"] is stored_record["nobody_left"] is None
        assert data_of(api(bob).put(f"device/{full_device}", stored_record | {"rank": 2}))[0]["rank"] == 2
        assert error_of(api(bob).patch(f"device/{full_device}", {"empty": "x"}))[:2] == (403, "access_denied")

    def test_null_for_an_empty_json_list_is_a_change(self, full_device: str, bob: User):
        data_of(api(bob).patch(f"device/{full_device}", {"empty_tree": None}))
        assert stored_row(full_device, "empty_tree", "sys_version") == (None, 1)

    @pytest.mark.parametrize("display_value", ["false", "true"])
    def test_stored_invalid_value_can_be_sent_back(self, full_device: str, bob: User, display_value: str):
        Choice.objects.get(column__table__name="device", column__name="state", value="2").delete()
        column = Column.objects.get(table__name="device", name="name")
        query_rows("UPDATE records.device SET name = %s", "x" * 40)
        Column.objects.filter(pk=column.pk).update(max_length=10)
        State.increment_version()
        params = {"display_value": display_value, "fields": "name,state,rank"}
        (stored_record,) = data_of(api(bob).get(f"device/{full_device}", **params))

        def send_body(body: dict[str, Any]) -> Any:
            return api(bob).patch(f"device/{full_device}", body, input_display_value=display_value, **params)

        assert data_of(send_body(stored_record)) == [stored_record] and stored_row(full_device, "sys_version") == 0
        assert data_of(send_body(stored_record | {"rank": 3}))[0]["state"] == stored_record["state"]
        assert error_of(send_body({"state": "3"}))[:2] == (422, "invalid_value")
        assert error_of(send_body({"name": "y" * 40}))[0] == 422

    def test_one_changed_value_changes_one_column(self, full_device: str, bob: User):
        (stored_record,) = data_of(api(bob).get(f"device/{full_device}"))
        (record_after,) = data_of(api(bob).put(f"device/{full_device}", stored_record | {"rank": 2}))
        changed_columns = {name for name in stored_record if stored_record[name] != record_after[name]}
        assert {"rank", "sys_version"} <= changed_columns <= {"rank", "sys_version", "sys_updated_at", "sys_updated_by"}
        assert stored_row(full_device, "name", "html") == ("Lamp", "<p>Hi &amp; <b>you</b> &lt;3</p>")

    @pytest.mark.parametrize(
        ("column_name", "value"),
        [
            ("sys_version", 5), ("sys_created_at", "2020-01-01 00:00:00"), ("sys_id", "1"), ("sys_updated_by", None),
            ("sys_db_table_id", "1"), ("fixed_text", "y"), ("fixed_text", None), ("fixed_none", "x"),
            ("fixed_at", None), ("fixed_at", "2030-01-02 03:04:06"), ("fixed_tree", {"a": 2}), ("fixed_users", []),
            ("fixed_owner", "1"), ("sys_created_at", "nonsense"), ("sys_created_by", {"a": 1}),
        ],
    )  # fmt: skip
    def test_changed_system_column_is_refused(self, full_device: str, bob: User, column_name: str, value: Any):  # B26
        if column_name == "sys_updated_by":
            data_of(api(bob).patch(f"device/{full_device}", {"rank": 5}))
        row_before = stored_row(full_device, "sys_version", "name")
        for send in (api(bob).put, api(bob).patch):
            assert error_of(send(f"device/{full_device}", {"name": "x", column_name: value})) == (
                400,
                "read_only",
                column_name,
            )
        assert stored_row(full_device, "sys_version", "name") == row_before

    def test_number_cannot_be_changed(self, bob: User):  # B26
        table("ticket", number_prefix="TCK")
        open_table("ticket")
        (record,) = data_of(api(bob).post("ticket", {}))
        path = f"ticket/{record['sys_id']}"
        assert data_of(api(bob).patch(path, {"number": record["number"]})) == [record]
        assert error_of(api(bob).patch(path, {"number": "TCK9"})) == (400, "read_only", "number")

    def test_link_alone_is_not_a_reference(self, full_device: str, bob: User):
        for value in (
            {"link": "http://testserver/rest/v1/table/user/1"},
            {"value": bob.pk, "name": "x"},
            [bob.pk],
            True,
        ):
            assert error_of(api(bob).patch(f"device/{full_device}", {"owner": value})) == (
                422,
                "invalid_value",
                "owner",
            )

    def test_converted_text_sent_back_keeps_its_formatting(self, lamp: str, bob: User):
        query_rows("UPDATE records.device SET notes = 'use <br> & <foo> if a < b'")
        column = Column.objects.get(table__name="device", name="notes")
        column.type = "wysiwyg"
        saving.save_column(column)

        (stored_record,) = data_of(api(bob).get(f"device/{lamp}"))
        assert stored_record["notes"] == "use <br> & <foo> if a < b"
        assert data_of(api(bob).put(f"device/{lamp}", stored_record)) == [stored_record]
        data_of(api(bob).patch(f"device/{lamp}", {"notes": "<p>Some <b>bold</b></p>"}))
        (stored_record,) = data_of(api(bob).get(f"device/{lamp}"))
        assert stored_record["notes"] == "Some bold"
        assert data_of(api(bob).put(f"device/{lamp}", stored_record)) == [stored_record]
        assert stored_row(lamp, "notes") == "<p>Some <b>bold</b></p>"
        set_property("wysiwyg.columns.rest_api_json_mode", column.pk)
        (stored_record,) = data_of(api(bob).get(f"device/{lamp}"))
        assert stored_record["notes"] == "<p>Some <b>bold</b></p>"
        assert data_of(api(bob).put(f"device/{lamp}", stored_record)) == [stored_record]

    def test_formatting_can_be_removed_if_shown_as_html(self, lamp: str, bob: User):
        query_rows("UPDATE records.device SET notes = 'a < b & c'")
        column = Column.objects.get(table__name="device", name="notes")
        column.type = "wysiwyg"
        saving.save_column(column)
        set_property("wysiwyg.columns.rest_api_json_mode", column.pk)
        (stored_record,) = data_of(api(bob).get(f"device/{lamp}"))
        assert stored_record["notes"] == "a &lt; b &amp; c"
        assert data_of(api(bob).put(f"device/{lamp}", stored_record)) == [stored_record]
        assert stored_row(lamp, "notes", "sys_version") == ("a < b & c", 0)
        for notes in ("<p>Some <b>bold</b></p>", "Some bold"):
            assert data_of(api(bob).patch(f"device/{lamp}", {"notes": notes}))[0]["notes"] == notes


def test_record_with_display_values_round_trips(lamp: str, bob: User):
    params = {"display_value": "true"}
    (stored_record,) = data_of(api(bob).get(f"device/{lamp}", **params))

    assert data_of(api(bob).put(f"device/{lamp}", stored_record, input_display_value="true", **params)) == [
        stored_record
    ]
    assert stored_row(lamp, "sys_version") == 0
    body = stored_record | {"sys_created_at": "1 Jan 2020 00:00:00"}
    response = api(bob).put(f"device/{lamp}", body, input_display_value="true")
    assert error_of(response) == (400, "read_only", "sys_created_at")


def test_hidden_name_in_a_system_column_can_be_sent_back(lamp: str, bob: User):
    params = {"display_value": 1, "exclude_reference_link": 1}
    (stored_record,) = data_of(api(bob).get(f"device/{lamp}", **params))
    assert stored_record["sys_db_table_id"] is None and stored_row(lamp, "sys_db_table_id")

    assert data_of(api(bob).put(f"device/{lamp}", stored_record, input_display_value=1, **params)) == [stored_record]
    assert stored_row(lamp, "sys_version") == 0
    response = api(bob).patch(f"device/{lamp}", {"sys_db_table_id": None})
    assert error_of(response) == (400, "read_only", "sys_db_table_id")


class TestIfMatch:
    def test_current_if_match_passes_and_an_old_one_is_412(self, lamp: str, bob: User):
        tag = api(bob).get(f"device/{lamp}")["ETag"]
        response = api(bob).patch(f"device/{lamp}", {"name": "a"}, headers={"If-Match": tag})
        assert response.status_code == 200 and response["ETag"] != tag

        for send in (api(bob).patch, api(bob).put):
            assert error_of(send(f"device/{lamp}", {"name": "b"}, headers={"If-Match": tag})) == (412, "stale", None)
        assert error_of(api(bob).delete(f"device/{lamp}", headers={"If-Match": tag})) == (412, "stale", None)
        assert stored_row(lamp, "name", "sys_version") == ("a", 1)
        data_of(api(bob).patch(f"device/{lamp}", {"name": "b"}, headers={"If-Match": response["ETag"]}))
        assert api(bob).delete(f"device/{lamp}", headers={"If-Match": '"2-x"'}).status_code == 200

    def test_if_match_ignores_output_options(self, lamp: str, bob: User):
        tag = api(bob).get(f"device/{lamp}", fields="name")["ETag"]
        assert api(bob).patch(f"device/{lamp}", {"name": "a"}, headers={"If-Match": tag}).status_code == 200

    @pytest.mark.parametrize(
        ("if_match", "status"),
        [
            ("*", 200), ('"0-x"', 200), ('W/"0-x"', 200), ('"5-x", "0-x"', 200), ('"5-x","7-y" , "0-z"', 200),
            ('"1-x"', 412), ('"00-x"', 412), ('"5-x", "6-x"', 412),
            ("0-x", 400), ("nonsense", 400), ("", 400), ('"5-x", *', 400),
        ],
    )  # fmt: skip
    def test_if_match_accepts_lists_weak_tags_and_the_wildcard(self, lamp: str, bob: User, if_match: str, status: int):
        response = api(bob).patch(f"device/{lamp}", {"name": "a"}, headers={"If-Match": if_match})
        assert response.status_code == status
        assert stored_row(lamp, "name") == ("a" if status == 200 else "Lamp")

    def test_if_match_of_a_missing_record_is_404(self, device: Table, bob: User):
        hidden_device = record("device", name="x")
        rule("read", "device", condition="name=visible")
        for read_rule in device.rules.filter(operation="read", condition=""):
            read_rule.delete()
        for tag in ('"0-x"', '"9-x"', "*"):
            response = api(bob).patch(f"device/{hidden_device}", {"name": "a"}, headers={"If-Match": tag})
            assert error_of(response) == (404, "record_not_found", None)
