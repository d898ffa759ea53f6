"""Creates a record, or changes the one that has the value of a unique column."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import transaction

from system.errors import BadRequest
from tableapi.catalogue.definitions import Column
from tableapi.database import statement_runner
from tableapi.query.expressions import ALWAYS
from tableapi.query.path_resolver import unknown_column_error
from tableapi.sql import predicates
from tableapi.sql.operators import comparison_key
from tableapi.sql.select import Statement, versioned_statement
from tableapi.sql.statement_builder import StatementBuilder, TableAlias
from tableapi.write import create, custom_columns, payload, system_records, update
from tableapi.write.designed_records import Duplicate
from tableapi.write.write_request import WriteRequest, WriteResult

KEY_PARAMETER = "sysparm_key"
MAX_ATTEMPTS = 3


@dataclass(frozen=True)
class UpsertResult:
    written: WriteResult
    is_new: bool


def upsert(change: WriteRequest, key: str) -> UpsertResult:
    """Another request may create the record in between; then this one starts again."""
    column = _key_column(change, key)
    value = payload.parse_value(change, column, change.body.get(key))
    if value is None:
        raise BadRequest(f"The body must contain a value for {key}.", code="invalid_parameter", field=key)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            with transaction.atomic():
                sys_id = _lock_match(change, column, value)
                if sys_id is not None:
                    return UpsertResult(update.update(change, sys_id, replaces=False), is_new=False)
                return UpsertResult(create.create(change), is_new=True)
        except Duplicate as error:
            # Of a record that was created just now, or that the caller cannot read.
            if column.name not in error.columns or attempt == MAX_ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def _key_column(change: WriteRequest, key: str) -> Column:
    table = change.table
    column = table.columns.get(key)
    if not key:
        raise BadRequest("Name the unique column.", code="invalid_parameter", field=KEY_PARAMETER)
    if column is None or not change.context.view.permissions.is_known(table, column):
        raise unknown_column_error((key[:80],))
    if not column.is_unique or table.is_server_managed(column):
        message = f"{key} is not a unique column that you can write."
        raise BadRequest(message, code="invalid_parameter", field=KEY_PARAMETER)
    return column


def _lock_match(change: WriteRequest, column: Column, value: Any) -> str | None:
    """The record that the caller can read, with this value; locked, so that it still has it when it is updated."""
    view, table = change.context.view, change.table
    system_records.lock_for_change(table)
    if not view.can_read(table) or view.column(table, column.name) is None:
        return None
    statement = view.cached(("by key", table.name, column.name), partial(_statement, change, column))
    rows = custom_columns.fetch_locked(table, statement, change.context.inputs(key=value))
    ((sys_id,),) = statement_runner.strip_version(rows, view.catalogue)
    return None if sys_id is None else str(sys_id)


def _statement(change: WriteRequest, column: Column) -> Statement:
    view, table = change.context.view, change.table
    builder = StatementBuilder()
    alias = TableAlias(builder, table)
    visible = view.column(table, column.name)
    guard = visible[1] if visible else ALWAYS
    value = predicates.guarded_value(builder, guard, alias, alias.column(column))
    key = builder.input("key", column.column_type.sql_type)
    # As the unique index compares: those of product tables distinguish case.
    is_exact = table.is_system and not column.is_custom
    pair = (value, key) if is_exact else (comparison_key(column.compare_as, sql) for sql in (value, key))
    where = [" = ".join(pair)] + [f"{value} IS NOT NULL"] * column.is_custom  # so that its index is used
    where += predicates.decision_conditions(builder, view.record_decision(table), alias)
    rows = ", ".join(alias.row_aliases())
    record = (
        f"SELECT {alias.sys_id()} AS sys_id FROM {alias.from_sql()} WHERE {' AND '.join(where)} "
        f"LIMIT 1 FOR NO KEY UPDATE OF {rows}"
    )
    return versioned_statement(builder, "r.sys_id", record)
