"""Columns that are set when another column changes."""

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.core.exceptions import ValidationError

from accounts.models import User
from tableapi.ddl import schema_editor
from tableapi.design import saving
from tableapi.models import Choice, Column, Rule, SetRule, Table
from tableapi.read import context
from tableapi.setup import shipped_tables
from tableapi.values.defaults import NEXT_NUMBER
from tests.tableapi.database_statements import captured_statements
from tests.tableapi.world import api, data_of, error_of, errors_of, field, open_table, record, rule, table

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 2, 8, 30, 15, tzinfo=UTC)
NOW_TEXT = "2026-03-02 08:30:15"
NO_LINKS = "sysparm_exclude_reference_link=1"


@pytest.fixture(autouse=True)
def frozen_clock() -> Any:
    with patch.object(context, "now", lambda: NOW):
        yield


def add_set_rule(column: Column, watched: Column, set_to: str, value: str = "", clears: bool = False) -> SetRule:
    set_rule = SetRule(column=column, watched=watched, value=value, set_to=set_to, clears=clears)
    saving.save_set_on_change_rule(set_rule)
    return set_rule


@pytest.fixture(params=["one row", "in a family"])
def device(request: pytest.FixtureRequest) -> Table:
    """Writes to a table with a child need several statements."""
    device = table("device")
    field("device", "name")
    state_column = field("device", "state", choices={"1": "New", "2": "Open", "5": "Closed"})
    add_set_rule(field("device", "changed_at", "datetime"), state_column, "javascript:gs.now()")
    add_set_rule(field("device", "closed_at", "datetime"), state_column, "javascript:gs.now()", "5", clears=True)
    user_column = field("device", "closed_by", target="user")
    add_set_rule(user_column, state_column, "javascript:gs.getUserID()", "5", clears=True)
    add_set_rule(field("device", "was_open", "boolean"), state_column, "true", "2")
    if request.param == "in a family":
        table("laptop", parent="device")
    open_table("device")
    return device


def rule_values(record: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("changed_at", "closed_at", "closed_by", "was_open"))


def change_device(user: User, sys_id: str, body: dict[str, Any], method: str = "patch") -> dict[str, Any]:
    return data_of(getattr(api(user), method)(f"device/{sys_id}?{NO_LINKS}", body))[0]


def test_rules_set_and_clear_columns(device: Table, alice: User, bob: User):
    new_record = data_of(api(bob).post(f"device?{NO_LINKS}", {"name": "a", "state": "1"}))[0]
    assert rule_values(new_record) == (NOW_TEXT, None, None, None)
    sys_id = new_record["sys_id"]
    hour_later = NOW + timedelta(hours=1)
    with patch.object(context, "now", lambda: hour_later):
        assert rule_values(change_device(bob, sys_id, {"name": "b"})) == (NOW_TEXT, None, None, None)
        assert rule_values(change_device(bob, sys_id, {"state": "1"})) == (NOW_TEXT, None, None, None)
        assert rule_values(change_device(bob, sys_id, {"state": "2"})) == ("2026-03-02 09:30:15", None, None, True)
    for user, body in ((alice, {"state": "5", "name": "c"}), (bob, {"state": "5"})):
        assert rule_values(change_device(user, sys_id, body)) == (NOW_TEXT, NOW_TEXT, alice.pk, True)
    assert rule_values(change_device(bob, sys_id, {"state": "1"}, "put")) == (NOW_TEXT, None, None, True)
    assert rule_values(change_device(bob, sys_id, {"state": None})) == (NOW_TEXT, None, None, True)


def test_rules_apply_to_new_records(device: Table, bob: User):
    for body, expected_values in (({"state": "5"}, (NOW_TEXT, NOW_TEXT, bob.pk, None)), ({"name": "a"}, (None,) * 4)):
        assert rule_values(data_of(api(bob).post(f"device?{NO_LINKS}", body))[0]) == expected_values
    api(bob).post("/rest/v1/bulk/device", [{"state": "5"}, {"state": "1"}])
    records = data_of(api(bob).get("device", exclude_reference_link=1, query="ORDERBYsys_id"))
    assert rule_values(records[-2]) == (NOW_TEXT, NOW_TEXT, bob.pk, None)
    assert rule_values(records[-1]) == (NOW_TEXT, None, None, None)


def test_set_columns_are_read_only_but_can_be_sent_back(device: Table, alice: User, bob: User):
    new_record = data_of(api(bob).post(f"device?{NO_LINKS}", {"state": "5"}))[0]
    path = f"device/{new_record['sys_id']}?{NO_LINKS}"

    assert errors_of(api(bob).post("device", {"closed_at": NOW_TEXT})) == [(400, "read_only", "closed_at")]
    assert errors_of(api(bob).patch(path, {"closed_at": "2020-01-01 00:00:00"})) == [(400, "read_only", "closed_at")]
    assert data_of(api(bob).patch(path, {"closed_at": NOW_TEXT, "name": "a"}))[0]["name"] == "a"
    assert data_of(api(bob).put(path, data_of(api(bob).get(path))[0]))[0]["closed_at"] == NOW_TEXT


