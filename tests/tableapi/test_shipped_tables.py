"""Shipped tables and rules, created once."""

from typing import Any

import pytest

from accounts.models import Role
from tableapi.ddl import schema_editor
from tableapi.design import index_builder, saving
from tableapi.models import Choice, Column, Rule, State, Table
from tableapi.setup import shipped_tables
from tests.tableapi.designs import ask, insert, types_of

pytestmark = pytest.mark.django_db


def test_shipped_tables_exist():
    for name in ("service", "sys_schedule", "sys_indication", "task"):
        table = Table.objects.get(name=name)
        assert not table.is_system
        columns = {column.name for column in table.columns.all()}
        assert columns == {each for each in types_of(name) if not each.startswith("sys_")}
        insert(name)
    deferred = Table.objects.filter(deferred_create=True).values_list("name", flat=True)
    assert set(deferred) == {"sys_schedule", "sys_indication"}


def test_task_matches_the_specified_sample():
    types = types_of("task")

    assert len(types) == 7 + 32
    assert (types["followers_list"], types["closed_at"]) == ("character varying(32)[]", "timestamp with time zone")
    column = Column.objects.get(table__name="task", name="state")
    assert (column.default_value, column.is_indexed) == ("1", True)
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


def test_everybody_reads_names_and_nothing_else():
    admin = Role.objects.get(name="admin").pk
    for table, open_ones in shipped_tables.READABLE.items():
        rules = Rule.objects.filter(table__name=table)
        assert set(rules.values_list("operation", flat=True)) == {"read"}
        assert set(rules.filter(roles=[]).values_list("column_name", flat=True)) == {"", *open_ones}
        assert list(rules.exclude(roles=[]).values_list("column_name", "roles")) == [("*", [admin])]


def test_second_run_creates_nothing():
    before = State.objects.get().version
    shipped_tables.create_shipped_tables()

    assert State.objects.get().version == before


def test_deleted_shipped_parts_stay_deleted():
    Table.objects.get(name="task").delete()
    Rule.objects.filter(table__name="user").delete()
    shipped_tables.create_shipped_tables()

    assert types_of("task") == {} and not Rule.objects.filter(table__name="user").exists()


def test_failure_rolls_everything_back(monkeypatch: Any):
    Table.objects.get(name="task").delete()
    for name in ("service", "sys_schedule", "sys_indication"):
        Table.objects.get(name=name).delete()
    Rule.objects.all().delete()
    State.objects.update(shipped_level=0)
    monkeypatch.setattr(shipped_tables, "_create_rules", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        shipped_tables.create_shipped_tables()

    assert types_of("task") == {} and State.objects.get().shipped_level == 0
    monkeypatch.undo()
    shipped_tables.create_shipped_tables()
    assert types_of("task") and Choice.objects.filter(column__table__name="task").count() == 19
    assert ask("SELECT count(*) FROM records.task") == [(0,)]


def test_shipped_design_passes_validation():
    records = [*Column.objects.filter(table__is_system=False), *Choice.objects.filter(column__table__is_system=False)]
    for record in [*Table.objects.filter(is_system=False), *Rule.objects.all(), *records]:
        with schema_editor.as_product():
            saving.validate(record)
    assert [index for index in index_builder.missing() if index.schema == "records"] == []
