"""Compares a change with the stored record: which values to store, and which are there already."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from system import properties
from system.errors import BadRequest, Invalid
from tableapi.catalogue.definitions import NUMBER, Column, Table
from tableapi.values import column_values, defaults

from . import current_record, designed_records, payload
from .change_request import WriteRequest
from .current_record import CurrentRecord, CurrentValue, is_made_here

UNCHANGED = object()


def changed_value(change: WriteRequest, column: Column, value: Any, stored: CurrentValue, *, replaces: bool) -> Any:
    """The value to store, or UNCHANGED. One that the caller does not see always counts as changed: whether it was the
    same must not show."""
    if column.is_sys or column.read_only or is_made_here(change.table, column):
        if stored.is_seen and _is_same_shown(change, column, stored, value):
            return UNCHANGED
        raise current_record.read_only(column)
    if column.column_type.is_json and not replaces and isinstance(value, dict):
        value = column_values.merged(stored.value, value)
    if stored.is_seen and _is_as_it_reads(column, stored, value):
        return UNCHANGED
    try:
        new = payload.value(change, column, value)
    except (Invalid, BadRequest):
        # A choice that was taken away since, a text that is too long by now: it may stay.
        if stored.is_seen and isinstance(value, str) and value == stored.value:
            return UNCHANGED
        raise
    return UNCHANGED if stored.is_seen and column_values.is_same(column, stored.value, new) else new


def _is_same_shown(change: WriteRequest, column: Column, stored: CurrentValue, value: Any) -> bool:
    if _is_as_it_reads(column, stored, value):
        return True
    if value is None and change.by_display and column.is_sys and column.column_type.is_reference:
        return True  # how it reads where its name is not shown; nothing empties a column that the service keeps
    try:
        return column_values.is_same(column, stored.value, payload.value(change, column, value))
    except (Invalid, BadRequest):
        return False


def _is_as_it_reads(column: Column, stored: CurrentValue, value: Any) -> bool:
    """Whether this is what the column reads as, where that is not what is stored.

    An empty text or list reads as `null`. A converted text reads as plain text or as HTML: sent back, it must not take
    the formatting away, nor what only looks like a tag in a text from before.
    """
    if value is None and not column.column_type.is_json and stored.value in ("", []):
        return True
    if not column.converted_from_text:
        return False
    if column.id not in properties.get(properties.WYSIWYG_COLUMNS):
        return value in (stored.value, stored.plain)
    # A text from before has no plain text beside it, and reads as HTML that shows it.
    is_from_before = stored.value is not None and stored.plain == stored.value
    return bool(value == (escape(stored.value, quote=False) if is_from_before else stored.value))


def is_theirs(table: Table, column: Column, stored: CurrentValue) -> bool:
    """Whether the caller both sees and writes the column of this record."""
    is_ours = column.is_sys or column.read_only or is_made_here(table, column)
    return stored.is_seen and stored.is_allowed and not is_ours


def left_out(table: Table, named: Iterable[Column], stand: CurrentRecord) -> dict[Column, Any]:
    """ "Writable columns left out get their default or null"; what the caller does not see or write stays."""
    found = {}
    for column, stored in stand.columns.items():
        if column in named or not column.is_readable or not is_theirs(table, column, stored):
            continue
        value = defaults.default(column)
        if value is None and designed_records.is_called_by_number(table, column):
            number = stand.columns[table.columns[NUMBER]]
            # To who does not see the number it would be told so.
            value = number.value if number.is_seen else stored.value
        if not column_values.is_same(column, stored.value, value):
            found[column] = value
    return found
