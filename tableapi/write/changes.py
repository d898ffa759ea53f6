"""Compares the values of a change with those of the stored record."""

from collections.abc import Iterable
from html import escape
from typing import Any

from system import properties
from system.encoded_query import Moment
from system.errors import BadRequest, InvalidInput
from tableapi.catalogue.definitions import NUMBER_COLUMN, Column, Table
from tableapi.values import column_values, defaults

from . import current_record, designed_records, payload
from .current_record import CurrentRecord, CurrentValue
from .write_request import WriteRequest

UNCHANGED = object()


def changed_value(change: WriteRequest, column: Column, value: Any, stored: CurrentValue, *, replaces: bool) -> Any:
    """The value to store, or UNCHANGED. A value that the caller cannot read always counts as changed: the result must
    not reveal whether it was the same."""
    if change.table.is_server_managed(column):
        if stored.is_readable and _is_unchanged_read_only(change, column, stored, value):
            return UNCHANGED
        raise current_record.read_only_error(column)
    if column.column_type.is_json and not replaces and isinstance(value, dict):
        value = column_values.merge_patch(stored.value, value)
    if stored.is_readable and _is_shown_value(column, stored, value):
        return UNCHANGED
    try:
        new = payload.parse_value(change, column, value)
    except (InvalidInput, BadRequest):
        # A stored value that has become invalid, such as a deleted choice, can stay.
        if stored.is_readable and isinstance(value, str) and value == stored.value:
            return UNCHANGED
        raise
    return UNCHANGED if stored.is_readable and column_values.is_same(column, stored.value, new) else new


def _is_unchanged_read_only(change: WriteRequest, column: Column, stored: CurrentValue, value: Any) -> bool:
    if _is_shown_value(column, stored, value):
        return True
    if value is None and change.uses_display_values and column.is_sys and column.column_type.is_reference:
        return True  # shown like this if the caller cannot read its name; null never empties a system column
    try:
        return column_values.is_same(column, stored.value, payload.parse_value(change, column, value))
    except (InvalidInput, BadRequest):
        return False


def _is_shown_value(column: Column, stored: CurrentValue, value: Any) -> bool:
    """Whether the value is what a read shows for the stored one, in the cases where these differ.

    An empty text or list is shown as `null`. A converted text is shown as plain text or as HTML; sending that back must
    neither remove formatting nor change what only looks like a tag in text from before the conversion.
    """
    if value is None and not column.column_type.is_json and stored.value in ("", []):
        return True
    if not column.converted_from_text:
        return False
    if column.id not in properties.get(properties.WYSIWYG_COLUMNS):
        return value in (stored.value, stored.plain_text)
    # Text from before the conversion has no separate plain text and is shown as escaped HTML.
    is_unconverted = stored.value is not None and stored.plain_text == stored.value
    return bool(value == (escape(stored.value, quote=False) if is_unconverted else stored.value))


def can_read_and_write(table: Table, column: Column, stored: CurrentValue) -> bool:
    """Whether the caller can both read and write this column of this record."""
    return stored.is_readable and stored.is_allowed and not table.is_server_managed(column)


def defaults_for_omitted(
    table: Table, sent: Iterable[Column], current: CurrentRecord, moment: Moment
) -> dict[Column, Any]:
    """ "Writable columns left out get their default or null"; those that the caller cannot read or write stay."""
    values = {}
    for column, stored in current.columns.items():
        if column in sent or not column.is_readable or not can_read_and_write(table, column, stored):
            continue
        value = defaults.default_value(column, moment)
        if value is None and designed_records.defaults_to_number(table, column):
            number = current.columns[table.columns[NUMBER_COLUMN]]
            # Otherwise the display name would reveal a number that the caller cannot read.
            value = number.value if number.is_readable else stored.value
        if not column_values.is_same(column, stored.value, value):
            values[column] = value
    return values
