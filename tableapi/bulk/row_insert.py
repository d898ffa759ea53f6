"""Inserts the records of a bulk request that have the same columns in one statement, with the checks of `create`.

If it writes fewer records than it should, nothing of it stays, and the records are created one by one, which finds the
error. Records that need more than a comparison of values take that way at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import IntegrityError, transaction

from system.errors import ServiceError
from system.records import acting_user
from tableapi.catalogue.definitions import CREATE, Column
from tableapi.database import statement_runner
from tableapi.query.expressions import NEVER
from tableapi.sql.select import Statement
from tableapi.sql.statement_builder import StatementBuilder
from tableapi.write import create, permission_queries, single_statement
from tableapi.write.change_request import WriteRequest

MAX_ROWS = 1_000

Values = Mapping[Column, Any]


@dataclass
class Run:
    """Neighbouring records with the same columns; without values they are created one by one."""

    changes: list[WriteRequest]
    columns: tuple[Column, ...] = ()
    sent: tuple[Column, ...] = ()
    values: list[Values] | None = None


def runs_of(change: WriteRequest, records: Sequence[dict[str, Any]]) -> Iterator[Run]:
    """In the order of the request, in which numbers are assigned."""
    current: Run | None = None
    for body in records:
        following = _run_of(replace(change, body=body))
        if current is not None and _belong_together(current, following):
            current.changes += following.changes
            if current.values is not None and following.values is not None:
                current.values += following.values
            continue
        if current is not None:
            yield current
        current = following
    if current is not None:
        yield current


def _belong_together(current: Run, following: Run) -> bool:
    if current.values is None or following.values is None:
        return current.values is following.values
    is_same = (current.columns, current.sent) == (following.columns, following.sent)
    return is_same and len(current.changes) < MAX_ROWS


def _run_of(change: WriteRequest) -> Run:
    permissions = change.context.view.permissions
    if not single_statement.is_suitable(change.table) or change.table.deferred_create:
        return Run([change])
    if permissions.records(CREATE, change.table) == NEVER:
        return Run([change])
    try:
        prepared = create.prepare(change)
        if prepared.errors or prepared.missing or prepared.sys_id is not None:
            return Run([change])
    except ServiceError:
        return Run([change])  # reported when it is its turn
    if not all(map(single_statement.is_stored_unchanged, prepared.values)):
        return Run([change])
    columns = single_statement.sorted_by_name(prepared.values)
    return Run([change], columns, single_statement.sorted_by_name(prepared.sent), [prepared.values])


def insert_run(change: WriteRequest, run: Run) -> list[str] | None:
    """The ids of the new records in their order; None if they were not written."""
    if run.values is None or len(run.values) < 2:
        return None
    context = change.context
    referring = tuple(column for column in run.columns if column.column_type.is_reference)
    names = tuple(tuple(column.name for column in group) for group in (run.columns, run.sent))
    statement = context.view.cached(
        ("rows", change.table.name, names), lambda: _statement(change, run, referring) or single_statement.NO_STATEMENT
    )
    if isinstance(statement, str):
        return None
    bound: dict[str, Any] = {"version": context.view.catalogue.version, "who": acting_user.current()}
    for number, column in enumerate(run.columns):
        bound[f"v{number}"] = [values[column] for values in run.values]
    for number, column in enumerate(referring):
        ids = {values[column] for values in run.values} - {None}
        bound |= {f"ids{number}": list(ids), f"count{number}": len(ids)}
    try:
        with transaction.atomic():
            rows = statement_runner.fetch(statement, context.inputs(**bound))
            if len(rows) != len(run.values):
                raise IntegrityError
    except IntegrityError:
        return None
    return [sys_id for (sys_id,) in rows]


def _statement(change: WriteRequest, run: Run, referring: tuple[Column, ...]) -> Statement | None:
    view, table = change.context.view, change.table
    builder = StatementBuilder()
    conditions = [f"c.version = {builder.input('version', 'bigint')}"]
    for number, column in enumerate(referring):
        target = view.catalogue.tables.get(column.reference or "")
        if target is None or not view.can_read(target):
            return None
        count = permission_queries.count_sql(builder, view.permissions, target, f"ids{number}")
        conditions.append(f"{count} = {builder.input(f'count{number}', 'bigint')}")
    arrays = [
        builder.input(f"v{number}", f"{column.column_type.sql_type}[]") for number, column in enumerate(run.columns)
    ]
    names = [f"v{number}" for number in range(len(run.columns))]
    new = {column: f"batch.{name}" for column, name in zip(run.columns, names, strict=True)}
    parts = single_statement.insert_parts(builder, view.permissions, table, new, run.sent, conditions, rows="batch")
    if parts is None or not arrays:
        return None
    source = f"unnest({', '.join(arrays)}) WITH ORDINALITY AS u({', '.join([*names, 'place'])})"
    rows = f"batch AS MATERIALIZED (SELECT public.svc_new_sys_id() AS sys_id, u.* FROM {source} ORDER BY place)"
    sql = f"WITH {rows}, {parts} SELECT batch.sys_id FROM batch JOIN written USING (sys_id) ORDER BY batch.place"
    return Statement(sql, builder.parameters)
