"""All errors in the columns of one body are reported together."""

from typing import Any

import pytest

from accounts.models import User
from system.errors import MAX_ERRORS
from tableapi.models import Table
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, data_of, error_of, errors_of, field, open_table, rule, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def device(db: Any) -> Table:
    new_table = table("device", number_prefix="DEV")
    field("device", "name")
    field("device", "price", "integer")
    field("device", "day", "date")
    field("device", "maker", target="user")
    field("device", "owners", "list", target="user")
    open_table("device")
    return new_table


def expected_errors(status: int, code: str, *column_names: str) -> list[tuple[int, str, str | None]]:
    return [(status, code, name) for name in column_names]


def test_all_unknown_columns_are_reported(device: Table, bob: User):
    body = {"shoe": 1, "name": "a", "sock": 2}
    assert errors_of(api(bob).post("device", body)) == expected_errors(400, "unknown_field", "shoe", "sock")


def test_hidden_column_is_reported_like_an_unknown_one(device: Table, bob: User):  # B29
    rule("read", "device", "price", roles=["auditor"])
    response = api(bob).post("device", {"price": 1, "shoes": 1})
    assert errors_of(response) == expected_errors(400, "unknown_field", "price", "shoes")
    message, other_message = (error["message"] for error in response.json()["errors"])
    assert message.replace("price", "shoes") == other_message


def test_number_of_errors_is_limited(device: Table, bob: User):
    errors = errors_of(api(bob).post("device", {f"x{number}": 1 for number in range(500)}))
    assert len(errors) == MAX_ERRORS


def test_all_read_only_columns_are_reported(device: Table, bob: User):
    body = {"number": "DEV1", "sys_version": 5, "name": "a"}
    assert errors_of(api(bob).post("device", body)) == expected_errors(400, "read_only", "number", "sys_version")


def test_all_missing_references_are_reported(device: Table, bob: User):  # B30
    (lamp_record,) = data_of(api(bob).post("device", {"maker": bob.pk, "owners": [bob.pk]}))
    body = {"maker": "1", "owners": [bob.pk, "2"]}
    for response in (api(bob).post("device", body), api(bob).patch(f"device/{lamp_record['sys_id']}", body)):
        assert errors_of(response) == expected_errors(422, "invalid_value", "maker", "owners")
    assert query_rows("SELECT count(*) FROM records.device")[0][0] == 1


def test_all_model_errors_are_reported(alice: User):
    body = {"name": "Bad name", "label": "x", "number_prefix": "lower"}
    errors = errors_of(api(alice).post("sys_db_table", body))
    assert errors == expected_errors(422, "invalid_value", "name", "number_prefix")
    assert error_of(api(alice).post("sys_acl", {}))[:2] == (422, "mandatory")
    assert not Table.objects.filter(label="x").exists()


def test_errors_of_one_response_have_one_status(alice: User):
    """A used login is a 409 and a too long text a 422; the first error determines the status."""
    body = {"login": "alice", "phone": "1" * 1_000}
    response = api(alice).post("user", body)
    assert {status for status, _, _ in errors_of(response)} == {response.status_code}


def test_invalid_values_invalid_references_and_missing_values_are_reported_together(device: Table, bob: User):
    field("device", "code", mandatory=True)
    body = {"price": "much", "day": "soon", "maker": "1"}
    expected = [*expected_errors(422, "invalid_value", "price", "day", "maker"), (422, "mandatory", "code")]
    assert errors_of(api(bob).post("device", body)) == expected

    (lamp_record,) = data_of(api(bob).post("device", {"code": "a", "price": 5}))
    path = f"device/{lamp_record['sys_id']}"
    assert errors_of(api(bob).patch(path, body | {"code": None})) == expected
    assert errors_of(api(bob).put(path, body)) == expected
    assert data_of(api(bob).get(path))[0] | {"price": 5, "sys_version": 0} == data_of(api(bob).get(path))[0]


def test_invalid_value_is_not_reported_as_missing(device: Table, bob: User):
    field("device", "weight", "integer", mandatory=True, default_value="1")
    assert errors_of(api(bob).post("device", {"weight": "heavy"})) == expected_errors(422, "invalid_value", "weight")
    (lamp_record,) = data_of(api(bob).post("device", {}))
    for send in (api(bob).patch, api(bob).put):
        assert errors_of(send(f"device/{lamp_record['sys_id']}", {"weight": "heavy"})) == expected_errors(
            422, "invalid_value", "weight"
        )
