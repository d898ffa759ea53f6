"""The history of a record: its changes, with the fields that the caller may read now."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tableapi.catalogue.definitions import Catalogue, Column
from tableapi.database import statement_runner
from tableapi.query.parameters import RawParameters
from tableapi.read import pipeline
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller
from tableapi.read.entry_pages import Entry, EntryPage, page_of
from tableapi.sql.select import Statement
from tableapi.sql.statement_builder import StatementBuilder

from . import logged_values


@on_current_catalogue
def read_history(catalogue: Catalogue, caller: Caller, table_name: str, sys_id: str, raw: RawParameters) -> EntryPage:
    context = caller.context(catalogue)
    table = context.view.open_table(table_name)
    pipeline.fetch_record(context, table, sys_id, pipeline.shortest_output(context, table))  # or 404
    columns = logged_values.readable_columns(context.view, table)

    def read_entries(before: str | None, limit: int) -> Iterator[tuple[str, Entry]]:
        inputs = context.inputs(
            sys_id=sys_id,
            tables=logged_values.family_keys(catalogue, table),
            keys=[key for key, column in columns.items() if not column.is_sys],
            before=None if before is None else int(before),
            limit=limit,
        )
        for row in statement_runner.fetch(context.view.cached("history", _statement), inputs):
            yield str(row[0]), _entry(columns, row)

    return page_of(raw, ["history", table.name, sys_id, caller.user_id], read_entries)


def _statement() -> Statement:
    """Newest first, from the creation of this record on: an earlier one may have had its id."""
    builder = StatementBuilder()
    own = (
        f"record_id = {builder.input('sys_id', 'varchar')} AND table_key = ANY ({builder.input('tables', 'varchar[]')})"
    )
    created = f"SELECT max(id) FROM public.sys_change WHERE {own} AND operation = 'create'"
    before, limit = builder.input("before", "bigint"), builder.input("limit", "bigint")
    changed = f"(old_values || new_values) ?| {builder.input('keys', 'text[]')}"
    sql = (
        "SELECT id, version, operation, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'), changed_by, "
        f"old_values::text, new_values::text FROM public.sys_change WHERE {own} AND {changed} "
        f"AND id >= coalesce(({created}), 0) AND id < coalesce({before}, id + 1) ORDER BY id DESC LIMIT {limit}"
    )
    return Statement(sql, builder.parameters)


def _entry(columns: Mapping[str, Column], row: Sequence[Any]) -> dict[str, Any]:
    """Version, time and user are in it as far as the caller may read these columns of the record."""
    _, version, operation, at, user_id, *texts = row
    old, new = map(json.loads, texts)
    entry: dict[str, Any] = {"operation": operation}
    for name, value in (("sys_version", version), ("sys_updated_at", at), ("sys_updated_by", user_id)):
        if name in columns:
            entry[name] = value
    entry["fields"] = {
        column.name: _field(column, key, old, new)
        for key, column in columns.items()
        if not column.is_sys and (key in old or key in new)
    }
    return entry


def _field(column: Column, key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    field = {
        "old": logged_values.shown_value(column, key, old),
        "new": logged_values.shown_value(column, key, new),
    }
    if logged_values.is_cut(key, old) or logged_values.is_cut(key, new):
        field["is_cut"] = True
    return field
