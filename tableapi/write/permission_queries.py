"""Builds the SQL for what is stored and what the caller may do with it. Pure."""

from dataclasses import dataclass

from system.encoded_query import ComparisonKind
from system.encoded_query.sql import FOLD_ARRAY_SQL
from tableapi.access.permissions import Permissions
from tableapi.catalogue.definitions import DELETE, READ, Column, Table
from tableapi.query.expressions import ALWAYS, NEVER, Decision
from tableapi.sql import predicates
from tableapi.sql.operators import key
from tableapi.sql.select import Statement
from tableapi.sql.statement_builder import StatementBuilder, TableAlias

VERSION = "sys_version"


def _condition(text: StatementBuilder, decision: Decision, anchor: TableAlias) -> str:
    condition = predicates.decision(text, decision, anchor)
    return "TRUE" if condition is None else f"(({condition}) IS TRUE)"


@dataclass(frozen=True, slots=True)
class ColumnPermission:
    """Permissions on one column of the record; None if the database has to decide."""

    is_readable: bool | None
    is_allowed: bool | None


def column_permission(permissions: Permissions, table: Table, operation: str, column: Column) -> ColumnPermission:
    # Nobody may learn whether a password is set, not even from a value that counts as unchanged.
    is_readable = _known(permissions.column(READ, table, column)) if column.is_readable else False
    return ColumnPermission(is_readable, _known(permissions.column(operation, table, column)))


def _known(decision: Decision) -> bool | None:
    return True if decision == ALWAYS else False if decision == NEVER else None


def current_record(permissions: Permissions, table: Table, operation: str, columns: tuple[Column, ...]) -> Statement:
    """The stored record, locked: catalogue version, id, its version if the caller can read it, whether the operation is
    allowed; then the value of each column, and one list of all conditions that `column_permission` leaves open."""
    text = StatementBuilder()
    anchor = TableAlias(text, table)
    version_column = table.columns[VERSION]
    is_visible = permissions.column(READ, table, version_column)
    version = predicates.guarded(text, is_visible, anchor, anchor.column(version_column))
    outputs = [anchor.sys_id(), version, _condition(text, permissions.records(operation, table), anchor)]
    outputs += [_stored(anchor, column) for column in columns]
    conditions: list[str] = []
    for column in columns:
        permission = column_permission(permissions, table, operation, column)
        if permission.is_readable is None:
            conditions.append(_condition(text, permissions.column(READ, table, column), anchor))
        if permission.is_allowed is None:
            conditions.append(_condition(text, permissions.column(operation, table, column), anchor))
    # One output for all: a PostgreSQL query has at most 1,664, and a table nearly as many columns.
    outputs.append(f"ARRAY[{', '.join(conditions)}]::boolean[]")
    where = [f"{anchor.sys_id()} = {text.input('sys_id', 'varchar')}"]
    readable = predicates.decision(text, permissions.records(READ, table), anchor)
    if readable:
        where.append(readable)
    # A deletion also blocks new references, which would otherwise be emptied even in mandatory columns.
    lock = "UPDATE" if operation == DELETE else "NO KEY UPDATE"
    # Every row of the record, because PostgreSQL re-reads only locked rows after waiting.
    rows = ", ".join(anchor.whole())
    listed = ", ".join(f"{output} AS o{number}" for number, output in enumerate(outputs))
    record = f"SELECT {listed} FROM {anchor.joined()} WHERE {' AND '.join(where)} FOR {lock} OF {rows}"
    return Statement(
        f"SELECT s.version, r.* FROM public.tableapi_state s LEFT JOIN ({record}) r ON TRUE", text.parameters
    )


def _stored(anchor: TableAlias, column: Column) -> str:
    """The stored value; for a converted text with its plain text, which old values do not have."""
    stored = anchor.column(column, plain=False)
    if not column.converted_from_text:
        return stored
    return f"CASE WHEN {stored} IS NOT NULL THEN ARRAY[{stored}, {anchor.column(column)}] END"


def is_conditional(permissions: Permissions, table: Table, operation: str, columns: tuple[Column, ...]) -> bool:
    """Whether the permission depends on the values of the record."""
    return permissions.records(operation, table) != ALWAYS or any(
        permissions.column(operation, table, column) != ALWAYS for column in columns
    )


def allowed(permissions: Permissions, table: Table, operation: str, columns: tuple[Column, ...]) -> Statement:
    """Whether the operation is allowed on the record after the write, and on each of these columns."""
    text = StatementBuilder()
    anchor = TableAlias(text, table)
    outputs = [_condition(text, permissions.records(operation, table), anchor)]
    outputs += [_condition(text, permissions.column(operation, table, column), anchor) for column in columns]
    where = f"{anchor.sys_id()} = {text.input('sys_id', 'varchar')}"
    return Statement(f"SELECT {', '.join(outputs)} FROM {anchor.joined()} WHERE {where}", text.parameters)


def count_readable(permissions: Permissions, targets: tuple[tuple[Table, bool], ...]) -> Statement:
    """The catalogue's version; then for each table (and whether a list refers to it) how many of the ids belong to
    records that the caller can read."""
    text = StatementBuilder()
    counts = [
        count_of_readable(text, permissions, target, f"ids{number}", for_lists)
        for number, (target, for_lists) in enumerate(targets)
    ]
    version = "(SELECT version FROM public.tableapi_state)"
    return Statement(f"SELECT {', '.join([version, *counts])}", text.parameters)


def count_of_readable(
    text: StatementBuilder, permissions: Permissions, target: Table, ids: str, for_lists: bool = False
) -> str:
    """How many records with these ids the caller can read."""
    anchor = TableAlias(text, target)
    where = [f"{anchor.sys_id()} = ANY ({text.input(ids, 'varchar[]')})"]
    readable = predicates.decision(text, permissions.records(READ, target), anchor)
    if readable:
        where.append(readable)
    # Lists have no foreign key, so the records are locked until the end of the transaction.
    lock = f" FOR KEY SHARE OF {', '.join(anchor.whole())}" if for_lists else ""
    records = f"SELECT 1 FROM {anchor.joined()} WHERE {' AND '.join(where)}{lock}"
    return f"(SELECT count(*) FROM ({records}) c)"


def find_by_display_value(permissions: Permissions, target: Table, display_column: str, guard: Decision) -> Statement:
    """Display values, each with the first and the last id of the readable records that have it."""
    text = StatementBuilder()
    anchor = TableAlias(text, target)
    column = target.columns[display_column]
    value = predicates.guarded(text, guard, anchor, anchor.column(column))
    names = text.input("names", "text[]")
    where = [f"({value})::text = ANY ({names})"]
    if column.compare_as is ComparisonKind.TEXT:
        # The index is on the folded text.
        where.append(f"{key(ComparisonKind.TEXT, value)} = ANY ({FOLD_ARRAY_SQL.format(names)})")
    readable = predicates.decision(text, permissions.records(READ, target), anchor)
    if readable:
        where.append(readable)
    ids = f"min({anchor.sys_id()}), max({anchor.sys_id()})"
    sql = f"SELECT ({value})::text, {ids} FROM {anchor.joined()} WHERE {' AND '.join(where)} GROUP BY 1"
    return Statement(sql, text.parameters)
