"""Changes of hidden records and values change no feed and no history."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from tableapi.catalogue.definitions import Column, Table
from tableapi.changes import feed_statement
from tableapi.http.entry_views import ChangeFeedView, HistoryView
from tableapi.sql import change_rows
from tableapi.sql.statement_builder import StatementBuilder, TableAlias
from tableapi.write import designed_records, references
from tests.tableapi.designs import query_rows
from tests.tableapi.laws.storage import active_catalogue, rollback_afterwards
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.pairs import Pair
from tests.tableapi.noninterference.runner import insert_world, send_to_view, stored_tables
from tests.tableapi.oracle import Caller, World

pytestmark = pytest.mark.django_db
PAIR_COUNT = 40
PAGE_SIZES = ("1", "2", "20")


def log_creations(world: World) -> None:
    """Log the creation of every record of the world."""
    for name, table in world.catalogue.tables.items():
        record = TableAlias(StatementBuilder(), table)
        columns = [column for column in table.columns.values() if not column.is_sys]

        def column_sql(column: Column, name: str, record: TableAlias = record) -> str:
            return record.database_column(column, name)

        new_values = change_rows.values_sql(columns, column_sql)
        root_alias = record.row_aliases()[-1]
        source = f"{record.from_sql()} WHERE {root_alias}.sys_db_table_id = %s ORDER BY {root_alias}.sys_id"
        query_rows(
            change_rows.change_sql("create", record=root_alias, user="NULL", new=new_values, source=source), table.id
        )


def change_hidden_records(random: Random, pair: Pair, world: World) -> None:
    """Update or delete hidden records. Deletions clear hidden references. Rules test neither these nor the name, so
    hidden records stay hidden."""
    visible_text = json.dumps(list(pair.visible_values.values()), default=str)
    for name, table in world.catalogue.tables.items():
        for sys_id in [sys_id for sys_id in world.rows[name] if (name, sys_id) not in pair.visible_values]:
            if random.random() < 0.5:
                value = random.choice(["a", "b", None])
                designed_records.update(world.catalogue, table, sys_id, {table.columns["name"]: value})
            if random.random() < 0.5 and sys_id not in visible_text:  # no visible reference
                references.clear_references(world.catalogue, table, sys_id)
                designed_records.delete(table, sys_id)


def read_feed(caller: Caller, table: str, page_size: str) -> list[Any]:
    """Return all pages. Cursors are opaque, so only whether they stay the same is compared."""
    pages: list[Any] = []
    cursor, has_new_cursor = "", True
    while has_new_cursor:
        query = f"sysparm_limit={page_size}" + (f"&since={cursor}" if cursor else "")
        response = send_to_view(ChangeFeedView, caller, query, table=table)
        body = json.loads(response.content)
        has_new_cursor = body.get("cursor", cursor) not in ("", cursor)
        cursor = body.pop("cursor", cursor)
        pages.append((response.status_code, body, "Link" in response, has_new_cursor))
    return pages


def collect_responses(pair: Pair, table: Table, page_size: str) -> list[Any]:
    ids = sorted({*pair.first.rows[table.name], *pair.second.rows[table.name]})
    histories = [send_to_view(HistoryView, pair.caller, table=table.name, sys_id=sys_id).content for sys_id in ids]
    return [*read_feed(pair.caller, table.name, page_size), *histories]


def test_changes_of_hidden_data_change_no_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_statement, "IS_SETTLED", "TRUE")  # the test is one transaction
    entry_count = 0
    for seed in range(PAIR_COUNT):
        random = Random(seed)
        pair = pairs.make_pair(random, may_write=True)
        page_size = random.choice(PAGE_SIZES)
        with stored_tables(pair):
            responses = []
            for world in (pair.first, pair.second):
                with rollback_afterwards(), active_catalogue(pair.catalogue):
                    insert_world(world)
                    log_creations(world)
                    change_hidden_records(random, pair, world)
                    tables = pair.catalogue.tables.values()
                    responses.append([collect_responses(pair, table, page_size) for table in tables])
        assert responses[0] == responses[1], f"seed {seed}"
        entry_count += str(responses[0]).count("sys_id")
    assert entry_count > PAIR_COUNT
