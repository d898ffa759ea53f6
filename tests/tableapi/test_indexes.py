"""Indexes of tables with records are built by the worker without blocking writes."""

from typing import Any

import psycopg
import pytest
from django.db import connection

from tableapi import tasks
from tableapi.ddl import schema_editor
from tableapi.design import index_builder, saving
from tableapi.models import Column, Table
from tests.tableapi.designs import indexes_of, insert_row, make_column, make_table, query_rows

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def index_build_requests(monkeypatch: Any) -> list[bool]:
    """One item for each task that was sent to the worker: True if the task builds indexes."""
    requests: list[bool] = []
    monkeypatch.setattr(
        "tableapi.ddl.schema_editor.wake_worker", lambda task: requests.append(task == "tableapi.tasks.build_indexes")
    )
    return requests


@pytest.fixture
def color_column(index_build_requests: list[bool]) -> Column:
    """A column that was marked as indexed when its table already had records."""
    index_builder.build_indexes()
    table = make_table("device")
    column = make_column(table, "color")
    insert_row("device", color="red")
    column.is_indexed = True
    saving.save_column(column)
    return column


def test_table_with_records_gets_its_indexes_from_the_worker(color_column: Column, index_build_requests: list[bool]):
    index_names = [f"I{color_column.pk}", f"W{color_column.pk}"]
    assert not set(index_names) & indexes_of("device").keys()
    assert index_build_requests == [True]
    assert [index.name for index in index_builder.missing_indexes()] == index_names

    tasks.build_indexes()
    assert set(index_names) <= indexes_of("device").keys()
    assert index_builder.missing_indexes() == [] and index_builder.build_indexes() == []


def test_unneeded_index_is_dropped(color_column: Column, index_build_requests: list[bool]):
    index_builder.build_indexes()
    color_column.is_indexed = False
    saving.save_column(color_column)
    assert index_build_requests == [True, True]

    assert sorted(index_builder.build_indexes()) == [f"I{color_column.pk}", f"W{color_column.pk}"]
    assert not {f"I{color_column.pk}", f"W{color_column.pk}"} & indexes_of("device").keys()
    assert f"C{color_column.table_id}" in indexes_of("device"), "the indexes of the table itself stay"


def test_invalid_index_is_rebuilt(color_column: Column):
    index_builder.build_indexes()
    index_name = f"I{color_column.pk}"
    query_rows("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", f'records."{index_name}"')
    assert [index.name for index in index_builder.missing_indexes()] == [index_name]

    assert index_builder.build_indexes() == [index_name]
    assert query_rows("SELECT indisvalid FROM pg_index WHERE indexrelid = %s::regclass", f'records."{index_name}"') == [
        (True,)
    ]


def test_product_tables_have_indexes():
    login_column = Column.objects.get(table__name="user", name="login")
    index_builder.build_indexes()

    rows = query_rows(
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND indexname = %s", f"I{login_column.pk}"
    )
    assert "lower(((login)::text COLLATE pg_c_utf8))" in rows[0][0]
    Column.objects.filter(pk=login_column.pk).update(is_unique=False, is_display=False)
    assert index_builder.build_indexes() == [f"I{login_column.pk}"]


def test_table_family_has_an_index(index_build_requests: list[bool]):
    device = make_table("device")
    insert_row("device")
    make_table("laptop", parent=device)
    assert f"I{device.pk}" not in indexes_of("device") and index_build_requests == [True]

    assert f"I{device.pk}" in index_builder.build_indexes()


def test_only_one_worker_builds_indexes(color_column: Column):
    parameters = connection.get_connection_params()
    for name in ("cursor_factory", "context"):
        parameters.pop(name, None)
    with psycopg.connect(**parameters, autocommit=True) as other_connection:
        other_connection.execute("SELECT pg_advisory_lock(%s)", [index_builder.INDEX_BUILD_LOCK_ID])
        assert index_builder.build_indexes() == []
        # A closed connection holds its locks until its backend has ended.
        other_connection.execute("SELECT pg_advisory_unlock(%s)", [index_builder.INDEX_BUILD_LOCK_ID])
    assert index_builder.build_indexes() != []


def test_failed_index_does_not_block_others(color_column: Column):
    shape_column = make_column(color_column.table, "shape", is_indexed=True)
    query_rows("ALTER TABLE records.device DROP COLUMN color")  # as if the column had just been dropped

    assert {f"I{shape_column.pk}", f"W{shape_column.pk}"} <= set(index_builder.build_indexes())


def test_design_works_without_the_broker(unavailable_broker: list[str]):
    table = make_table("device")
    insert_row("device")
    make_column(table, "color", is_indexed=True)

    assert Table.objects.get(name="device").columns.count() == 1
    assert schema_editor.has_records(table)
    assert unavailable_broker == ["tableapi.tasks.build_indexes"]