def test_import_can_write_set_columns(device: Table, alice: User):
    body = {"state": "5", "closed_at": "2020-01-01 00:00:00"}
    new_record = data_of(api(alice).post(f"device?sysparm_import=1&{NO_LINKS}", body))[0]

    assert rule_values(new_record) == (NOW_TEXT, "2020-01-01 00:00:00", alice.pk, None)


def test_set_values_bypass_column_rules_but_not_record_rules(device: Table, bob: User):
    sys_id = record("device", name="a", state="1")
    rule("write", "device", "closed_at", roles=["itil"])
    assert change_device(bob, sys_id, {"state": "5"})["closed_at"] == NOW_TEXT

    rule("write", "device", roles=["itil"])
    other_device = record("device", name="a", state="1")
    Rule.objects.filter(table=device, operation="write", column_name="").delete()
    rule("write", "device", condition="closed_atISEMPTY")
    assert error_of(api(bob).patch(f"device/{other_device}", {"state": "5"}))[:2] == (403, "access_denied")
    assert data_of(api(bob).get(f"device/{other_device}"))[0]["state"] == "1"


def test_history_contains_only_changed_columns(device: Table, bob: User):
    sys_id = data_of(api(bob).post("device", {"state": "5"}))[0]["sys_id"]
    change_device(bob, sys_id, {"state": "2"})
    change_device(bob, sys_id, {"state": "1"})
    entries = data_of(api(bob).get(f"device/{sys_id}/history"))

    assert [sorted(entry["fields"]) for entry in entries[:2]] == [
        ["state"], ["closed_at", "closed_by", "state", "was_open"]
    ]  # fmt: skip


def test_history_does_not_reveal_changes_of_a_hidden_column(device: Table, alice: User, bob: User):
    """An entry for a set column that stays the same would reveal the change."""
    sys_id = data_of(api(alice).post("device", {"state": "5"}))[0]["sys_id"]
    rule("read", "device", "state", roles=["itil"])
    rule("read", "device", "was_open", roles=["itil"])
    initial_count = len(data_of(api(bob).get(f"device/{sys_id}/history")))
    change_device(alice, sys_id, {"state": "2"})
    count_after_reopening = len(data_of(api(bob).get(f"device/{sys_id}/history")))
    change_device(alice, sys_id, {"state": None})

    assert count_after_reopening == initial_count + 1  # closed_at was cleared
    assert len(data_of(api(bob).get(f"device/{sys_id}/history"))) == count_after_reopening


def test_rule_can_be_created_and_deleted_through_the_api(alice: User, bob: User):
    table("device")
    state_column, time_column = field("device", "state"), field("device", "at", "datetime")
    open_table("device")
    columns = {"column": time_column.pk, "watched": state_column.pk}
    body = {**columns, "value": "x", "set_to": "javascript:gs.now()", "clears": True}

    assert error_of(api(bob).post("sys_set_on_change", body))[0] in (403, 404)
    (created_rule,) = data_of(api(alice).post("sys_set_on_change", body))
    assert data_of(api(bob).post("device", {"state": "x"}))[0]["at"] == NOW_TEXT
    assert api(alice).delete(f"sys_set_on_change/{created_rule['sys_id']}").status_code == 200
    assert data_of(api(bob).post("device", {"state": "x", "at": None}))[0]["at"] is None


@pytest.mark.parametrize(
    ("column", "watched", "attributes", "error_field"),
    [
        ("at", "at", {}, "watched"),
        ("at", "elsewhere", {}, "watched"),
        ("at", "tags", {}, "watched"),
        ("name", "needed", {"set_to": "x"}, ""),
        ("needed", "name", {"set_to": "x"}, "column"),
        ("at", "name", {"set_to": "javascript:gs.nothing()"}, "set_to"),
        ("at", "name", {"set_to": "soon"}, "set_to"),
        ("at", "rank", {"value": "x"}, "value"),
        ("name", "set", {"set_to": "x"}, "watched"),
        ("set", "name", {}, "column"),
        ("at", "watched", {}, ""),
        ("watched", "name", {"set_to": "x"}, "watched"),
    ],
)
def test_only_valid_rules_are_saved(column: str, watched: str, attributes: dict[str, str], error_field: str, db: Any):
    table("device")
    table("other")
    columns = {name: field("device", name, mandatory=name == "needed") for name in ("name", "needed", "watched")}
    columns |= {"at": field("device", "at", "datetime"), "set": field("device", "set", "datetime")}
    columns |= {"rank": field("device", "rank", "integer"), "tags": field("device", "tags", "list", target="user")}
    columns["elsewhere"] = field("other", "name")
    add_set_rule(columns["set"], columns["watched"], "javascript:gs.now()")
    options: dict[str, Any] = {"set_to": "javascript:gs.now()", **attributes}
    if not error_field:
        add_set_rule(columns[column], columns[watched], **options)
        return
    with pytest.raises(ValidationError) as exc_info:
        add_set_rule(columns[column], columns[watched], **options)
    assert error_field in exc_info.value.message_dict


