"""Creates a record: payload, references, defaults, insert, permission, response."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.db import transaction

from system.encoded_query import SAMPLE_MOMENT
from system.errors import InvalidInput, combine_errors
from system.models import DeletionLogEntry
from tableapi.catalogue.definitions import CREATE, Column, Table
from tableapi.database import statement_runner
from tableapi.query.expressions import NEVER
from tableapi.values import defaults

from . import (
    column_errors,
    current_record,
    deferred_records,
    designed_records,
    payload,
    product_records,
    set_on_change,
    single_statement,
    write_request,
)
from .write_request import WriteRequest, WriteResult


def create(change: WriteRequest) -> WriteResult:
    """ "POST needs `create` on the record as it will be and on each column sent." """
    context, table = change.context, change.table
    if context.view.permissions.record_decision(CREATE, table) == NEVER:
        raise current_record.create_denied_error(context, table)
    read_record = write_request.prepare_reader(change)
    prepared = prepare(change)
    values, sent_values, sys_id, errors = prepared.values, prepared.sent_values, prepared.sys_id, prepared.errors
    if not errors and not prepared.missing_errors and sys_id is None:
        result = single_statement.create(change, values, sent_values)
        if result is not None:
            return result

    def insert() -> WriteResult:
        new_id = _insert(change, values, sys_id)
        current_record.check_allowed(change, CREATE, new_id, tuple(sent_values))
        return WriteResult(new_id, read_record(new_id))

    with transaction.atomic():
        is_catalogue_checked = False
        with column_errors.collecting_errors(errors):
            is_catalogue_checked = payload.check_references(change, prepared.parsed_values)
        if not is_catalogue_checked:
            # Before the write, which may increase the version itself, and takes a number that would be lost.
            statement_runner.check_version(context.inputs())
        for error in prepared.missing_errors:
            column_errors.add_once(errors, error)
        if errors:
            raise combine_errors(errors)
        return _defer(change, values, insert) if table.deferred_create else insert()


@dataclass(frozen=True)
class PreparedRecord:
    """The values of a new record, and the errors in them."""

    sent_values: dict[Column, Any]
    sys_id: str | None
    parsed_values: dict[Column, Any]
    values: dict[Column, Any]
    errors: list[InvalidInput]
    missing_errors: list[InvalidInput]


def prepare(change: WriteRequest) -> PreparedRecord:
    sent_values, sys_id = payload.new_record_columns(change)
    prepared = PreparedRecord(sent_values, sys_id, {}, {}, [], [])
    for column, value in sent_values.items():
        try:  # not with collecting_errors, which would cost as much as the parsing
            prepared.parsed_values[column] = payload.parse_value(change, column, value)
        except InvalidInput as error:
            column_errors.add_once(prepared.errors, error)
    for column, value in prepared.parsed_values.items():
        if value is not None or not change.table.is_server_managed(column):  # imports may leave these to the server
            prepared.values[column] = value
    _add_defaults(change, prepared.values, sent_values, prepared.missing_errors)
    set_values = set_on_change.values_to_set(change.table, prepared.values, lambda column: None, change.context.moment)
    prepared.values.update({column: value for column, value in set_values.items() if column not in prepared.values})
    return prepared


class TableDefaults(NamedTuple):
    """The defaults of a table, columns with a default that depends on the moment, and columns that need a value."""

    constants: dict[Column, Any]
    computed: list[Column]
    mandatory: list[Column]


def _table_defaults(table: Table) -> TableDefaults:
    columns = [
        column for column in table.columns.values() if not column.is_sys and (column.default or column.mandatory)
    ]
    computed = [column for column in columns if defaults.depends_on_moment(column)]
    constants = {column: defaults.default_value(column, SAMPLE_MOMENT) for column in columns if column not in computed}
    generated = designed_records.generated_columns(table)
    mandatory = [column for column in columns if column.mandatory and column not in generated and not table.is_system]
    return TableDefaults(constants, computed, mandatory)


def _add_defaults(
    change: WriteRequest, values: dict[Column, Any], sent_values: Mapping[Column, Any], errors: list[InvalidInput]
) -> None:
    """Add the defaults of columns that were not sent, and errors for mandatory columns that are still empty."""
    context, table = change.context, change.table
    table_defaults = context.view.cached(("defaults", table.name), lambda: _table_defaults(table))
    computed = {column: defaults.default_value(column, context.moment) for column in table_defaults.computed}
    for column, value in (table_defaults.constants | computed).items():
        if value is not None and column not in sent_values:
            values[column] = value
    for column in table_defaults.mandatory:
        if column in values or column not in sent_values:  # otherwise its error was already reported
            with column_errors.collecting_errors(errors):
                column_errors.check_mandatory(change, column, values.get(column))


def _insert(change: WriteRequest, values: Mapping[Column, Any], sys_id: str | None) -> str:
    with column_errors.hiding_unknown_columns(change):
        if change.table.is_system:
            return product_records.insert(change.table, values)
        if change.is_import:
            values = designed_records.with_imported_number(change.table, values)
        catalogue = change.context.view.catalogue
        if change.chosen_id:
            tables = catalogue.tables[change.table.lineage[-1]].family
            if DeletionLogEntry.objects.filter(table__in=tables, record_id=change.chosen_id).exists():
                # Its history would be taken for that of the new record. The answer is that for an id that is taken.
                raise designed_records.Duplicate
        return designed_records.insert(catalogue, change.table, values, sys_id)


def _defer(change: WriteRequest, values: dict[Column, Any], insert: Callable[[], WriteResult]) -> WriteResult:
    """ "Validated at once, kept as a row of a queue table, created by the worker". The record is inserted and
    rolled back, so that all rules and constraints are checked."""
    table = change.table
    savepoint = transaction.savepoint()
    result = insert()
    inserted_values = designed_records.payload(table, result.sys_id)
    transaction.savepoint_rollback(savepoint)
    for column in designed_records.generated_columns(table):  # stored, because the response contains them
        if inserted_values.get(column.name) is not None:
            values[column] = inserted_values[column.name]
    deferred_records.enqueue(table, result.sys_id, values)
    if result.record is None:
        return result
    # "dot-walking yields `null`": there is no record yet that a path could start from.
    fields = {name: None if "." in name else value for name, value in json.loads(result.record.body).items()}
    body = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return replace(result, record=replace(result.record, body=body.encode()))
