"""Compares the sent values of an update with the stored record."""

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


def changed_value(change: WriteRequest, column: Column, value: Any, current: CurrentValue, *, replaces: bool) -> Any:
    """Return the value to store, or UNCHANGED. A value always counts as changed if the caller cannot read the stored
    one, so that the result does not reveal whether they are equal."""
    if change.table.is_server_managed(column):
        if current.is_readable and _is_unchanged_read_only(change, column, current, value):
            return UNCHANGED
        raise current_record.read_only_error(column)
    if column.column_type.is_json and not (replaces or change.replaces_json) and isinstance(value, dict):
        value = column_values.merge_patch(current.value, value)
    if current.is_readable and _is_returned_value(column, current, value):
        return UNCHANGED
    try:
        new = payload.parse_value(change, column, value)
    except (InvalidInput, BadRequest):
        # A stored value that has become invalid, such as a deleted choice, can stay.
        if current.is_readable and isinstance(value, str) and value == current.value:
            return UNCHANGED
        raise
    return UNCHANGED if current.is_readable and column_values.is_same(column, current.value, new) else new


def _is_unchanged_read_only(change: WriteRequest, column: Column, current: CurrentValue, value: Any) -> bool:
    if _is_returned_value(column, current, value):
        return True
    if value is None and change.uses_display_values and column.is_sys and column.column_type.is_reference:
        return True  # returned like this if the display value is unreadable; null never clears a system column
    try:
        return column_values.is_same(column, current.value, payload.parse_value(change, column, value))
    except (InvalidInput, BadRequest):
        return False


def _is_returned_value(column: Column, current: CurrentValue, value: Any) -> bool:
    """Whether reads return the stored value as this value, in the cases where the two differ.

    An empty text or list is returned as `null`. A converted text is returned as plain text or HTML; sending it back
    must neither remove formatting nor change what only looks like a tag in text from before the conversion.
    """
    if value is None and not column.column_type.is_json and current.value in ("", []):
        return True
    if not column.converted_from_text:
        return False
    if column.id not in properties.get(properties.WYSIWYG_COLUMNS):
        return value in (current.value, current.plain_text)
    # Text from before the conversion has no separate plain text and is returned as escaped HTML.
    is_unconverted = current.value is not None and current.plain_text == current.value
    return bool(value == (escape(current.value, quote=False) if is_unconverted else current.value))


def can_read_and_write(table: Table, column: Column, current: CurrentValue) -> bool:
    """Whether the caller can both read and write this column of this record."""
    return current.is_readable and current.is_allowed and not table.is_server_managed(column)


def defaults_for_omitted(
    table: Table, sent_columns: Iterable[Column], current: CurrentRecord, moment: Moment
) -> dict[Column, Any]:
    """ "Writable columns left out get their default or null"; others keep their value."""
    values = {}
    for column, current_value in current.columns.items():
        if column in sent_columns or not column.is_readable or not can_read_and_write(table, column, current_value):
            continue
        value = defaults.default_value(column, moment)
        if value is None and designed_records.defaults_to_number(table, column):
            number = current.columns[table.columns[NUMBER_COLUMN]]
            # Otherwise the display name would reveal a number that the caller cannot read.
            value = number.value if number.is_readable else current_value.value
        if not column_values.is_same(column, current_value.value, value):
            values[column] = value
    return values
