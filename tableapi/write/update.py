"""Updates a record: payload, lock, permission, changed values, references, update, permission again, response."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.db import transaction

from system.errors import AccessDenied, BadRequest, InvalidInput, combine_errors
from system.records import savers
from tableapi.catalogue.definitions import WRITE, Column
from tableapi.query.expressions import NEVER
from tableapi.read.pipeline import RECORD_ID

from . import (
    column_errors,
    current_record,
    designed_records,
    payload,
    product_records,
    set_on_change,
    single_statement,
    value_changes,
    write_request,
)
from .current_record import CurrentRecord
from .write_request import WriteRequest, WriteResult


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
    values = _changed_values(change, sent_values, current, errors, replaces=replaces)
    denied_names = [column.name for column in values if not current.columns[column].is_allowed]
    if denied_names:
        raise current_record.write_denied_error(denied_names)
    if replaces:
        values |= value_changes.defaults_for_omitted(table, sent_values, current, change.context.moment)
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
        if (
            column.database_name in saver.prepared_columns
            and permissions.column_decision(WRITE, table, column) != NEVER
        ):
            with suppress(InvalidInput, BadRequest):
                values[column.database_name] = payload.parse_value(change, column, value)
    return saver.prepare(sys_id, values)


def _changed_values(
    change: WriteRequest,
    sent_values: Mapping[Column, Any],
    current: CurrentRecord,
    errors: list[InvalidInput],
    *,
    replaces: bool,
) -> dict[Column, Any]:
    values = {}
    for column, value in sent_values.items():
        with column_errors.collecting_errors(errors):
            new = value_changes.changed_value(change, column, value, current.columns[column], replaces=replaces)
            if new is not value_changes.UNCHANGED:
                values[column] = new
    return values


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
        if column not in values and value_changes.can_read_and_write(change.table, column, current_value):
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
