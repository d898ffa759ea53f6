"""Updates a record: payload, lock, permission, changed values, references, update, permission again, response."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from html import escape
from typing import Any

from django.db import transaction

from system import properties
from system.encoded_query import Moment
from system.errors import AccessDenied, BadRequest, InvalidInput, combine_errors
from system.records import savers
from tableapi.catalogue.definitions import NUMBER_COLUMN, WRITE, Column, Table
from tableapi.query.expressions import NEVER
from tableapi.read.pipeline import RECORD_ID
from tableapi.values import column_values, defaults

from . import (
    column_errors,
    current_record,
    designed_records,
    payload,
    product_records,
    set_on_change,
    single_statement,
    write_request,
)
from .current_record import CurrentRecord, CurrentValue
from .write_request import WriteRequest, WriteResult

UNCHANGED = object()


def update(change: WriteRequest, sys_id: str, *, replaces: bool) -> WriteResult:
    """PUT and PATCH need `write` on the record before and after the update, and on each column that changes."""
    if not replaces:
        result = single_statement.update(change, sys_id)
        if result is not None:
            return result
    with transaction.atomic():
        return _update(change, sys_id, replaces=replaces)


def _update(change: WriteRequest, sys_id: str, *, replaces: bool) -> WriteResult:
    table = change.table
    read_record = write_request.prepare_reader(change)
    sent_values = payload.read_columns(change)
    prepared = _prepare_save(change, sys_id, sent_values)
    set_columns = [rule.column for rule in set_on_change.rules_of_change(table, sent_values)]
    columns = tuple(table.columns.values()) if replaces else tuple(dict.fromkeys([*sent_values, *set_columns]))
    current = current_record.lock_current_record(change, sys_id, WRITE, columns)
    if not current.is_allowed:
        raise AccessDenied("You are not allowed to update this record.")
    errors: list[InvalidInput] = []
    values: dict[Column, Any] = {}
    for column, value in sent_values.items():
        with column_errors.collecting_errors(errors):
            new = changed_value(change, column, value, current.columns[column], replaces=replaces)
            if new is not UNCHANGED:
                values[column] = new
    denied_names = [column.name for column in values if not current.columns[column].is_allowed]
    if denied_names:
        raise current_record.write_denied_error(denied_names)
    if replaces:
        values |= defaults_for_omitted(table, sent_values, current, change.context.moment)
    with column_errors.collecting_errors(errors):
        payload.check_references(change, _added_references(values, current))
    _check_mandatory(change, values, current, errors, replaces=replaces)
    if errors:
        raise combine_errors(errors)
    if values:
        set_values = set_on_change.values_to_set(
            table, values, lambda column: current.columns[column].value, change.context.moment
        )
        _save(change, sys_id, values | set_values, prepared)
        current_record.check_allowed(change, WRITE, sys_id, tuple(values))
    return WriteResult(sys_id, read_record(sys_id))


def _prepare_save(change: WriteRequest, sys_id: str, sent_values: Mapping[Column, Any]) -> Any:
    """Do the slow part of saving a record of a product table before it is locked. Invalid values are ignored here and
    reported later with all others."""
    table, permissions = change.table, change.context.view.permissions
    if not table.is_system or not RECORD_ID.fullmatch(sys_id):
        return None
    saver = savers.saver_of(product_records.model_of(table.name))
    # Skip the work for callers who may not change anything.
    if not saver.prepared_columns or permissions.record_decision(WRITE, table) == NEVER:
        return None
    values = {}
    for column, value in sent_values.items():
        is_writable = permissions.column_decision(WRITE, table, column) != NEVER
        if column.database_name in saver.prepared_columns and is_writable:
            with suppress(InvalidInput, BadRequest):
                values[column.database_name] = payload.parse_value(change, column, value)
    return saver.prepare(sys_id, values)


def _added_references(values: Mapping[Column, Any], current: CurrentRecord) -> dict[Column, Any]:
    """Return the values without list items that are already stored. Callers who add an item must be able to keep items
    that they cannot read."""
    added_references = dict(values)
    for column, ids in values.items():
        if column.column_type.is_list and ids and current.columns[column].is_readable:
            stored_ids = set(current.columns[column].value or ())
            added_references[column] = [sys_id for sys_id in ids if sys_id not in stored_ids]
    return added_references


def _check_mandatory(
    change: WriteRequest,
    values: Mapping[Column, Any],
    current: CurrentRecord,
    errors: list[InvalidInput],
    *,
    replaces: bool,
) -> None:
    reported_names = {error.field for error in errors}
    required_values = dict(values)
    for column, current_value in current.columns.items() if replaces else ():
        # "A missing mandatory column is a 422", also if it was missing before. Secrets are not checked, because
        # the result would reveal whether they are set.
        if column not in values and can_read_and_write(change.table, column, current_value):
            required_values[column] = current_value.value
    for column, value in required_values.items():
        if column.name not in reported_names:
            with column_errors.collecting_errors(errors):
                column_errors.check_mandatory(change, column, value)


def _save(change: WriteRequest, sys_id: str, values: Mapping[Column, Any], prepared: Any) -> None:
    with column_errors.hiding_unknown_columns(change):
        if change.table.is_system:
            product_records.update(change.table, sys_id, values, prepared)
        else:
            designed_records.update(change.context.view.catalogue, change.table, sys_id, values)


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
