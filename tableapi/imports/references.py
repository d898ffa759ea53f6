"""Finds records by the values of a column, as the caller sees them: for keys, and for the references in cells."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from system.errors import InvalidInput
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.column_type import StorageFormat
from tableapi.catalogue.definitions import Column, Table
from tableapi.database import statement_runner
from tableapi.query.expressions import Decision
from tableapi.read.context import ReadContext
from tableapi.sql import predicates
from tableapi.sql.operators import comparison_key
from tableapi.sql.select import Statement, versioned_statement
from tableapi.sql.statement_builder import StatementBuilder, TableAlias
from tableapi.values import column_values, display_values
from tableapi.write import custom_columns, product_records
from tableapi.write.write_request import WriteRequest

MAX_CACHED_NAMES = 100_000
# The same for missing, hidden and several records, so that it does not reveal which.
NOT_FOUND = "Expected the display value, the ID or a unique value of exactly one record that you can read."


def lock_by_key(change: WriteRequest, column: Column, values: Sequence[Any]) -> dict[int, str]:
    """Lock the readable records with these values of a unique column; return their ids by position."""
    view, table = change.context.view, change.table
    column_and_guard = view.column(table, column.name)
    if not view.can_read(table) or column_and_guard is None:
        return {}
    product_records.lock_for_change(table)
    statement = view.cached(
        ("by keys", table.name, column.name), lambda: _statement(view, table, *column_and_guard, locks=True)
    )
    rows = custom_columns.fetch_locked(table, statement, change.context.inputs(keys=list(values)))
    rows = statement_runner.strip_version(rows, view.catalogue)
    return {place - 1: sys_id for place, sys_id in rows if sys_id is not None}


@dataclass
class ReferenceCache:
    """The ids of the names that were found, for one catalogue and the roles of one caller."""

    ids: dict[tuple[str, str], str] = field(default_factory=dict)
    owner: Any = None

    def resolve(self, context: ReadContext, column: Column, names: Collection[str]) -> dict[str, str]:
        """The ids of the names that identify exactly one record."""
        target = context.view.catalogue.tables.get(column.reference or "")
        owner = (context.view.catalogue.version, context.caller.role_names)
        if owner != self.owner or len(self.ids) > MAX_CACHED_NAMES:
            self.ids, self.owner = {}, owner
        if target is None or not context.view.can_read(target):
            return {}
        missing = [name for name in dict.fromkeys(names) if (target.name, name) not in self.ids]
        for identifying_column, guard in _identifying_columns(context.view, target):
            found = _find(context, target, identifying_column, guard, missing)
            self.ids |= {(target.name, name): sys_id for name, sys_id in found.items()}
            missing = [name for name in missing if name not in found]
        return {name: self.ids[target.name, name] for name in names if (target.name, name) in self.ids}


def not_found(column: Column) -> InvalidInput:
    return InvalidInput(NOT_FOUND, field=column.name)


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
    statement = view.cached(
        ("by names", target.name, column.name), lambda: _statement(view, target, column, guard, locks=False)
    )
    rows = statement_runner.fetch(statement, context.inputs(keys=list(values.values())))
    by_place = {place: ids for _, place, *ids in rows if place is not None}
    found = {}
    for place, name in enumerate(values, 1):
        exact_first, exact_last, first, last = by_place.get(place, [None] * 4)
        # An exact match wins over those that differ in case.
        pair = (exact_first, exact_last) if exact_first is not None else (first, last)
        if pair[0] is not None and pair[0] == pair[1]:
            found[name] = pair[0]
    return found


def _stored_value(column: Column, name: str) -> Any:
    """The value that the database compares with; None if the column cannot have it."""
    try:
        return column_values.parse(column, display_values.parse_display_value(column, name))
    except InvalidInput:
        return None


def _statement(view: CallerView, table: Table, column: Column, guard: Decision, *, locks: bool) -> Statement:
    """Return the place of each key with the ids of its records: the only one, locked, or the first and last of the
    exact matches and of all."""
    builder = StatementBuilder()
    alias = TableAlias(builder, table)
    value = predicates.guarded_value(builder, guard, alias, alias.column(column))
    keys = builder.input("keys", f"{column.column_type.sql_type}[]")
    # A unique index of a product table is case-sensitive.
    is_exact = locks and table.is_system and not column.is_custom
    pair = (value, "k.key") if is_exact else tuple(comparison_key(column.compare_as, sql) for sql in (value, "k.key"))
    where = [" = ".join(pair)] + [f"{value} IS NOT NULL"] * column.is_custom  # lets PostgreSQL use the index
    where += predicates.decision_conditions(builder, view.record_decision(table), alias)
    source = f"unnest({keys}) WITH ORDINALITY k(key, place) JOIN {alias.join_sql()} ON {' AND '.join(where)}"
    sys_id = alias.sys_id()
    if locks:
        rows = ", ".join(alias.row_aliases())
        records = f"SELECT k.place, {sys_id} AS sys_id FROM {source} ORDER BY sys_id FOR NO KEY UPDATE OF {rows}"
        return versioned_statement(builder, "r.place, r.sys_id", records)
    exact = f"FILTER (WHERE {value} = k.key)"
    ids = f"min({sys_id}) {exact} AS a, max({sys_id}) {exact} AS b, min({sys_id}) AS c, max({sys_id}) AS d"
    return versioned_statement(builder, "r.*", f"SELECT k.place, {ids} FROM {source} GROUP BY k.place")
