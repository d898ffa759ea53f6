"""Finds the records that the cells of references name, as the caller sees them."""

from collections.abc import Iterator, Sequence
from typing import Any

from system.errors import InvalidInput
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.column_type import StorageFormat
from tableapi.catalogue.definitions import Column, Table
from tableapi.query.expressions import Decision
from tableapi.read.context import ReadContext
from tableapi.read.pipeline import RECORD_ID
from tableapi.sql import predicates
from tableapi.sql.operators import comparison_key
from tableapi.sql.select import Statement, versioned_statement
from tableapi.sql.statement_builder import StatementBuilder, TableAlias
from tableapi.values import column_values, display_values

# The same for missing, hidden and several records, so that it does not reveal which.
NOT_FOUND = "Expected the display value, the ID or a unique value of exactly one record that you can read."


def resolve(context: ReadContext, column: Column, names: Sequence[str]) -> dict[str, str]:
    """The ids of the names that identify exactly one record: by its id, its display value or a unique value."""
    target = context.view.catalogue.tables.get(column.reference or "")
    ids: dict[str, str] = {}
    if target is None or not context.view.can_read(target):
        return ids
    for identifying_column, guard in _identifying_columns(context.view, target):
        missing = [name for name in names if name not in ids]
        ids |= _find(context, target, identifying_column, guard, missing)
    return ids


def _identifying_columns(view: CallerView, target: Table) -> Iterator[tuple[Column, Decision]]:
    display = target.display_column
    unique = [column for column in target.columns.values() if column.is_unique and column is not display]
    for column in (target.columns["sys_id"], display, *unique):
        if column is not None and column.column_type.storage is StorageFormat.PLAIN and not column.column_type.is_list:
            column_and_guard = view.column(target, column.name)
            if column_and_guard is not None:
                yield column_and_guard


def _find(context: ReadContext, target: Table, column: Column, guard: Decision, names: Sequence[str]) -> dict[str, str]:
    values = {name: value for name in names if (value := _stored_value(column, name)) is not None}
    if not values:
        return {}
    view = context.view
    statement = view.cached(("by names", target.name, column.name), lambda: _statement(view, target, column, guard))
    searched_names, ids = list(values), {}
    for place, exact_first, exact_last, first, last in context.fetch(statement, keys=list(values.values())):
        # An exact match wins over those that differ in case.
        if place is not None and (exact_first == exact_last if exact_first is not None else first == last):
            ids[searched_names[place - 1]] = exact_first or first
    return ids


def _stored_value(column: Column, name: str) -> Any:
    """The value that the database compares with; None if the column cannot have it."""
    if column.name == "sys_id" and not RECORD_ID.fullmatch(name):
        return None
    try:
        return column_values.parse(column, display_values.parse_display_value(column, name))
    except InvalidInput:
        return None


def _statement(view: CallerView, table: Table, column: Column, guard: Decision) -> Statement:
    """Return the place of each name with the first and last id of the exact matches and of all."""
    builder = StatementBuilder()
    alias = TableAlias(builder, table)
    value = predicates.guarded_value(builder, guard, alias, alias.column(column))
    keys = builder.input("keys", f"{column.column_type.sql_type}[]")
    where = [" = ".join(comparison_key(column.compare_as, sql) for sql in (value, "k.key"))]
    where += [f"{value} IS NOT NULL"] * column.is_custom  # lets PostgreSQL use the index
    where += predicates.decision_conditions(builder, view.record_decision(table), alias)
    source = f"unnest({keys}) WITH ORDINALITY k(key, place) JOIN {alias.join_sql()} ON {' AND '.join(where)}"
    sys_id, exact = alias.sys_id(), f"FILTER (WHERE {value} = k.key)"
    ids = f"min({sys_id}) {exact} AS a, max({sys_id}) {exact} AS b, min({sys_id}) AS c, max({sys_id}) AS d"
    return versioned_statement(builder, "r.*", f"SELECT k.place, {ids} FROM {source} GROUP BY k.place")
