"""Inserts many records of a bulk request with one statement, with the checks of `create`.

If it writes fewer records than it should, nothing of it stays, and the records are created one by one, which finds the
error. Records that need more than a comparison of values take that way at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import DataError, IntegrityError, transaction

from system.errors import ServiceError
from system.records import acting_user
from tableapi.catalogue.definitions import CREATE, Column, Table
from tableapi.database import statement_runner
from tableapi.query.expressions import ALWAYS, NEVER
from tableapi.sql.select import Statement
from tableapi.sql.statement_builder import StatementBuilder
from tableapi.write import create, designed_records, single_statement
from tableapi.write.create import PreparedRecord
from tableapi.write.write_request import WriteRequest

MAX_ROWS = 1_000


@dataclass
class Run:
    """Consecutive records for one statement; without `prepared` they are created one by one."""

    bodies: list[dict[str, Any]]
    prepared: list[PreparedRecord] | None = None
    # Sent columns that must be sent in all records of a statement or in none.
    deciding: frozenset[Column] = frozenset()


def runs_of(change: WriteRequest, records: Sequence[dict[str, Any]]) -> Iterator[Run]:
    """In the order of the request, in which numbers are assigned."""
    is_suitable = single_statement.is_suitable(change.table) and not change.table.deferred_create
    can_create = change.context.view.permissions.record_decision(CREATE, change.table) != NEVER
    if not is_suitable or not can_create or change.is_import:
        yield Run(list(records))
        return
    deciding_columns = frozenset(_deciding_columns(change))
    current: Run | None = None
    for body in records:
        following = _run_of(change, body, deciding_columns)
        if current is not None and _belong_together(current, following):
            current.bodies += following.bodies
            if current.prepared is not None and following.prepared is not None:
                current.prepared += following.prepared
            continue
        if current is not None:
            yield current
        current = following
    if current is not None:
        yield current


def _deciding_columns(change: WriteRequest) -> Iterator[Column]:
    """In one statement, a column that some records do not name is empty in them. So all name those whose rule looks at
    the record, and the display name, which is the number otherwise."""
    for column in change.table.columns.values():
        is_conditional = change.context.view.permissions.column_decision(CREATE, change.table, column) != ALWAYS
        if is_conditional or designed_records.defaults_to_number(change.table, column):
            yield column


def _run_of(change: WriteRequest, body: dict[str, Any], deciding_columns: frozenset[Column]) -> Run:
    columns = change.table.columns
    # Before the values are read: a password takes a quarter of a second.
    if not all(name in columns and single_statement.is_stored_unchanged(columns[name]) for name in body):
        return Run([body])
    try:
        prepared = create.prepare(replace(change, body=body))
    except ServiceError:
        return Run([body])  # reported when it is its turn
    is_plain = all(map(single_statement.is_stored_unchanged, prepared.values))
    if prepared.errors or prepared.missing or prepared.sys_id is not None or not is_plain:
        return Run([body])
    return Run([body], [prepared], deciding_columns & prepared.sent.keys())


def _belong_together(current: Run, following: Run) -> bool:
    if current.prepared is None or following.prepared is None:
        return current.prepared is following.prepared
    return current.deciding == following.deciding and len(current.bodies) < MAX_ROWS


def insert_run(change: WriteRequest, run: Run) -> list[str] | None:
    """The ids of the new records in their order; None if they were not written."""
    if run.prepared is None or len(run.prepared) < 2:
        return None
    context, table = change.context, change.table
    columns = single_statement.sorted_by_name({column for record in run.prepared for column in record.values})
    sent = single_statement.sorted_by_name({column for record in run.prepared for column in record.sent})
    referring = tuple(column for column in columns if column.column_type.is_reference)
    names = tuple(tuple(column.name for column in group) for group in (columns, sent))
    statement: Statement | str = context.view.cached(
        ("rows", table.name, names),
        lambda: _statement(change, table, columns, sent, referring) or single_statement.NO_STATEMENT,
    )
    if isinstance(statement, str):
        return None
    bound: dict[str, Any] = {"version": context.view.catalogue.version, "who": acting_user.current()}
    for number, column in enumerate(columns):
        bound[f"v{number}"] = [record.values.get(column) for record in run.prepared]
    for number, column in enumerate(referring):
        bound[f"ids{number}"] = list({record.values.get(column) for record in run.prepared} - {None})
    try:
        with transaction.atomic():
            rows = statement_runner.fetch(statement, context.inputs(**bound))
            if len(rows) != len(run.prepared):
                raise IntegrityError
    except (IntegrityError, DataError):
        return None
    return [sys_id for (sys_id,) in rows]


def _statement(
    change: WriteRequest,
    table: Table,
    columns: tuple[Column, ...],
    sent: tuple[Column, ...],
    referring: tuple[Column, ...],
) -> Statement | None:
    view = change.context.view
    builder = StatementBuilder()
    conditions = single_statement.current_conditions(builder, view, referring)
    if conditions is None:
        return None
    names = [f"v{number}" for number in range(len(columns))]
    arrays = [
        builder.input(name, f"{column.column_type.sql_type}[]") for name, column in zip(names, columns, strict=True)
    ]
    new: Mapping[Column, str] = {column: f"batch.{name}" for column, name in zip(columns, names, strict=True)}
    parts = single_statement.insert_parts(builder, view.permissions, table, new, sent, conditions, rows="batch")
    if parts is None or not arrays:
        return None
    source = f"unnest({', '.join(arrays)}) WITH ORDINALITY AS u({', '.join([*names, 'place'])})"
    rows = f"batch AS MATERIALIZED (SELECT public.svc_new_sys_id() AS sys_id, u.* FROM {source} ORDER BY place)"
    sql = f"WITH {rows}, {parts} SELECT batch.sys_id FROM batch JOIN written USING (sys_id) ORDER BY batch.place"
    return Statement(sql, builder.parameters)
