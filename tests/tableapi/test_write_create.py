"""`POST /rest/v1/table/{table}` creates one record; the server adds ids, numbers, defaults and system columns."""

import json
import re
import time
from typing import Any

import pytest

from accounts.models import User
from tableapi.models import Table
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, column_values, data_of, error_of, field, open_table, record, rule, table

pytestmark = pytest.mark.django_db

BASE_URL = "http://testserver/rest/v1/table/"


@pytest.fixture
def device(db: Any) -> Table:
    """A table whose records everybody may create and read."""
    new_table = table("device")
    field("device", "name")
    field("device", "price", "decimal")
    open_table("device")
    return new_table


def row_count(table_name: str = "device") -> int:
    return int(query_rows(f'SELECT count(*) FROM records."{table_name}"')[0][0])


class TestRecord:
    def test_created_record_is_returned_with_its_location(self, device: Table, bob: User):
        response = api(bob).post("device", {"name": "Lamp", "price": 12.5})

        assert response.status_code == 201
        (record,) = data_of(response)
        assert re.fullmatch(r"[0-9]{18}", record["sys_id"])
        assert response["Location"] == f"{BASE_URL}device/{record['sys_id']}"
        assert (record["name"], record["price"], record["sys_version"]) == ("Lamp", 12.5, 0)
        assert (
            record["sys_created_by"]
            == record["sys_updated_by"]
            == {"value": bob.pk, "link": f"{BASE_URL}user/{bob.pk}"}
        )
        assert record["sys_db_table_id"]["value"] == device.pk
        read_response = api(bob).get(f"device/{record['sys_id']}")
        assert data_of(read_response) == [record] and read_response["ETag"] == response["ETag"]

    def test_empty_object_creates_a_record(self, device: Table, bob: User):
        (record,) = data_of(api(bob).post("device", {}))
        assert (record["name"], record["price"]) == (None, None)

    def test_read_parameters_apply_to_the_response(self, device: Table, bob: User):
        response = api(bob).post("device", {"name": "Lamp"}, fields="name,sys_created_by.login,nothing")
        assert data_of(response) == [{"name": "Lamp", "sys_created_by.login": "bob"}]
        assert response["X-Ignored-Fields"] == "nothing"
        assert data_of(api(bob).post("device", {}, fields="sys_created_by", exclude_reference_link=1)) == [
            {"sys_created_by": bob.pk}
        ]

    def test_invalid_field_list_creates_nothing(self, device: Table, bob: User):
        assert error_of(api(bob).post("device", {"name": "Lamp"}, fields="nothing")) == (
            400,
            "no_fields",
            "sysparm_fields",
        )
        assert error_of(api(bob).post("device", {"name": "Lamp"}, view="none"))[0] == 400
        assert row_count() == 0

    def test_defaults_apply_to_omitted_columns_but_not_to_null(self, device: Table, bob: User):
        field("device", "state", choices={"1": "New", "2": "Old"}, default_value="1")
        field("device", "active", "boolean", default_value="true")
        field("device", "rank", "integer", default_value="7")
        field("device", "about", "json", default_value='{"a": [1]}')
        column_names = ("state", "active", "rank", "about")

        (record,) = data_of(api(bob).post("device", {}))
        assert [record[name] for name in column_names] == ["1", True, 7, {"a": [1]}]
        (record,) = data_of(api(bob).post("device", dict.fromkeys(column_names)))
        assert [record[name] for name in column_names] == [None] * 4

    def test_every_type_is_returned_as_stored(self, device: Table, bob: User, alice: User):
        for name, type_name in {
            "text_": "text", "html": "wysiwyg", "whole": "integer", "exact": "decimal", "yes": "boolean",
            "at": "datetime", "on_day": "date", "tree": "json",
        }.items():  # fmt: skip
            field("device", name, type_name)
        field("device", "owner", target="user")
        field("device", "users", "list", target="user")
        field("device", "state", choices={"1": "New"})
        body = {
            "text_": "a\nb ' \\ % é", "html": "<p>Hi</p>", "whole": "42", "exact": "0.10", "yes": "true",
            "at": "2030-05-19T13:45:00+02:00", "on_day": "2030-05-19", "tree": {"a": [1, None, "x"]},
            "owner": bob.pk, "users": [alice.pk, {"value": bob.pk}, alice.pk], "state": 1,
        }  # fmt: skip

        (record,) = data_of(api(bob).post("device", body, exclude_reference_link=1))
        assert {name: record[name] for name in body} == {
            **body, "whole": 42, "exact": 0.10, "yes": True, "at": "2030-05-19 11:45:00",
            "users": [alice.pk, bob.pk], "state": "1",
        }  # fmt: skip

    def test_text_is_stored_unchanged(self, device: Table, bob: User):  # B35
        for text in (
            "\ufeffa",
            "\u202eabc\u202c",
            "😀\u200b",
            "'; DROP TABLE device; --",
            "%s %(name)s {0}",
            "a\tb\r\n",
        ):
            assert column_values(api(bob).post("device", {"name": text}), "name") == [text]


