"""Functions as default values: the current time, a relative day, the current user, the next number."""

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.core.exceptions import ValidationError

from accounts.models import User
from tableapi.models import Column, Table
from tableapi.read import context
from tableapi.setup import shipped_tables
from tableapi.values import defaults
from tableapi.write import deferred_records
from tests.tableapi.world import api, data_of, field, open_table, record, rule, table

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 2, 8, 30, 15, tzinfo=UTC)


@pytest.fixture(autouse=True)
def frozen_clock() -> Any:
    with patch.object(context, "now", lambda: NOW):
        yield


@pytest.fixture
def device() -> Table:
    device = table("device")
    field("device", "name")
    field("device", "at", "datetime", default_value="javascript:gs.now()")
    field("device", "day", "date", default_value="javascript:gs.now()")
    field("device", "due", "date", default_value="javascript:gs.daysAgo(-7)")
    field("device", "until", "datetime", default_value="javascript:gs.endOfToday()")
    field("device", "owner", target="user", default_value="javascript:gs.getUserID()")
    open_table("device")
    return device


def expected_defaults(user: User) -> dict[str, Any]:
    return {
        "at": "2026-03-02 08:30:15",
        "day": "2026-03-02",
        "due": "2026-03-09",
        "until": "2026-03-02 23:59:59",
        "owner": user.pk,
    }


