"""Every write to a record adds one row to the change log in the same transaction."""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accounts.models import Group, User
from system import properties, tasks
from system.background import change_partitions
from system.models import Change
from system.property_definitions import CHANGE_HISTORY_DAYS
from tableapi.models import Column, Table
from tableapi.write import single_statement
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, data_of, field, open_table, record, rule, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def device(db: Any) -> Table:
    new_table = table("device", number_prefix="DEV")
    field("device", "name")
    field("device", "rank", "integer", default_value="7")
    field("device", "seen_at", "datetime")
    field("device", "pin", "secret")
    field("device", "data", "json")
    field("device", "story", "wysiwyg")
    field("device", "other", target="device")
    open_table(new_table)
    return new_table


@pytest.fixture(params=["one statement", "transaction"])
def each_write_path(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "transaction":
        monkeypatch.setattr(single_statement, "_run", lambda *_, **__: None)


def changes_of(sys_id: str) -> list[Change]:
    return list(Change.objects.filter(record_id=sys_id).order_by("id"))


def values_by_name(values: dict[str, Any], table_name: str = "device") -> dict[str, Any]:
    """Replace column ids with column names."""
    names_by_id = dict(Column.objects.filter(table__name=table_name).values_list("sys_id", "name"))
    return {names_by_id.get(column_id, column_id): value for column_id, value in values.items()}


def create_device(user: User, **values: Any) -> str:
    return str(data_of(api(user).post("device", values))[0]["sys_id"])


def test_creation_logs_the_values_of_the_record(device: Table, bob: User, each_write_path: None):
    sys_id = create_device(bob, name="Lamp", seen_at="2026-01-02 03:04:05")
    (change,) = changes_of(sys_id)
    assert (change.table_key, change.version, change.operation) == (device.pk, 0, "create")
    assert change.changed_by == bob.pk and abs(datetime.now(UTC) - change.at) < timedelta(minutes=1)
    number = query_rows("SELECT number FROM records.device WHERE sys_id = %s", sys_id)[0][0]
    new_values = values_by_name(change.new_values)
    assert new_values.pop("number", number) == number
    assert new_values == {"name": "Lamp", "rank": 7, "seen_at": "2026-01-02T03:04:05+00:00"}
    assert change.old_values == {}


def test_update_logs_old_and_new_values(device: Table, bob: User, each_write_path: None):
    sys_id = create_device(bob, name="Lamp")
    api(bob).patch(f"device/{sys_id}", {"name": "Light", "rank": 8})
    change = changes_of(sys_id)[-1]
    assert (change.version, change.operation, change.changed_by) == (1, "update", bob.pk)
    assert values_by_name(change.old_values) == {"name": "Lamp", "rank": 7}
    assert values_by_name(change.new_values) == {"name": "Light", "rank": 8}


def test_unchanged_and_refused_writes_log_nothing(device: Table, bob: User, each_write_path: None):
    sys_id = create_device(bob, name="Lamp")
    for body in ({"name": "Lamp"}, {"rank": "many"}, {"other": "0" * 18}, {"none": 1}):
        api(bob).patch(f"device/{sys_id}", body)
    assert len(changes_of(sys_id)) == 1


def test_cleared_values_are_not_among_the_new_values(device: Table, bob: User):
    sys_id = create_device(bob, name="Lamp", data={"a": None})
    api(bob).put(f"device/{sys_id}", {"rank": 7})
    change = changes_of(sys_id)[-1]
    assert values_by_name(change.old_values) == {"name": "Lamp", "data": {"a": None}}
    assert change.new_values == {}


def test_deletion_logs_every_value(device: Table, bob: User):
    sys_id = create_device(bob, name="Lamp", story="<p>Long <b>ago</b></p>")
    assert api(bob).delete(f"device/{sys_id}").status_code == 200
    change = changes_of(sys_id)[-1]
    old_values = values_by_name(change.old_values)
    assert (change.operation, change.changed_by, change.new_values) == ("delete", bob.pk, {})
    assert old_values["name"] == "Lamp" and old_values["rank"] == 7 and old_values["sys_created_by"] == bob.pk
    story_column = Column.objects.get(table=device, name="story")
    assert (old_values["story"], old_values[f"P{story_column.pk}"]) == ("<p>Long <b>ago</b></p>", "Long ago")


def test_secrets_are_never_logged(device: Table, bob: User):
    sys_id = create_device(bob, name="Lamp", pin="1234-secret")
    api(bob).patch(f"device/{sys_id}", {"pin": "5678-secret"})
    api(bob).delete(f"device/{sys_id}")
    changes = changes_of(sys_id)
    pin_column = Column.objects.get(table=device, name="pin")
    assert [change.operation for change in changes] == ["create", "update", "delete"]
    assert all(pin_column.pk not in {**change.old_values, **change.new_values} for change in changes)
    assert "secret" not in str([(change.old_values, change.new_values) for change in changes])


@pytest.mark.parametrize("column", ["name", "story", "data"])
def test_long_values_are_truncated_and_hashed(device: Table, bob: User, each_write_path: None, column: str):
    long_text = "ä" * 1_001
    sys_id = create_device(bob, **{column: {"text": long_text} if column == "data" else long_text})
    stored_text = f'{{"text": "{long_text}"}}' if column == "data" else long_text
    new_values = values_by_name(changes_of(sys_id)[0].new_values)
    column_id = Column.objects.get(table=device, name=column).pk
    assert new_values[column] == stored_text[:1_000]
    assert new_values[f"{column_id}#sha256"] == hashlib.sha256(stored_text.encode()).hexdigest()


def test_write_to_a_child_record_logs_one_row_for_all_its_tables(device: Table, bob: User):
    phone = table("phone", parent="device")
    field("phone", "line")
    open_table(phone)
    sys_id = data_of(api(bob).post("phone", {"name": "Desk", "line": "17"}))[0]["sys_id"]
    api(bob).patch(f"device/{sys_id}", {"rank": 9})
    api(bob).patch(f"phone/{sys_id}", {"name": "Hall", "line": "18"})
    api(bob).delete(f"device/{sys_id}")
    changes = changes_of(sys_id)
    assert [(change.table_key, change.operation, change.version) for change in changes] == [
        (phone.pk, "create", 0), (phone.pk, "update", 1), (phone.pk, "update", 2), (phone.pk, "delete", 2)
    ]  # fmt: skip
    line_id = Column.objects.get(table=phone, name="line").pk
    assert (changes[2].old_values[line_id], changes[2].new_values[line_id]) == ("17", "18")
    assert changes[3].old_values[line_id] == "18" and values_by_name(changes[3].old_values)["rank"] == 9


def test_writes_to_product_tables_are_logged_without_secrets(alice: User):
    caller = api(alice)
    body = {"login": "zoe", "password": "correct horse 77", "first_name": "Zoe"}
    sys_id = data_of(caller.post("user", body))[0]["sys_id"]
    caller.patch(f"user/{sys_id}", {"first_name": "Zoé"})
    caller.delete(f"user/{sys_id}")
    creation, update, deletion = changes_of(sys_id)
    assert {change.table_key for change in (creation, update, deletion)} == {"user"}
    assert creation.new_values["login"] == "zoe" and creation.changed_by == alice.pk
    assert (update.old_values, update.new_values) == ({"first_name": "Zoe"}, {"first_name": "Zoé"})
    assert deletion.old_values["first_name"] == "Zoé"
    assert all("password" not in {**change.old_values, **change.new_values} for change in (creation, update, deletion))


def test_saving_some_columns_of_a_product_record_logs_only_these(db: Any):
    group = Group.objects.create(name="Network")
    group.name, group.active = "Networks", False
    group.save(update_fields=["active"])
    change = changes_of(group.pk)[-1]
    assert (change.old_values, change.new_values) == ({"active": True}, {"active": False})


def test_references_that_a_deletion_clears_are_logged(device: Table, alice: User, bob: User):
    table("laptop", parent="device")
    field("laptop", "slots", "list", target="device")
    lamp, other_lamp = create_device(bob, name="Lamp"), create_device(bob, name="Other")
    laptop = record("laptop", other=lamp, slots=[other_lamp, lamp])
    query_rows("UPDATE records.device SET other = sys_id WHERE sys_id = %s", lamp)  # a self-reference, not cleared
    api(bob).delete(f"device/{lamp}")
    slots_id, other_id = Column.objects.get(name="slots").pk, Column.objects.get(name="other").pk
    changes = {next(iter(change.old_values)): change for change in changes_of(laptop) if change.operation == "clear"}
    assert {(change.changed_by, change.version) for change in changes.values()} == {(bob.pk, 0)}
    assert (changes[other_id].old_values, changes[other_id].new_values) == ({other_id: lamp}, {})
    assert changes[slots_id].old_values == {slots_id: [other_lamp, lamp]}
    assert changes[slots_id].new_values == {slots_id: [other_lamp]}
    assert {change.table_key for change in changes_of(laptop)} == {Table.objects.get(name="laptop").pk}
    assert [change.operation for change in changes_of(lamp)] == ["create", "delete"]


def test_references_of_product_records_that_a_deletion_clears_are_logged(alice: User, bob: User):
    custom_column = field("user", "x_firm", target="company")
    company = data_of(api(alice).post("company", {"name": "One"}))[0]["sys_id"]
    api(alice).patch(f"user/{bob.pk}", {"company": company, "x_firm": company})
    assert api(alice).delete(f"company/{company}").status_code == 200
    changes = [change for change in changes_of(bob.pk) if change.operation == "clear"]
    assert {(change.table_key, change.changed_by, change.version) for change in changes} == {("user", alice.pk, 1)}
    old_values = {name: value for change in changes for name, value in change.old_values.items()}
    assert old_values == {"company_id": company, custom_column.pk: company}
    assert User.objects.get(pk=bob.pk).company is None


def test_write_does_not_lock_a_hidden_record(device: Table, bob: User):
    """Otherwise, a request for a record that another writer has locked would take longer than for a missing one."""
    table("box")
    field("box", "name")
    rule("read", "box", condition="name!=Secret")
    rule("write", "box")
    hidden_id = record("box", name="Secret")
    api(bob).patch(f"box/{hidden_id}", {"name": "x"})
    assert query_rows("SELECT xmax::text FROM records.box WHERE sys_id = %s", hidden_id) == [("0",)]


def test_partitions_are_created_in_advance(db: Any):
    partition_names = {name for (name,) in query_rows(change_partitions.MONTHLY_PARTITIONS)}
    assert len(partition_names) >= 3 and f"sys_change_{datetime.now(UTC):%Y_%m}" in partition_names
    assert query_rows("SELECT count(*) FROM sys_change_other") == [(0,)]


def test_rows_without_a_partition_are_moved_to_a_new_one(db: Any):
    query_rows(f"DROP TABLE sys_change_{datetime.now(UTC):%Y_%m}")
    group = Group.objects.create(name="Network")
    assert query_rows("SELECT count(*) FROM sys_change_other") == [(1,)]
    tasks.update_change_partitions()
    assert query_rows("SELECT count(*) FROM sys_change_other") == [(0,)]
    assert len(changes_of(group.pk)) == 1


def test_expired_changes_are_deleted(db: Any):
    group = Group.objects.create(name="Network")
    for days in (0, 40, 100):
        query_rows(
            "INSERT INTO sys_change (at, table_key, record_id, version, operation, old_values, new_values) "
            "VALUES (now() - %s * interval '1 day', 'x', %s, 1, 'update', '{}', '{}')",
            days,
            str(days),
        )
    tasks.update_change_partitions()
    assert {change.record_id for change in Change.objects.filter(table_key="x")} == {"0", "40", "100"}
    properties.put(CHANGE_HISTORY_DAYS, "50")
    tasks.update_change_partitions()
    assert {change.record_id for change in Change.objects.filter(table_key="x")} == {"0", "40"}
    assert len(changes_of(group.pk)) == 1


def test_expired_partitions_are_dropped(db: Any):
    old_month = (datetime.now(UTC) - timedelta(days=100)).date().replace(day=1)
    change_partitions._create_partition(old_month, (old_month + timedelta(days=31)).replace(day=1))
    assert f"sys_change_{old_month:%Y_%m}" in {name for (name,) in query_rows(change_partitions.MONTHLY_PARTITIONS)}
    properties.put(CHANGE_HISTORY_DAYS, "50")
    tasks.update_change_partitions()
    assert f"sys_change_{old_month:%Y_%m}" not in {name for (name,) in query_rows(change_partitions.MONTHLY_PARTITIONS)}