class TestNumbers:
    @pytest.fixture
    def ticket(self, db: Any) -> Table:
        new_table = table("ticket", number_prefix="TCK")
        field("ticket", "display_name")
        open_table("ticket")
        return new_table

    def test_numbers_count_and_become_the_display_name(self, ticket: Table, bob: User):
        tickets = [data_of(api(bob).post("ticket", {}))[0] for _ in range(2)]
        assert [record["number"] for record in tickets] == ["TCK0000001", "TCK0000002"]
        assert [record["display_name"] for record in tickets] == ["TCK0000001", "TCK0000002"]
        assert column_values(api(bob).post("ticket", {"display_name": "Own"}), "display_name") == ["Own"]

    def test_child_table_uses_its_own_or_inherited_prefix(self, ticket: Table, bob: User):
        table("complaint", parent="ticket", number_prefix="CMP")
        table("question", parent="ticket")
        assert column_values(api(bob).post("complaint", {}), "number") == ["CMP0000001"]
        assert column_values(api(bob).post("question", {}), "number") == ["TCK0000001"]
        assert column_values(api(bob).get("ticket"), "number") == ["CMP0000001", "TCK0000001"]

    def test_numbers_exceed_seven_digits(self, ticket: Table, bob: User):
        query_rows(f"SELECT setval('records.\"N{ticket.pk}\"', 9999999)")
        assert column_values(api(bob).post("ticket", {}), "number") == ["TCK10000000"]

    def test_number_cannot_be_sent(self, ticket: Table, bob: User, alice: User):  # B26
        for user in (bob, alice):
            assert error_of(api(user).post("ticket", {"number": "TCK9"})) == (400, "read_only", "number")
        assert data_of(api(bob).post("ticket", {"number": None}))[0]["number"] == "TCK0000001"


def test_child_record_has_the_columns_of_both_tables(device: Table, bob: User):
    table("laptop", parent="device")
    field("laptop", "ram", "integer")
    response = api(bob).post("laptop", {"name": "X1", "ram": 16})
    (record,) = data_of(response)
    assert response["Location"] == f"{BASE_URL}laptop/{record['sys_id']}"
    assert (record["name"], record["ram"]) == ("X1", 16)
    assert record["sys_db_table_id"]["value"] == Table.objects.get(name="laptop").pk
    assert column_values(api(bob).get("device"), "sys_id") == [record["sys_id"]]


