"""The history of a record: its changes, with the fields that the caller may read now."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from system.records.change_log import HASH_SUFFIX
from tableapi.catalogue.definitions import Catalogue, Column, Table
from tableapi.database import statement_runner
from tableapi.query.parameters import RawParameters
from tableapi.read import pipeline
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller, ReadContext
from tableapi.read.entry_pages import Entry, EntryPage, page_of
from tableapi.sql.select import Statement
from tableapi.sql.statement_builder import StatementBuilder

from . import logged_values


@on_current_catalogue
def read_history(catalogue: Catalogue, caller: Caller, table_name: str, sys_id: str, raw: RawParameters) -> EntryPage:
    context = caller.context(catalogue)
    table = context.view.open_table(table_name)
    pipeline.fetch_record(context, table, sys_id, pipeline.minimal_output(context, table))  # raises 404
    return history_page(context, table, sys_id, raw)


def history_page(context: ReadContext, table: Table, sys_id: str, raw: RawParameters) -> EntryPage:
    """The history of a record that the caller can read."""
    columns = logged_values.readable_columns(context.view, table)

    def read_entries(before: str | None, limit: int) -> Iterator[tuple[str, Entry]]:
        inputs = context.inputs(
            sys_id=sys_id,
            tables=logged_values.family_keys(context.view.catalogue, table),
            keys=[key for key, column in columns.items() if not column.is_sys],
            before=None if before is None else int(before),
            limit=limit,
        )
        for row in statement_runner.fetch(context.view.cached("history", _history_statement), inputs):
            yield str(row[0]), _history_entry(columns, row)

    return page_of(raw, ["history", table.name, sys_id, context.caller.user_id], read_entries)


def _history_statement() -> Statement:
    """The changes since the record was created, newest first. An earlier record may have had the same id."""
    builder = StatementBuilder()
    is_of_record = (
        f"record_id = {builder.input('sys_id', 'varchar')} AND table_key = ANY ({builder.input('tables', 'varchar[]')})"
    )
    creation = f"SELECT max(id) FROM public.sys_change WHERE {is_of_record} AND operation = 'create'"
    before, limit = builder.input("before", "bigint"), builder.input("limit", "bigint")
    is_visible = f"(old_values || new_values) ?| {builder.input('keys', 'text[]')}"
    sql = (
        "SELECT id, version, operation, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'), changed_by, "
        f"old_values::text, new_values::text FROM public.sys_change WHERE {is_of_record} AND {is_visible} "
        f"AND id >= coalesce(({creation}), 0) AND id < coalesce({before}, id + 1) ORDER BY id DESC LIMIT {limit}"
    )
    return Statement(sql, builder.parameters)


def _history_entry(columns: Mapping[str, Column], row: Sequence[Any]) -> dict[str, Any]:
    """Includes version, time and user only if the caller can read these columns of the record."""
    _, version, operation, at, user_id, *texts = row
    old, new = map(json.loads, texts)
    entry: dict[str, Any] = {"operation": operation}
    for name, value in (("sys_version", version), ("sys_updated_at", at), ("sys_updated_by", user_id)):
        if name in columns:
            entry[name] = value
    entry["fields"] = {
        column.name: _changed_field(column, key, old, new)
        for key, column in columns.items()
        if not column.is_sys and (key in old or key in new)
    }
    return entry


def _changed_field(column: Column, key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    field = {
        "old": logged_values.output_value(column, key, old),
        "new": logged_values.output_value(column, key, new),
    }
    if key + HASH_SUFFIX in old or key + HASH_SUFFIX in new:
        field["is_cut"] = True
    return field
