"""`sysparm_import=1`: an administrator creates records with values that the server usually sets."""

from typing import Any

import pytest

from accounts.models import User
from tableapi.models import Table
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, data_of, error_of, field, open_table, table

pytestmark = pytest.mark.django_db
TIMESTAMPS = {"sys_created_at": "2020-01-02 03:04:05", "sys_updated_at": "2021-01-02 03:04:05"}


@pytest.fixture
def ticket(db: Any) -> Table:
    new_table = table("ticket", number_prefix="TCK")
    field("ticket", "name")
    open_table(new_table)
    return new_table


def import_record(user: User, body: dict[str, Any], path: str = "ticket") -> Any:
    return api(user).post(f"{path}?sysparm_import=1", body)


def test_import_sets_number_times_and_users(ticket: Table, alice: User, bob: User):
    user_columns = {"sys_created_by": bob.pk, "sys_updated_by": bob.pk}
    body = {"sys_id": "old1", "number": "TCK0000040", "name": "a", **TIMESTAMPS, **user_columns}
    (stored_record,) = data_of(import_record(alice, body))
    assert {name: stored_record[name] for name in ("sys_id", "number", "name", *TIMESTAMPS)} == {
        name: body[name] for name in ("sys_id", "number", "name", *TIMESTAMPS)
    }
    assert (stored_record["sys_created_by"]["value"], stored_record["sys_updated_by"]["value"]) == (bob.pk, bob.pk)


def test_later_numbers_are_higher_than_imported_ones(ticket: Table, alice: User):
    import_record(alice, {"number": "TCK0000040"})
    import_record(alice, {"number": "TCK0000007"})
    import_record(alice, {"number": "OLD-7"})
    assert data_of(api(alice).post("ticket", {}))[0]["number"] == "TCK0000041"


def test_omitted_values_are_set_by_the_server(ticket: Table, alice: User):
    (stored_record,) = data_of(import_record(alice, {"name": "a", "number": None, "sys_created_by": None}))
    assert stored_record["number"] == "TCK0000001" and stored_record["sys_created_by"]["value"] == alice.pk
    assert stored_record["sys_version"] == 0 and stored_record["sys_created_at"] is not None


def test_bulk_requests_can_import(ticket: Table, alice: User):
    bodies = [{"number": f"TCK000000{number}", **TIMESTAMPS} for number in (3, 5)]
    assert api(alice).post("/rest/v1/bulk/ticket?sysparm_import=1", bodies).status_code == 201
    stored_rows = query_rows("SELECT number, sys_created_at::date::text FROM records.ticket ORDER BY number")
    assert stored_rows == [("TCK0000003", "2020-01-02"), ("TCK0000005", "2020-01-02")]


def test_only_administrators_import_into_designed_tables(ticket: Table, alice: User, bob: User):
    assert error_of(import_record(bob, {"name": "a"})) == (403, "access_denied", "sysparm_import")
    assert error_of(import_record(alice, {"name": "a"}, "sys_group")) == (400, "invalid_parameter", "sysparm_import")
    response = api(alice).post("/rest/v1/bulk/ticket?sysparm_import=1", [{"sys_version": 3}])
    assert error_of(response)[:2] == (400, "read_only")
    assert query_rows("SELECT count(*) FROM records.ticket") == [(0,)]


@pytest.mark.parametrize(
    ("body", "expected_error"),
    [
        ({"sys_version": 3}, (400, "read_only", "sys_version")),
        ({"sys_created_at": "yesterday"}, (422, "invalid_value", "sys_created_at")),
        ({"sys_created_by": "0" * 18}, (422, "invalid_value", "sys_created_by")),
        ({"sys_db_table_id": "1"}, (400, "read_only", "sys_db_table_id")),
    ],
)
def test_invalid_imports_are_refused(ticket: Table, alice: User, body: dict[str, Any], expected_error: Any):
    assert error_of(import_record(alice, body)) == expected_error


def test_columns_are_read_only_without_the_parameter(ticket: Table, alice: User):
    assert error_of(api(alice).post("ticket", {"number": "TCK0000040"})) == (400, "read_only", "number")
