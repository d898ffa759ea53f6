"""Writes the SQL that a write asks first: what is stored, and what the caller may do with it. Pure."""

from __future__ import annotations

from . import conditions
from .catalogue import DELETE, READ, Column, Table
from .expressions import ALWAYS, Decision
from .rules import Rights
from .sql import Anchor, Text
from .statements import Statement

OWN_VERSION = "sys_version"


def _holds(text: Text, found: Decision, anchor: Anchor) -> str:
    condition = conditions.decision(text, found, anchor)
    return "TRUE" if condition is None else f"(({condition}) IS TRUE)"


def standing(rights: Rights, table: Table, operation: str, columns: tuple[Column, ...]) -> Statement:
    """The record as it stands, locked: catalogue version, record version, whether the operation is allowed on it; then
    for each column what is stored, whether the caller sees it, and whether the operation is allowed on it."""
    text = Text()
    anchor = Anchor(text, table)
    version = anchor.column(table.columns[OWN_VERSION])
    wanted = [f"{version} AS v", f"{_holds(text, rights.records(operation, table), anchor)} AS a"]
    for number, column in enumerate(columns):
        wanted += [
            f"{anchor.column(column, plain=False)} AS c{number}",
            f"{_holds(text, rights.column(READ, table, column), anchor)} AS r{number}",
            f"{_holds(text, rights.column(operation, table, column), anchor)} AS w{number}",
        ]
    where = [f"{anchor.sys_id()} = {text.given('sys_id', 'varchar')}"]
    readable = conditions.decision(text, rights.records(READ, table), anchor)
    if readable:
        where.append(readable)
    # The row that has the version stands for the record: whoever writes a part of it locks that one.
    locked = version.split(".", 1)[0]
    # Before a deletion also against references: one that is made meanwhile would be emptied, mandatory or not.
    lock = "UPDATE" if operation == DELETE else "NO KEY UPDATE"
    found = f"SELECT {', '.join(wanted)} FROM {anchor.joined()} WHERE {' AND '.join(where)} FOR {lock} OF {locked}"
    return Statement(
        f"SELECT s.version, r.* FROM public.tableapi_state s LEFT JOIN ({found}) r ON TRUE", text.parameters
    )


def is_conditional(rights: Rights, table: Table, operation: str, columns: tuple[Column, ...]) -> bool:
    """Whether what is allowed depends on the record's values."""
    return rights.records(operation, table) != ALWAYS or any(
        rights.column(operation, table, column) != ALWAYS for column in columns
    )


def allowed(rights: Rights, table: Table, operation: str, columns: tuple[Column, ...]) -> Statement:
    """Whether the operation is allowed on the record as it has become, and on each of these columns."""
    text = Text()
    anchor = Anchor(text, table)
    wanted = [_holds(text, rights.records(operation, table), anchor)]
    wanted += [_holds(text, rights.column(operation, table, column), anchor) for column in columns]
    where = f"{anchor.sys_id()} = {text.given('sys_id', 'varchar')}"
    return Statement(f"SELECT {', '.join(wanted)} FROM {anchor.joined()} WHERE {where}", text.parameters)


def there(rights: Rights, target: Table) -> Statement:
    """How many of these ids are records that the caller may read."""
    text = Text()
    anchor = Anchor(text, target)
    where = [f"{anchor.sys_id()} = ANY ({text.given('ids', 'varchar[]')})"]
    readable = conditions.decision(text, rights.records(READ, target), anchor)
    if readable:
        where.append(readable)
    return Statement(f"SELECT count(*) FROM {anchor.joined()} WHERE {' AND '.join(where)}", text.parameters)


def called(rights: Rights, target: Table, shown: str, holds: Decision) -> Statement:
    """The ids of the readable records whose display value is this one; two are enough to know that it is not clear."""
    text = Text()
    anchor = Anchor(text, target)
    column = target.columns[shown]
    value = conditions.guarded(text, holds, anchor, anchor.column(column))
    where = [f"({value})::text = {text.given('called', 'text')}"]
    readable = conditions.decision(text, rights.records(READ, target), anchor)
    if readable:
        where.append(readable)
    sql = f"SELECT {anchor.sys_id()} FROM {anchor.joined()} WHERE {' AND '.join(where)} LIMIT 2"
    return Statement(sql, text.parameters)
