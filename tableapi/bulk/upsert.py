"""Creates a record, or updates the one that has the same value in a unique column."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from system.errors import InvalidParameter, PreconditionFailed
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import Column, Table
from tableapi.query.expressions import Decision
from tableapi.query.path_resolver import unknown_column_error
from tableapi.sql import predicates
from tableapi.sql.operators import comparison_key
from tableapi.sql.select import Statement, versioned_statement
from tableapi.sql.statement_builder import StatementBuilder, TableAlias
from tableapi.write import create, custom_columns, payload, product_records, update
from tableapi.write.designed_records import Duplicate
from tableapi.write.write_request import WriteRequest, WriteResult

KEY_PARAMETER = "sysparm_key"
MAX_ATTEMPTS = 3


def upsert(change: WriteRequest, key: str) -> tuple[WriteResult, bool]:
    """Create or update the record; return the result, and whether the record is new. Retries if a concurrent request
    creates it first."""
    column = _key_column(change, key)
    value = payload.parse_value(change, column, change.body.get(key))
    if value is None:
        raise InvalidParameter(f"The body must contain a value for {key}.", field=key)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            with transaction.atomic():
                sys_id = lock_by_key(change, column, [value]).get(0)
                if sys_id is not None:
                    return update.update(change, sys_id, replaces=False), False
                if change.is_current is not None:
                    raise PreconditionFailed  # If-Match needs a record
                return create.create(change), True
        except Duplicate as error:
            # The duplicate was created concurrently, or the caller cannot read it.
            if column.name not in error.columns or attempt == MAX_ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def _key_column(change: WriteRequest, key: str) -> Column:
    table = change.table
    column = change.context.view.permissions.visible_column(table, key)
    if not key:
        raise InvalidParameter(f"{KEY_PARAMETER} must be the name of a unique column.", field=KEY_PARAMETER)
    if column is None:
        raise unknown_column_error((key[:80],))
    if not column.is_unique or table.is_server_managed(column):
        message = f'"{key}" is not a unique column that you can write.'
        raise InvalidParameter(message, field=KEY_PARAMETER)
    return column


def lock_by_key(change: WriteRequest, column: Column, values: Sequence[Any]) -> dict[int, str]:
    """Find the readable records with these values of a unique column, and lock them to keep the values until the
    update. Returns their ids by the position of the value."""
    view, table = change.context.view, change.table
    product_records.lock_for_change(table)
    column_and_guard = view.column(table, column.name)
    if not view.can_read(table) or column_and_guard is None:
        return {}
    statement = view.cached(
        ("by key", table.name, column.name), lambda: _match_statement(view, table, *column_and_guard)
    )
    rows = custom_columns.fetch_locked(change.context, table, statement, keys=list(values))
    return {place - 1: sys_id for place, sys_id in rows if sys_id is not None}


def _match_statement(view: CallerView, table: Table, column: Column, guard: Decision) -> Statement:
    builder = StatementBuilder()
    alias = TableAlias(builder, table)
    value = predicates.guarded_value(builder, guard, alias, alias.column(column))
    keys = builder.input("keys", f"{column.column_type.sql_type}[]")
    # Compare as the unique index does: in product tables, it is case-sensitive.
    is_exact = table.is_system and not column.is_custom
    pair = (value, "k.key") if is_exact else (comparison_key(column.compare_as, sql) for sql in (value, "k.key"))
    where = [" = ".join(pair)] + [f"{value} IS NOT NULL"] * column.is_custom  # lets PostgreSQL use the index
    where += predicates.decision_conditions(builder, view.record_decision(table), alias)
    source = f"unnest({keys}) WITH ORDINALITY k(key, place) JOIN {alias.join_sql()} ON {' AND '.join(where)}"
    rows = ", ".join(alias.row_aliases())
    records = f"SELECT k.place, {alias.sys_id()} AS sys_id FROM {source} ORDER BY sys_id FOR NO KEY UPDATE OF {rows}"
    return versioned_statement(builder, "r.place, r.sys_id", records)