class TestRefusals:
    @pytest.mark.parametrize("value", [None, "", []])
    def test_missing_mandatory_value_is_refused(self, device: Table, bob: User, value: Any):
        field("device", "users", "list", target="user", mandatory=True)
        field("device", "code", mandatory=True)
        column_name, other_column = ("users", "code") if value == [] else ("code", "users")
        body = {column_name: value, other_column: [bob.pk] if other_column == "users" else "x"}

        assert error_of(api(bob).post("device", body)) == (422, "mandatory", column_name)
        assert error_of(api(bob).post("device", {other_column: body[other_column]})) == (422, "mandatory", column_name)
        assert row_count() == 0
        data_of(api(bob).post("device", {"users": [bob.pk], "code": "x"}))

    def test_default_satisfies_a_mandatory_column(self, device: Table, bob: User):
        field("device", "rank", "integer", mandatory=True, default_value="0")
        assert column_values(api(bob).post("device", {}), "rank") == [0]
        assert error_of(api(bob).post("device", {"rank": None})) == (422, "mandatory", "rank")

    def test_unknown_and_never_readable_columns_are_refused_alike(self, device: Table, bob: User):  # B29
        field("device", "secret_price", "integer")
        rule("read", "device", "secret_price", roles=["auditor"])
        responses = [api(bob).post("device", {"name": "x", name: 1}) for name in ("secret_price", "nothing_here")]
        assert error_of(responses[0]) == (400, "unknown_field", "secret_price")
        assert responses[1].content == responses[0].content.replace(b"secret_price", b"nothing_here")
        assert row_count() == 0

    @pytest.mark.parametrize(
        "column_name",
        ["sys_created_at", "sys_created_by", "sys_updated_at", "sys_updated_by", "sys_version", "sys_db_table_id"],
    )
    def test_system_columns_are_refused(self, device: Table, bob: User, alice: User, column_name: str):  # B26
        value = (
            5 if column_name == "sys_version" else "2020-01-01 00:00:00" if column_name.endswith("_at") else alice.pk
        )
        for user in (bob, alice):
            assert error_of(api(user).post("device", {column_name: value})) == (400, "read_only", column_name)
        assert row_count() == 0
        assert api(bob).post("device", {column_name: None}).status_code == 201

    def test_read_only_columns_are_refused(self, device: Table, alice: User):
        field("device", "score", "integer", read_only=True, default_value="3")
        assert error_of(api(alice).post("device", {"score": 4})) == (400, "read_only", "score")
        assert column_values(api(alice).post("device", {}), "score") == [3]

    @pytest.mark.parametrize(
        ("type_name", "values"),
        {
            "string": [True, [], {}, "x" * 11],
            "integer": ["1.5", 1.5, "twelve", True, 2**63, "9" * 40, [], "0x10"],
            "decimal": ["1,5", "NaN", "Infinity", True, "1e1000", {}],
            "boolean": ["yes", 2, "True ", []],
            "datetime": ["infinity", "0000-01-01 00:00:00", "10000-01-01 00:00:00", "2030-02-30 00:00:00",
                         "2030-01-01 24:61:00", 5, "now", "2030-06-30 23:59:61"],
            "date": ["infinity", "0000-01-01", "10000-01-01", "2030-02-30", "today", 20300101],
        }.items(),
    )  # fmt: skip
    def test_values_of_another_type_are_refused(
        self, device: Table, bob: User, type_name: str, values: list[Any]
    ):  # B71
        field("device", "given", type_name, **({"max_length": 10} if type_name == "string" else {}))
        for value in values:
            assert error_of(api(bob).post("device", {"given": value})) == (422, "invalid_value", "given"), value
        assert row_count() == 0

    def test_unknown_choices_are_refused(self, device: Table, bob: User):
        field("device", "state", choices={"1": "New", "2": "Old"})
        for value in ("3", 3, "New", True, ["1"], "1 "):
            assert error_of(api(bob).post("device", {"state": value})) == (422, "invalid_value", "state"), value

    def test_missing_table_is_404(self, bob: User):
        table("hidden")
        responses = [api(bob).post(name, {}) for name in ("nothing", "hidden")]
        assert error_of(responses[0]) == (404, "table_not_found", None)
        assert responses[0].content == responses[1].content
        assert api(None).post("hidden", {}).status_code == 401


class TestImports:
    def test_administrator_can_import_ids(self, device: Table, alice: User):
        response = api(alice).post("device", {"sys_id": "0a1b2c3d4e5f", "name": "Old"})
        assert response["Location"] == f"{BASE_URL}device/0a1b2c3d4e5f"
        assert data_of(api(alice).get("device/0a1b2c3d4e5f"))[0]["name"] == "Old"
        status, code, _ = error_of(api(alice).post("device", {"sys_id": "0a1b2c3d4e5f"}))
        assert (status, code) == (409, "duplicate")

    def test_others_cannot_import_ids(self, device: Table, bob: User):
        assert error_of(api(bob).post("device", {"sys_id": "1"})) == (400, "read_only", "sys_id")
        assert row_count() == 0

    @pytest.mark.parametrize("sys_id", ["A", "", "x" * 33, "a-b", 5, ["1"], "é", "a\n"])
    def test_malformed_imported_id_is_refused(self, device: Table, alice: User, sys_id: Any):
        assert error_of(api(alice).post("device", {"sys_id": sys_id})) == (422, "invalid_value", "sys_id")
        assert row_count() == 0

    def test_id_in_the_generated_range_is_refused(self, device: Table, alice: User):
        # Imported ids of the current minute once caused conflicts with generated ids.
        for seconds_ahead in (0, 30, 10**9):
            sys_id = f"{int(time.time()) + seconds_ahead:010}00000001"
            assert error_of(api(alice).post("device", {"sys_id": sys_id})) == (422, "invalid_value", "sys_id"), (
                seconds_ahead
            )
        data_of(api(alice).post("device", {"sys_id": "171612345600000011"}))
        assert column_values(api(alice).get("device"), "sys_id") == ["171612345600000011"]

    def test_child_record_keeps_an_imported_id(self, device: Table, alice: User):
        table("laptop", parent="device")
        data_of(api(alice).post("laptop", {"sys_id": "imported1", "name": "X1"}))
        assert column_values(api(alice).get("laptop"), "sys_id") == ["imported1"]

    def test_product_tables_generate_their_ids(self, alice: User):
        assert error_of(api(alice).post("company", {"sys_id": "1", "name": "Acme"})) == (400, "read_only", "sys_id")


