"""Updates a record: payload, lock, permission, changes, references, update, permission again, response."""

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
    changes,
    column_errors,
    current_record,
    designed_records,
    payload,
    set_on_change,
    single_statement,
    system_records,
    write_request,
)
from .current_record import CurrentRecord
from .write_request import WriteRequest, WriteResult


def update(change: WriteRequest, sys_id: str, *, replaces: bool) -> WriteResult:
    """PUT and PATCH: `write` is needed before and after, and on each column whose value changes."""
    if not replaces:
        result = single_statement.update(change, sys_id)
        if result is not None:
            return result
    with transaction.atomic():
        return _update(change, sys_id, replaces=replaces)


def _update(change: WriteRequest, sys_id: str, *, replaces: bool) -> WriteResult:
    table = change.table
    read_record = write_request.prepare_reader(change)
    sent = payload.read_columns(change)
    prepared = _prepare_save(change, sys_id, sent)
    set_columns = [rule.column for rule in set_on_change.rules_of_change(table, sent)]
    columns = tuple(table.columns.values()) if replaces else tuple(dict.fromkeys([*sent, *set_columns]))
    current = current_record.lock_current_record(change, sys_id, WRITE, columns)
    if not current.is_allowed:
        raise AccessDenied("You are not allowed to update this record.")
    errors: list[InvalidInput] = []
    values = _changed_values(change, sent, current, errors, replaces=replaces)
    denied = [column.name for column in values if not current.columns[column].is_allowed]
    if denied:
        raise current_record.write_denied_error(denied)
    if replaces:
        values |= changes.defaults_for_omitted(table, sent, current, change.context.moment)
    with column_errors.collecting_errors(errors):
        payload.check_references(change, _added_references(values, current))
    _check_mandatory(change, values, current, errors, replaces=replaces)
    if errors:
        raise combine_errors(errors)
    if values:
        to_set = set_on_change.values_to_set(
            table, values, lambda column: current.columns[column].value, change.context.moment
        )
        _save(change, sys_id, values | to_set, prepared)
        current_record.check_allowed(change, WRITE, sys_id, tuple(values))
    return WriteResult(sys_id, read_record(sys_id))


def _prepare_save(change: WriteRequest, sys_id: str, sent: Mapping[Column, Any]) -> Any:
    """The slow part of saving a record of the product's own, before the lock that others wait for. It refuses nothing:
    invalid values are reported later with all others."""
    table, permissions = change.table, change.context.view.permissions
    if not table.is_system or not RECORD_ID.fullmatch(sys_id):
        return None
    saver = savers.saver_of(system_records.model_of(table.name))
    # The server works only for callers who may change something.
    if not saver.prepared_columns or permissions.record_decision(WRITE, table) == NEVER:
        return None
    values = {}
    for column, value in sent.items():
        if (
            column.database_name in saver.prepared_columns
            and permissions.column_decision(WRITE, table, column) != NEVER
        ):
            with suppress(InvalidInput, BadRequest):
                values[column.database_name] = payload.parse_value(change, column, value)
    return saver.prepare(sys_id, values)


def _changed_values(
    change: WriteRequest,
    sent: Mapping[Column, Any],
    current: CurrentRecord,
    errors: list[InvalidInput],
    *,
    replaces: bool,
) -> dict[Column, Any]:
    values = {}
    for column, value in sent.items():
        new = changes.UNCHANGED
        with column_errors.collecting_errors(errors):
            new = changes.changed_value(change, column, value, current.columns[column], replaces=replaces)
        if new is not changes.UNCHANGED:
            values[column] = new
    return values


def _added_references(values: Mapping[Column, Any], current: CurrentRecord) -> dict[Column, Any]:
    """The values, without the list items that are stored already. These may refer to records that the caller cannot
    read, and a caller who adds an item must not have to remove them."""
    added = dict(values)
    for column, ids in values.items():
        if column.column_type.is_list and ids and current.columns[column].is_readable:
            stored = set(current.columns[column].value or ())
            added[column] = [sys_id for sys_id in ids if sys_id not in stored]
    return added


def _check_mandatory(
    change: WriteRequest,
    values: Mapping[Column, Any],
    current: CurrentRecord,
    errors: list[InvalidInput],
    *,
    replaces: bool,
) -> None:
    reported = {error.field for error in errors}
    result = dict(values)
    for column, stored in current.columns.items() if replaces else ():
        # "A missing mandatory column is a 422", also if it was missing before. Not a secret, which stays as it is:
        # nobody may learn whether one is set.
        if column not in values and changes.can_read_and_write(change.table, column, stored):
            result[column] = stored.value
    for column, value in result.items():
        if column.name not in reported:
            with column_errors.collecting_errors(errors):
                column_errors.check_mandatory(change, column, value)


def _save(change: WriteRequest, sys_id: str, values: Mapping[Column, Any], prepared: Any) -> None:
    with column_errors.hiding_unknown_columns(change):
        if change.table.is_system:
            system_records.update(change.table, sys_id, values, prepared)
        else:
            designed_records.update(change.context.view.catalogue, change.table, sys_id, values)