def test_rule_is_deleted_with_its_column(alice: User):
    table("device")
    state_column, time_column = field("device", "state"), field("device", "at", "datetime")
    add_set_rule(time_column, state_column, "javascript:gs.now()")
    state_column.delete()

    assert not SetRule.objects.filter(column=time_column).exists()
    open_table("device")
    assert data_of(api(alice).post("device", {"at": NOW_TEXT}))[0]["at"] == NOW_TEXT


def test_rule_without_columns_is_refused(alice: User):
    assert {error[1] for error in errors_of(api(alice).post("sys_set_on_change", {"set_to": "x"}))} == {"mandatory"}


def test_rule_whose_value_became_invalid_never_matches(alice: User, bob: User):
    """A manual change to the database or an older version can leave such a rule."""
    with schema_editor.allow_product_changes():
        Choice.objects.filter(column__table__name="task", column__name="state", value="5").delete()
    sys_id = data_of(api(alice).post("task", {"short_description": "x"}))[0]["sys_id"]
    changed_task = data_of(api(alice).patch(f"task/{sys_id}", {"state": "2"}))[0]
    assert changed_task["state_changed_at"] is not None and changed_task["closed_at"] is None


def test_choice_in_a_rule_cannot_be_removed(alice: User):
    choice = Choice.objects.get(column__table__name="task", column__name="state", value="5")
    for response in (
        api(alice).delete(f"sys_choice/{choice.pk}"),
        api(alice).patch(f"sys_choice/{choice.pk}", {"value": "9"}),
    ):
        assert response.status_code in (409, 422) and "set-on-change rule" in response.json()["errors"][0]["message"]


@pytest.mark.parametrize("changed_attributes", [{"mandatory": True}, {"is_unique": True}, {"type": "wysiwyg"}])
def test_incompatible_change_of_a_set_column_is_refused(changed_attributes: dict[str, Any], device: Table, alice: User):
    watched_column, note_column = field("device", "kind"), field("device", "note")
    body = {"column": note_column.pk, "watched": watched_column.pk, "value": "a", "set_to": "b"}
    assert api(alice).post("sys_set_on_change", body).status_code == 201
    response = api(alice).patch(f"sys_db_column/{note_column.pk}", changed_attributes)
    assert response.status_code == 422 and "set-on-change rule" in response.json()["errors"][0]["message"]


def test_task_records_when_and_by_whom_it_was_closed(alice: User, bob: User):
    task = data_of(api(alice).post(f"task?{NO_LINKS}", {"short_description": "a"}))[0]
    assert (task["state_changed_at"], task["closed_at"], task["closed_by"]) == (NOW_TEXT, None, None)
    closed_task = data_of(api(alice).patch(f"task/{task['sys_id']}?{NO_LINKS}", {"state": "5"}))[0]
    assert (closed_task["closed_at"], closed_task["closed_by"]) == (NOW_TEXT, alice.pk)
    reopened_task = data_of(api(alice).patch(f"task/{task['sys_id']}?{NO_LINKS}", {"state": "2"}))[0]
    assert (reopened_task["closed_at"], reopened_task["closed_by"]) == (None, None)


def test_customised_task_table_gets_only_applicable_set_rules(db: None):
    SetRule.objects.all().delete()
    Column.objects.filter(table__name="task", name="closed_by").update(mandatory=True)
    Column.objects.get(table__name="task", name="closed_at").delete()
    shipped_tables._add_set_on_change_rules()

    assert list(SetRule.objects.values_list("column__name", flat=True)) == ["state_changed_at"]


def test_change_of_a_watched_column_is_one_statement(alice: User):
    task_id = data_of(api(alice).post("task", {"short_description": "a"}))[0]["sys_id"]
    for state in ("2", "5", "5", "1"):
        api(alice).patch(f"task/{task_id}", {"short_description": state})  # loads the catalogue and the key
        with captured_statements() as statements:
            api(alice).patch(f"task/{task_id}", {"state": state, "short_description": f"changed to {state}"})
        assert len([sql for sql in statements if "records." in sql]) == 1, statements


def test_rule_cannot_set_the_next_number(alice: User):
    table("part", number_prefix="PRT")
    watched_column, label_column = field("part", "kind"), field("part", "label")
    body = {"column": label_column.pk, "watched": watched_column.pk, "set_to": NEXT_NUMBER}
    response = api(alice).post("sys_set_on_change", body)
    assert errors_of(response) == [(422, "invalid_value", "set_to")] and "record numbers" in response.content.decode()
