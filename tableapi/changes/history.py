"""The history of a record: its changes, with the fields that the caller may read now."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tableapi.catalogue.definitions import Catalogue, Column
from tableapi.database import statement_runner
from tableapi.query.parameters import RawParameters, parse_part
from tableapi.read import cursors, pipeline
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller
from tableapi.read.cursors import CursorPosition
from tableapi.read.entry_pages import CURSOR_PARAMETER, EntryPage
from tableapi.sql.select import Statement
from tableapi.sql.statement_builder import StatementBuilder

from . import logged_values


@on_current_catalogue
def read_history(catalogue: Catalogue, caller: Caller, table_name: str, sys_id: str, raw: RawParameters) -> EntryPage:
    part = parse_part(raw, CURSOR_PARAMETER)
    context = caller.context(catalogue)
    table = context.view.open_table(table_name)
    pipeline.fetch_record(context, table, sys_id, pipeline.shortest_output(context, table))  # or 404
    columns = {
        logged_values.value_key(table, column): column
        for column in logged_values.always_readable_columns(context.view, table)
    }
    identity = ["history", table.name, sys_id, caller.user_id]
    before = int(cursors.decode(part.cursor, identity).keys[0] or 0) if part.cursor else None
    inputs = context.inputs(
        sys_id=sys_id,
        tables=logged_values.family_keys(catalogue, table),
        keys=[key for key, column in columns.items() if not column.is_sys],
        before=before,
        limit=part.limit + 1,
    )
    rows = statement_runner.fetch(context.view.cached("history", _statement), inputs)
    entries = [_entry(columns, row) for row in rows[: part.limit]]
    goes_on = len(rows) > part.limit
    position = CursorPosition((str(rows[part.limit - 1][0]),)) if goes_on else None
    return EntryPage(entries, cursors.encode(position, identity) if position else "")


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
