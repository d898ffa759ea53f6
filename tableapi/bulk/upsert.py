"""Creates a record, or changes the one that has the value of a unique column."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from system.errors import BadRequest, NotFound
from tableapi.catalogue.definitions import Column
from tableapi.database import statement_runner
from tableapi.query.expressions import ALWAYS
from tableapi.query.path_resolver import unknown_column_error
from tableapi.sql import predicates
from tableapi.sql.operators import comparison_key
from tableapi.sql.select import Statement
from tableapi.sql.statement_builder import StatementBuilder, TableAlias
from tableapi.write import create, payload, update
from tableapi.write.change_request import WriteRequest, WriteResult
from tableapi.write.designed_records import Duplicate

KEY_PARAMETER = "sysparm_key"
MAX_ATTEMPTS = 5


@dataclass(frozen=True)
class UpsertResult:
    written: WriteResult
    is_new: bool


def upsert(change: WriteRequest, key: str) -> UpsertResult:
    """Another request may create or delete the record in between; then this one starts again."""
    column = _key_column(change, key)
    value = payload.parse_value(change, column, change.body.get(key))
    if value is None:
        raise BadRequest(f"The body must have a value of {key}.", code="invalid_parameter", field=key)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        sys_id = _find(change, column, value)
        try:
            if sys_id is not None:
                return UpsertResult(update.update(change, sys_id, replaces=False), is_new=False)
            return UpsertResult(create.create(change), is_new=True)
        except Duplicate:
            # Of a record that was created just now, or that the caller cannot read.
            if sys_id is not None or attempt == MAX_ATTEMPTS or _find(change, column, value) is None:
                raise
        except NotFound:
            if sys_id is None or attempt == MAX_ATTEMPTS or _find(change, column, value) == sys_id:
                raise
    raise AssertionError("unreachable")


def _key_column(change: WriteRequest, key: str) -> Column:
    table = change.table
    column = table.columns.get(key)
    if not key or column is None or not change.context.view.permissions.is_known(table, column):
        if not key:
            raise BadRequest("Name the unique column.", code="invalid_parameter", field=KEY_PARAMETER)
        raise unknown_column_error((key[:80],))
    if not column.is_unique or table.is_server_managed(column):
        message = f"{key} is not a unique column that you can write."
        raise BadRequest(message, code="invalid_parameter", field=KEY_PARAMETER)
    return column


def _find(change: WriteRequest, column: Column, value: Any) -> str | None:
    """The record that the caller can read, with this value."""
    view, table = change.context.view, change.table
    if not view.can_read(table) or view.column(table, column.name) is None:
        return None
    statement = view.cached(("by key", table.name, column.name), partial(_statement, change, column))
    rows = statement_runner.fetch(statement, change.context.inputs(key=value))
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
    where = [f"{comparison_key(column.compare_as, value)} = {comparison_key(column.compare_as, key)}"]
    where += predicates.decision_conditions(builder, view.records(table), alias)
    record = f"SELECT {alias.sys_id()} AS sys_id FROM {alias.from_sql()} WHERE {' AND '.join(where)} LIMIT 1"
    sql = f"SELECT s.version, r.sys_id FROM public.tableapi_state s LEFT JOIN ({record}) r ON TRUE"
    return Statement(sql, builder.parameters)
