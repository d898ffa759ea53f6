"""Shipped tables and rules, created once."""

from typing import Any

import pytest

from accounts.models import Role, User
from tableapi.ddl import schema_editor
from tableapi.design import index_builder, saving
from tableapi.models import Choice, Column, Rule, State, Table
from tableapi.setup import shipped_tables
from tests.tableapi.designs import column_types_of, indexes_of, insert_row, query_rows
from tests.tableapi.world import api

pytestmark = pytest.mark.django_db


def test_shipped_tables_exist():
    for name in ("service", "sys_schedule", "sys_indication", "task"):
        table = Table.objects.get(name=name)
        assert not table.is_system
        column_names = {column.name for column in table.columns.all()}
        assert column_names == {name for name in column_types_of(name) if not name.startswith("sys_")}
        insert_row(name)
    deferred_table_names = Table.objects.filter(deferred_create=True).values_list("name", flat=True)
    assert set(deferred_table_names) == {"sys_schedule", "sys_indication"}


def test_task_matches_the_specified_sample():
    types = column_types_of("task")

    assert len(types) == 7 + 32
    assert (types["followers_list"], types["closed_at"]) == ("character varying(32)[]", "timestamp with time zone")
    column = Column.objects.get(table__name="task", name="state")
    assert (column.default_value, column.is_indexed) == ("1", False)
    assert list(column.choices.values_list("label", flat=True)) == [
        "New",
        "In progress",
        "On hold",
        "Resolved",
        "Closed",
    ]
    target = Column.objects.get(table__name="task", name="parent_id").reference_table
    assert target is not None and target.name == "task"
    assert Table.objects.get(name="task").number_prefix == "TSK"


@pytest.mark.parametrize(
    ("changes", "is_hot_update"),
    [
        ({"state": "2"}, True),
        ({"work_notes": "Called back."}, True),
        ({"short_description": "Two printers jam", "description": None}, True),
        ({"priority": "1"}, False),
        ({"description": "Both of them."}, False),
    ],
)
def test_only_rare_changes_of_a_task_write_to_indexes(alice: User, changes: dict[str, Any], is_hot_update: bool):
    task_id = insert_row("task", sys_db_table_id=Table.objects.get(name="task").pk)
    update_counts_query = (
        "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relid = 'records.task'::regclass"
    )
    updates_before, hot_updates_before = query_rows(update_counts_query)[0]
    assert api(alice).patch(f"task/{task_id}", changes).status_code == 200

    updates_after, hot_updates_after = query_rows(update_counts_query)[0]
    assert (updates_after - updates_before, hot_updates_after - hot_updates_before) == (1, int(is_hot_update))


@pytest.fixture
def state_column_of_earlier_version() -> Column:
    """The column `state` of `task` as created by an earlier version (shipped level 2)."""
    column = Column.objects.get(table__name="task", name="state")
    Column.history.filter(sys_id=column.pk).delete()
    Column.objects.filter(pk=column.pk).update(is_indexed=True)
    column.is_indexed = True
    index_name = f'"D{column.table_id}"'
    query_rows(f"DROP INDEX records.{index_name}; CREATE INDEX {index_name} ON records.task (sys_updated_at, sys_id)")
    State.objects.update(shipped_level=2)
    return column


def upgrade_removes_indexes(column: Column) -> bool:
    shipped_tables.create_shipped_tables()
    method, _, remainder = indexes_of("task")[f"D{column.table_id}"].partition(" (sys_updated_at")
    assert (method, remainder[:1]) in {("btree", ","), ("brin", ")")}
    assert column.refreshed().is_indexed is (method == "btree")
    return method == "brin"


def test_upgrade_removes_indexes_that_make_changes_expensive(state_column_of_earlier_version: Column):
    assert upgrade_removes_indexes(state_column_of_earlier_version)


def test_upgrade_keeps_the_indexes_of_a_changed_column(state_column_of_earlier_version: Column):
    state_column_of_earlier_version.label = "Status"
    saving.save_column(state_column_of_earlier_version)
    assert not upgrade_removes_indexes(state_column_of_earlier_version)


def test_upgrade_keeps_the_indexes_of_a_large_table(state_column_of_earlier_version: Column, monkeypatch: Any):
    monkeypatch.setattr(shipped_tables, "MAX_RECORDS_TO_CHANGE", 1)
    for state in "12":
        insert_row("task", state=state)
    assert not upgrade_removes_indexes(state_column_of_earlier_version)


def test_everybody_can_read_names_and_nothing_else():
    admin_role_id = Role.objects.get(name="admin").pk
    for table, readable_columns in shipped_tables.READABLE_COLUMNS.items():
        rules = Rule.objects.filter(table__name=table)
        assert set(rules.values_list("operation", flat=True)) == {"read"}
        assert set(rules.filter(roles=[]).values_list("column_name", flat=True)) == {"", *readable_columns}
        assert list(rules.exclude(roles=[]).values_list("column_name", "roles")) == [("*", [admin_role_id])]


def test_second_run_creates_nothing():
    version_before = State.objects.get().version
    shipped_tables.create_shipped_tables()

    assert State.objects.get().version == version_before


def test_deleted_shipped_tables_and_rules_stay_deleted():
    Table.objects.get(name="task").delete()
    Rule.objects.filter(table__name="user").delete()
    shipped_tables.create_shipped_tables()

    assert column_types_of("task") == {} and not Rule.objects.filter(table__name="user").exists()


def test_failure_rolls_everything_back(monkeypatch: Any):
    Table.objects.get(name="task").delete()
    for name in ("service", "sys_schedule", "sys_indication"):
        Table.objects.get(name=name).delete()
    Rule.objects.all().delete()
    State.objects.update(shipped_level=0)
    monkeypatch.setattr(shipped_tables, "_create_rules", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        shipped_tables.create_shipped_tables()

    assert column_types_of("task") == {} and State.objects.get().shipped_level == 0
    monkeypatch.undo()
    shipped_tables.create_shipped_tables()
    assert column_types_of("task") and Choice.objects.filter(column__table__name="task").count() == 19
    assert query_rows("SELECT count(*) FROM records.task") == [(0,)]


def test_shipped_design_passes_validation():
    records = [*Column.objects.filter(table__is_system=False), *Choice.objects.filter(column__table__is_system=False)]
    for record in [*Table.objects.filter(is_system=False), *Rule.objects.all(), *records]:
        with schema_editor.allow_product_changes():
            saving.validate(record)
    assert [index for index in index_builder.missing_indexes() if index.schema == "records"] == []
