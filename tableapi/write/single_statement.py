"""Creates or updates a record and reads it for the answer, in one statement, which is its own transaction.

A write takes this way if nothing about it depends on what is stored: the rules allow it whatever the record contains,
and no column needs more than a comparison. The statement itself checks the version of the catalogue, that the caller
can read the records referred to, and that the update changes something. If it writes nothing, the transaction of
`create` or `update` follows, which finds out why.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any

from django.db import IntegrityError, connection, transaction

from system.errors import BadRequest, Invalid
from system.records import acting_user
from tableapi.catalogue.column_type import Storage
from tableapi.catalogue.definitions import CREATE, READ, WRITE, Column, Table
from tableapi.database import statement_runner
from tableapi.query.expressions import ALWAYS, Decision
from tableapi.read import pipeline
from tableapi.sql import select
from tableapi.sql.select import Statement
from tableapi.sql.statement_builder import StatementBuilder, literal, physical, quoted

from . import designed_records, payload, permission_queries
from .change_request import WriteRequest, WriteResult
from .current_record import is_generated

Values = Mapping[Column, Any]
IMPOSSIBLE = "no such statement"


def create(change: WriteRequest, values: Values, sent: Iterable[Column]) -> WriteResult | None:
    """None if nothing was written."""
    if change.is_idempotent or change.table.deferred_create:
        return None
    if not _may_write(change, CREATE, sent) or not all(map(_is_plain, values)):
        return None
    return _run(change, CREATE, values)


def update(change: WriteRequest, sys_id: str) -> WriteResult | None:
    """PATCH; None if nothing was written."""
    needs_transaction = change.is_idempotent or change.by_display or change.is_current is not None
    if needs_transaction or not pipeline.RECORD_ID.fullmatch(sys_id):
        return None
    columns = tuple(column for name in change.body if (column := change.table.columns.get(name)) is not None)
    if len(columns) != len(change.body) or not columns or not _may_write(change, WRITE, columns):
        return None
    if not all(_is_plain(column) and _compares_plainly(change.table, column) for column in columns):
        return None
    try:
        values = {column: payload.value(change, column, change.body[column.name]) for column in columns}
    except (Invalid, BadRequest):
        return None
    # Empty values count as the same, and mandatory columns must not get one.
    is_empty = any(value is None or value == "" for value in values.values())
    return None if is_empty else _run(change, WRITE, values, sys_id=sys_id)


def _may_write(change: WriteRequest, operation: str, columns: Iterable[Column]) -> bool:
    table, view = change.table, change.context.view
    columns = _in_order(columns)

    def decide() -> bool:
        decisions: list[Decision] = [view.permissions.records(READ, table), view.permissions.records(operation, table)]
        for column in columns:
            decisions += [
                view.permissions.column(READ, table, column),
                view.permissions.column(operation, table, column),
            ]
        return (
            not table.is_system
            and len(table.family) == len(table.lineage) == 1
            and all(decision == ALWAYS for decision in decisions)
        )

    return bool(
        view.cached(("single statement", table.name, operation, tuple(column.name for column in columns)), decide)
    )


def _in_order(columns: Iterable[Column]) -> tuple[Column, ...]:
    """By name, so that there is one statement for every order of a body."""
    return tuple(sorted(columns, key=lambda column: column.name))


def _is_plain(column: Column) -> bool:
    return column.column_type.storage is Storage.PLAIN and not column.column_type.is_list


def _compares_plainly(table: Table, column: Column) -> bool:
    is_server_column = column.is_sys or column.read_only or is_generated(table, column)
    return not is_server_column and not column.converted_from_text and column.column_type.is_same is operator.eq


def _run(change: WriteRequest, operation: str, values: Values, **inputs: str) -> WriteResult | None:
    context, table = change.context, change.table
    columns = _in_order(values)
    referring = tuple(column for column in columns if column.column_type.is_reference and values[column])
    plan, _ = pipeline.compile_record(context, table, change.output)
    names = tuple(tuple(column.name for column in some) for some in (columns, referring))
    statement: Statement | str = context.view.cached(
        ("written", operation, table.name, change.output, pipeline.style_of(change.output), names),
        lambda: _statement(change, operation, columns, referring) or IMPOSSIBLE,
    )
    if isinstance(statement, str):
        return None
    bound: dict[str, Any] = {"version": context.view.catalogue.version, "who": acting_user.current(), **inputs}
    bound |= {f"v{number}": values[column] for number, column in enumerate(columns)}
    bound |= {f"ids{number}": [values[column]] for number, column in enumerate(referring)}
    try:
        # Without a transaction around it, a statement is its own.
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            rows = statement_runner.fetch_bytes(statement, context.inputs(**bound))
    except IntegrityError:
        return None
    if not rows:
        return None
    ((sys_id, version, body),) = rows
    assert sys_id is not None and body is not None
    return WriteResult(sys_id.decode(), pipeline.record_result(version, body, plan))


def _statement(
    change: WriteRequest, operation: str, columns: tuple[Column, ...], referring: tuple[Column, ...]
) -> Statement | None:
    """None if the answer contains columns of other records, because they are read as they were before the write."""
    view, table = change.context.view, change.table
    text = StatementBuilder()
    conditions = [f"c.version = {text.input('version', 'bigint')}"]
    for number, column in enumerate(referring):
        target = view.catalogue.tables.get(column.reference or "")
        if target is None or not view.can_read(target):
            return None
        conditions.append(f"{permission_queries.count_of_readable(text, view.permissions, target, f'ids{number}')} = 1")
    new = {column: text.input(f"v{number}", column.column_type.sql_type) for number, column in enumerate(columns)}
    write = _insert if operation == CREATE else _update
    written = write(text, table, new, conditions)
    plan, _ = pipeline.compile_record(change.context, table, change.output)
    answer = select.written_record(text, plan, pipeline.style_of(change.output))
    if answer is None:
        return None
    return Statement(f"WITH written AS ({written}) {answer}", text.parameters)


def _insert(text: StatementBuilder, table: Table, new: Mapping[Column, str], conditions: list[str]) -> str:
    who = text.input("who", "varchar")
    row = {column.physical: value for column, value in new.items()}
    row |= {"sys_created_by": who, "sys_updated_by": who, "sys_db_table_id": literal(table.id)}
    columns, values = list(row), list(row.values())
    number = designed_records.add_number(table, columns, values) if designed_records.number_owner(table) else ""
    source = f"SELECT {number} FROM public.tableapi_state c WHERE {' AND '.join(conditions)}"
    names = ", ".join(map(quoted, columns))
    return f"INSERT INTO {physical(table)} ({names}) SELECT {', '.join(values)} FROM ({source}) s RETURNING *"


def _update(text: StatementBuilder, table: Table, new: Mapping[Column, str], conditions: list[str]) -> str:
    changes = [(f"r.{quoted(column.physical)}", quoted(column.physical), value) for column, value in new.items()]
    differs = " OR ".join(f"{stored} IS DISTINCT FROM {value}" for stored, _, value in changes)
    who = text.input("who", "varchar")
    assignments = [
        *(f"{name} = {value}" for _, name, value in changes),
        "sys_version = r.sys_version + 1",
        "sys_updated_at = clock_timestamp()",
        f"sys_updated_by = {who}",
    ]
    where = [*conditions, f"r.sys_id = {text.input('sys_id', 'varchar')}", f"({differs})"]
    return (
        f"UPDATE {physical(table)} r SET {', '.join(assignments)} FROM public.tableapi_state c "
        f"WHERE {' AND '.join(where)} RETURNING r.*"
    )