class TestBodies:
    @pytest.mark.parametrize(
        "body",
        [
            "[{}, {}]", "[]", "null", "5", '"text"', "true", "", " ", "{",  # B31
            '{"name": "a", "name": "b"}',  # B32
            '{"price": NaN}', '{"price": Infinity}', '{"price": -Infinity}', '{"price": 1e999}',  # B33
            '{"price": 1e-99999999999999999999}', '{"name": [0e99999999999999999999]}',
            '{"price": ' + "9" * 5000 + "}",
            '{"name": ' + "[" * 100_000 + "]" * 100_000 + "}",  # B34
            '{"name": "a\\u0000b"}', '{"name": "\\ud800"}', '{"na\\u0000me": 1}',  # B35
            b'{"name": "\xc0\xaf"}', '{"name": "a"}'.encode("utf-16"),
            "{'name': 1}", '{"name": 1,}', "name=Lamp",
        ],
        ids=lambda body: repr(body[:20]),
    )  # fmt: skip
    def test_body_must_be_one_object(self, device: Table, bob: User, body: Any):
        assert error_of(api(bob).post("device", body))[:2] == (400, "invalid_json")
        assert error_of(api(bob).patch(f"device/{record('device')}", body))[:2] == (400, "invalid_json")
        assert row_count() == 1

    @pytest.mark.parametrize(
        "media_type",
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "",
         "application/json; charset=utf-16", "application/xml"],
    )  # fmt: skip
    def test_other_media_type_is_415(self, device: Table, bob: User, media_type: str):  # B67
        body = json.dumps({"name": "Lamp"})
        for response in (
            api(bob).post("device", body, headers={"Content-Type": media_type}),
            api(bob).patch(f"device/{record('device')}", body, headers={"Content-Type": media_type}),
        ):
            assert error_of(response)[:2] == (415, "unsupported_media_type")
        assert column_values(api(bob).get("device"), "name") == [None]

    def test_compressed_body_is_415(self, device: Table, bob: User):  # B67
        response = api(bob).post("device", {"name": "Lamp"}, headers={"Content-Encoding": "gzip"})
        assert error_of(response)[0] == 415

    def test_charset_utf_8_is_accepted(self, device: Table, bob: User):
        headers = {"Content-Type": "application/json; charset=UTF-8"}
        assert column_values(api(bob).post("device", {"name": "é"}, headers=headers), "name") == ["é"]

    def test_more_than_ten_mebibytes_is_413(self, device: Table, bob: User):
        body = json.dumps({"name": "x" * (10 * 1024 * 1024)})
        assert error_of(api(bob).post("device", body))[:2] == (413, "too_large")
        field("device", "notes", "text")
        assert api(bob).post("device", {"notes": "x" * (9 * 1024 * 1024)}, fields="name").status_code == 201

    def test_other_methods_are_refused(self, device: Table, bob: User):  # B66
        for method in ("PUT", "PATCH", "DELETE"):
            assert error_of(api(bob).send(method, "device", "{}"))[0] == 405
        record_id = record("device", name="Lamp")
        assert error_of(api(bob).post(f"device/{record_id}", {}))[0] == 405
        for method in ("TRACE", "OPTIONS", "PROPFIND"):
            assert error_of(api(bob).send(method, "device"))[0] == 405
        headers = {"X-HTTP-Method-Override": "DELETE", "X-Method-Override": "DELETE"}
        assert column_values(api(bob).get(f"device/{record_id}?_method=DELETE", headers=headers), "name") == ["Lamp"]
        assert column_values(api(bob).get("device"), "name") == ["Lamp"]
