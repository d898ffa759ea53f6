"""Reads column values from the change log for a caller. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from system.encoded_query import ComparisonKind
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import Catalogue, Column, Table
from tableapi.query.expressions import ALWAYS
from tableapi.read.entry_pages import format_time
from tableapi.sql.change_rows import column_key


def table_key(table: Table) -> str:
    """The key of a table in the change log. Designed tables use their id, because their name may be reused."""
    return table.name if table.is_system else table.id


def table_of(catalogue: Catalogue, key: str) -> Table | None:
    """The table with this key, unless it was deleted."""
    table = catalogue.tables_by_id.get(key)
    return table if table is not None and not table.is_system else catalogue.tables.get(key)


def family_keys(catalogue: Catalogue, table: Table) -> list[str]:
    return [table_key(catalogue.tables[name]) for name in table.family]


def value_key(table: Table, column: Column) -> str:
    return column.database_name if table.is_system and not column.is_custom else column_key(column)


def readable_columns(view: CallerView, table: Table) -> dict[str, Column]:
    """The columns that the caller can read in every record, by key. Conditional rules cannot be checked against past
    values."""
    columns = [column for column in table.columns.values() if view.column(table, column.name) == (column, ALWAYS)]
    return {value_key(table, column): column for column in columns}


def output_value(column: Column, key: str, values: Mapping[str, Any]) -> Any:
    """The value as a list response shows it without display values and links.

    >>> output_value(Column("at", "datetime", "task", "at", "17"), "17", {"17": "2026-01-02T03:04:05.6+01:00"})
    '2026-01-02 02:04:05'
    """
    value = values.get(key)
    if value in ("", []):
        return None
    if column.converted_from_text:
        return values.get(column.plain_text_name, value)
    if column.compare_as is ComparisonKind.DATETIME and isinstance(value, str):
        return format_time(datetime.fromisoformat(value))
    return value