def fields_with_defaults(record: dict[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in ("at", "day", "due", "until", "owner")}


def test_new_record_gets_the_defaults(device: Table, alice: User, bob: User):
    for user in (alice, bob):
        created_record = data_of(api(user).post("device?sysparm_exclude_reference_link=1", {"name": "a"}))[0]
        assert fields_with_defaults(created_record) == expected_defaults(user)


def test_sent_values_take_precedence(device: Table, alice: User, bob: User):
    values = {"at": "2020-01-01 00:00:00", "day": None, "due": "2020-01-01", "until": None, "owner": alice.pk}

    assert fields_with_defaults(data_of(api(bob).post("device?sysparm_exclude_reference_link=1", values))[0]) == values


def test_patch_keeps_values_and_put_resets_them_to_the_defaults(device: Table, alice: User, bob: User):
    sys_id = record("device", name="a", owner=alice.pk)
    path = f"device/{sys_id}?sysparm_exclude_reference_link=1"

    assert data_of(api(bob).patch(path, {"name": "b"}))[0]["owner"] == alice.pk
    assert fields_with_defaults(data_of(api(bob).put(path, {"name": "c"}))[0]) == expected_defaults(bob)


def test_bulk_and_upsert_set_the_defaults(device: Table, bob: User):
    field("device", "code", is_unique=True)
    for response in (
        api(bob).post("/rest/v1/bulk/device", [{"name": "a"}, {"name": "b"}]),
        api(bob).post("/rest/v1/upsert/device?sysparm_key=code", {"code": "c"}),
    ):
        assert response.status_code == 201
    records = data_of(api(bob).get("device", exclude_reference_link=1))
    assert [fields_with_defaults(row) for row in records] == [expected_defaults(bob)] * 3


def test_deferred_record_has_the_defaults_of_its_request(bob: User):
    table("plan", deferred_create=True)
    field("plan", "at", "datetime", default_value="javascript:gs.now()")
    field("plan", "owner", target="user", default_value="javascript:gs.getUserID()")
    open_table("plan")
    api(bob).post("plan", {})
    with patch.object(context, "now", lambda: NOW + timedelta(days=1)):
        deferred_records.create_due_records()

    (created_record,) = data_of(api(bob).get("plan", exclude_reference_link=1))
    assert (created_record["at"], created_record["owner"]) == ("2026-03-02 08:30:15", bob.pk)


def test_defaults_bypass_column_rules_but_not_record_rules(device: Table, bob: User):
    rule("create", "device", "owner", roles=["itil"])
    assert data_of(api(bob).post("device?sysparm_exclude_reference_link=1", {}))[0]["owner"] == bob.pk

    table("own")
    field("own", "owner", target="user", default_value="javascript:gs.getUserID()")
    rule("create", "own", condition="owner=javascript:gs.getUserID()")
    assert api(bob).post("own", {}).status_code == 201


@pytest.mark.parametrize(
    ("type_or_target", "default_value"),
    [
        ("datetime", "javascript:gs.nothing()"),
        ("datetime", "javascript:gs.daysAgo()"),
        ("datetime", "javascript:gs.getUserID()"),
        ("date", "javascript:alert(1)"),
        ("user", "javascript:gs.now()"),
        ("user", "a1"),
        ("company", "javascript:gs.getUserID()"),
    ],
)
def test_unsuitable_function_is_refused(type_or_target: str, default_value: str, db: None):
    table("device")
    is_reference = type_or_target in ("user", "company")
    options: dict[str, Any] = {"target": type_or_target} if is_reference else {"type_name": type_or_target}
    with pytest.raises(ValidationError) as exc_info:
        field("device", "it", **options, default_value=default_value)
    assert set(exc_info.value.message_dict) == {"default_value"}


def test_function_in_a_text_column_is_plain_text(bob: User):
    table("device")
    field("device", "name", default_value="javascript:gs.now()")
    open_table("device")

    assert data_of(api(bob).post("device", {}))[0]["name"] == "javascript:gs.now()"


def test_task_records_when_and_by_whom_it_was_opened(alice: User):
    created_task = data_of(api(alice).post("task?sysparm_exclude_reference_link=1", {"short_description": "a"}))[0]

    assert (created_task["opened_at"], created_task["opened_by"]) == ("2026-03-02 08:30:15", alice.pk)


def test_existing_task_table_gets_the_defaults_unless_it_was_changed(db: None):
    columns = Column.objects.filter(table__name="task", name__in=("opened_at", "opened_by"))
    columns.update(default_value="")
    shipped_tables._add_opening_defaults()
    assert set(columns.values_list("default_value", flat=True)) == {
        "javascript:gs.now()", "javascript:gs.getUserID()"
    }  # fmt: skip

    columns.update(default_value="")
    shipped_tables._add_opening_defaults()
    assert set(columns.values_list("default_value", flat=True)) == {""}


@pytest.mark.parametrize("is_deferred", [False, True])
@pytest.mark.parametrize("is_extended", [False, True])  # single-row records are created by another statement
def test_text_column_gets_the_next_number(alice: User, is_deferred: bool, is_extended: bool):
    table("part", number_prefix="PRT", deferred_create=is_deferred)
    field("part", "label", default_value=defaults.NEXT_NUMBER, mandatory=True)
    field("part", "copy", default_value=defaults.NEXT_NUMBER)
    open_table("part")
    if is_extended:
        table("small_part", parent="part", deferred_create=is_deferred)
    table_name = "small_part" if is_extended else "part"

    first_part, second_part = (data_of(api(alice).post(table_name, body))[0] for body in ({}, {"copy": "own"}))

    assert first_part["number"] == first_part["label"] == first_part["copy"] == "PRT0000001"
    assert (second_part["number"], second_part["label"], second_part["copy"]) == ("PRT0000002", "PRT0000002", "own")
    bulk_entries = data_of(api(alice).post(f"/rest/v1/bulk/{table_name}", [{}, {"label": "x"}]))
    if not is_deferred:
        bulk_records = [data_of(api(alice).get(f"{table_name}/{row['sys_id']}"))[0] for row in bulk_entries]
        assert [record["label"] for record in bulk_records] == ["PRT0000003", "x"]
        replaced_record = data_of(api(alice).put(f"{table_name}/{second_part['sys_id']}", {"label": "L"}))[0]
        assert (replaced_record["label"], replaced_record["copy"]) == ("L", "PRT0000002")
        imported_record = data_of(api(alice).post(f"{table_name}?sysparm_import=1", {"number": "PRT0000100"}))[0]
        assert imported_record["label"] == imported_record["copy"] == "PRT0000100"
    else:
        deferred_records.create_due_records()
        assert data_of(api(alice).get(f"{table_name}/{first_part['sys_id']}"))[0]["label"] == "PRT0000001"


def test_next_number_requires_a_number_column(device: Table):
    for options in ({"default_value": defaults.NEXT_NUMBER}, {"default_value": defaults.NEXT_NUMBER, "max_length": 5}):
        with pytest.raises(ValidationError):
            field("device", "label", **options)
    table("part", number_prefix="PRT")
    with pytest.raises(ValidationError):
        field("part", "label", default_value=defaults.NEXT_NUMBER, max_length=5)
    with pytest.raises(ValidationError):
        field("part", "count", "integer", default_value=defaults.NEXT_NUMBER)


def test_next_number_requires_a_number_column_of_the_same_table(alice: User):
    table("part", number_prefix="PRT")
    table("small_part", parent="part", number_prefix="SML")
    with pytest.raises(ValidationError, match="a number column of their own"):
        field("small_part", "label", default_value=defaults.NEXT_NUMBER)
