"""Writes the SQL that a write asks first: what is stored, and what the caller may do with it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from system.encoded_query import ComparisonKind
from tableapi.access.permissions import Permissions
from tableapi.catalogue.definitions import DELETE, READ, Column, Table
from tableapi.query.expressions import ALWAYS, NEVER, Decision
from tableapi.sql import predicates
from tableapi.sql.operators import FOLD, key
from tableapi.sql.select import Statement
from tableapi.sql.statement_builder import StatementBuilder, TableAlias

OWN_VERSION = "sys_version"


def _holds(text: StatementBuilder, found: Decision, anchor: TableAlias) -> str:
    condition = predicates.decision(text, found, anchor)
    return "TRUE" if condition is None else f"(({condition}) IS TRUE)"


@dataclass(frozen=True, slots=True)
class ColumnPermissionQuery:
    """What is asked of one column of the record; where a decision is known beforehand, nothing is."""

    is_seen: bool | None
    is_allowed: bool | None


def question(permissions: Permissions, table: Table, operation: str, column: Column) -> ColumnPermissionQuery:
    # Whether a password is set is nobody's to know, by its being the same either.
    is_seen = _known(permissions.column(READ, table, column)) if column.is_readable else False
    return ColumnPermissionQuery(is_seen, _known(permissions.column(operation, table, column)))


def _known(found: Decision) -> bool | None:
    return True if found == ALWAYS else False if found == NEVER else None


def standing(permissions: Permissions, table: Table, operation: str, columns: tuple[Column, ...]) -> Statement:
    """The record as it stands, locked: catalogue version, its id, its version if the caller may read that, whether the
    operation is allowed on it; then for each column what is stored, and in one list what all `question`s ask."""
    text = StatementBuilder()
    anchor = TableAlias(text, table)
    own = table.columns[OWN_VERSION]
    version = predicates.guarded(text, permissions.column(READ, table, own), anchor, anchor.column(own))
    wanted = [anchor.sys_id(), version, _holds(text, permissions.records(operation, table), anchor)]
    wanted += [_stored(anchor, column) for column in columns]
    asks: list[str] = []
    for column in columns:
        asked = question(permissions, table, operation, column)
        if asked.is_seen is None:
            asks.append(_holds(text, permissions.column(READ, table, column), anchor))
        if asked.is_allowed is None:
            asks.append(_holds(text, permissions.column(operation, table, column), anchor))
    # One output for all: PostgreSQL has 1,664 at most, and a table nearly as many columns.
    wanted.append(f"ARRAY[{', '.join(asks)}]::boolean[]")
    where = [f"{anchor.sys_id()} = {text.input('sys_id', 'varchar')}"]
    readable = predicates.decision(text, permissions.records(READ, table), anchor)
    if readable:
        where.append(readable)
    # Before a deletion also against references: one that is made meanwhile would be emptied, mandatory or not.
    lock = "UPDATE" if operation == DELETE else "NO KEY UPDATE"
    # Every row of the record: after a wait, only the locked ones are read anew.
    rows = ", ".join(anchor.whole())
    outputs = ", ".join(f"{each} AS o{number}" for number, each in enumerate(wanted))
    found = f"SELECT {outputs} FROM {anchor.joined()} WHERE {' AND '.join(where)} FOR {lock} OF {rows}"
    return Statement(
        f"SELECT s.version, r.* FROM public.tableapi_state s LEFT JOIN ({found}) r ON TRUE", text.parameters
    )


def _stored(anchor: TableAlias, column: Column) -> str:
    """What is stored; of a converted text also its plain text, which old values have not."""
    stored = anchor.column(column, plain=False)
    if not column.converted_from_text:
        return stored
    return f"CASE WHEN {stored} IS NOT NULL THEN ARRAY[{stored}, {anchor.column(column)}] END"


def is_conditional(permissions: Permissions, table: Table, operation: str, columns: tuple[Column, ...]) -> bool:
    """Whether what is allowed depends on the record's values."""
    return permissions.records(operation, table) != ALWAYS or any(
        permissions.column(operation, table, column) != ALWAYS for column in columns
    )


def allowed(permissions: Permissions, table: Table, operation: str, columns: tuple[Column, ...]) -> Statement:
    """Whether the operation is allowed on the record as it has become, and on each of these columns."""
    text = StatementBuilder()
    anchor = TableAlias(text, table)
    wanted = [_holds(text, permissions.records(operation, table), anchor)]
    wanted += [_holds(text, permissions.column(operation, table, column), anchor) for column in columns]
    where = f"{anchor.sys_id()} = {text.input('sys_id', 'varchar')}"
    return Statement(f"SELECT {', '.join(wanted)} FROM {anchor.joined()} WHERE {where}", text.parameters)


def there(permissions: Permissions, targets: tuple[tuple[Table, bool], ...]) -> Statement:
    """For each table, and whether a list refers to it: how many of these ids are records that the caller may read. The
    catalogue's version comes first."""
    text = StatementBuilder()
    counts = [
        _there(text, permissions, target, f"ids{number}", for_lists)
        for number, (target, for_lists) in enumerate(targets)
    ]
    version = "(SELECT version FROM public.tableapi_state)"
    return Statement(f"SELECT {', '.join([version, *counts])}", text.parameters)


def _there(text: StatementBuilder, permissions: Permissions, target: Table, ids: str, for_lists: bool) -> str:
    anchor = TableAlias(text, target)
    where = [f"{anchor.sys_id()} = ANY ({text.input(ids, 'varchar[]')})"]
    readable = predicates.decision(text, permissions.records(READ, target), anchor)
    if readable:
        where.append(readable)
    # Lists have no foreign key that would keep the records until the end of the transaction.
    lock = f" FOR KEY SHARE OF {', '.join(anchor.whole())}" if for_lists else ""
    found = f"SELECT 1 FROM {anchor.joined()} WHERE {' AND '.join(where)}{lock}"
    return f"(SELECT count(*) FROM ({found}) c)"


def called(permissions: Permissions, target: Table, shown: str, holds: Decision) -> Statement:
    """Display values with the ids of the readable records that are called so: the first and the last."""
    text = StatementBuilder()
    anchor = TableAlias(text, target)
    column = target.columns[shown]
    value = predicates.guarded(text, holds, anchor, anchor.column(column))
    names = text.input("called", "text[]")
    where = [f"({value})::text = ANY ({names})"]
    if column.compare_as is ComparisonKind.TEXT:
        # The index is on the folded text.
        folded = f"ARRAY(SELECT {FOLD.format('each')} FROM unnest({names}) each)"
        where.append(f"{key(ComparisonKind.TEXT, value)} = ANY ({folded})")
    readable = predicates.decision(text, permissions.records(READ, target), anchor)
    if readable:
        where.append(readable)
    ids = f"min({anchor.sys_id()}), max({anchor.sys_id()})"
    sql = f"SELECT ({value})::text, {ids} FROM {anchor.joined()} WHERE {' AND '.join(where)} GROUP BY 1"
    return Statement(sql, text.parameters)
