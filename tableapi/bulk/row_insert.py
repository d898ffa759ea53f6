"""Inserts many records of a bulk request with one statement, with the checks of `create`.

If the statement inserts fewer records than it should, it is rolled back and the records are created one by one to find
the error. Records that a single statement cannot create are created one by one from the start.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice
from typing import Any

from django.db import DataError, IntegrityError, transaction

from system.errors import ServiceError
from system.records import acting_user
from tableapi.catalogue.definitions import CREATE, Column
from tableapi.database import statement_runner
from tableapi.query.expressions import ALWAYS, NEVER
from tableapi.sql.select import Statement
from tableapi.sql.statement_builder import StatementBuilder
from tableapi.write import create, designed_records, single_statement
from tableapi.write.create import PreparedRecord
from tableapi.write.single_statement import Columns
from tableapi.write.write_request import WriteRequest

MAX_ROWS = 1_000

# Consecutive records to insert with one statement, or one by one if they are not prepared.
RecordGroup = tuple[list[dict[str, Any]], list[PreparedRecord] | None]


def group_records(change: WriteRequest, records: Sequence[dict[str, Any]]) -> Iterator[RecordGroup]:
    """Group the records in request order, in which numbers are assigned."""
    is_suitable = single_statement.supports_single_statement(change.table) and not change.table.deferred_create
    can_create = change.context.view.permissions.record_decision(CREATE, change.table) != NEVER
    if not is_suitable or not can_create or change.is_import:
        yield list(records), None
        return
    grouping_columns = frozenset(_grouping_columns(change))
    prepared_bodies = ((body, _prepare(change, body)) for body in records)

    def sent_grouping_columns(pair: tuple[dict[str, Any], PreparedRecord | None]) -> frozenset[Column] | None:
        """None for records that have to be created one by one."""
        return None if pair[1] is None else grouping_columns & pair[1].sent_values.keys()

    for _, group in groupby(prepared_bodies, sent_grouping_columns):
        while pairs := list(islice(group, MAX_ROWS)):
            prepared_records = [prepared for _, prepared in pairs if prepared is not None]
            yield [body for body, _ in pairs], prepared_records or None


def _grouping_columns(change: WriteRequest) -> Iterator[Column]:
    """Columns that all records of a statement must send, or none, because the statement stores NULL for missing values:
    columns with a rule that restricts their creation, and columns that default to the record number."""
    for column in change.table.columns.values():
        is_conditional = change.context.view.permissions.column_decision(CREATE, change.table, column) != ALWAYS
        if is_conditional or designed_records.defaults_to_number(change.table, column):
            yield column


def _prepare(change: WriteRequest, body: dict[str, Any]) -> PreparedRecord | None:
    """Prepare the record, or return None if it has to be created by itself."""
    columns = change.table.columns
    # Checked before values are parsed, because hashing a password takes a quarter of a second.
    if not all(name in columns and single_statement.has_plain_storage(columns[name]) for name in body):
        return None
    try:
        prepared = create.prepare(replace(change, body=body))
    except ServiceError:
        return None  # the error is reported when the record is created
    is_plain = all(map(single_statement.has_plain_storage, prepared.values))
    has_errors = bool(prepared.errors or prepared.missing_errors)
    return prepared if is_plain and not has_errors and prepared.sys_id is None else None


def insert_records(change: WriteRequest, records: list[PreparedRecord]) -> list[str] | None:
    """Insert the records and return their ids in order, or None if they were not inserted."""
    if len(records) < 2:
        return None
    context, table = change.context, change.table
    columns = single_statement.sorted_by_name({column for record in records for column in record.values})
    sent_columns = single_statement.sorted_by_name({column for record in records for column in record.sent_values})
    reference_columns = tuple(column for column in columns if column.column_type.is_reference)
    names = tuple(tuple(column.name for column in sequence) for sequence in (columns, sent_columns))
    statement: Statement | str = context.view.cached(
        ("rows", table.name, names),
        lambda: _statement(change, columns, sent_columns, reference_columns) or single_statement.NO_STATEMENT,
    )
    if isinstance(statement, str):
        return None
    bindings: dict[str, Any] = {"version": context.view.catalogue.version, "user": acting_user.current()}
    for number, column in enumerate(columns):
        bindings[f"v{number}"] = [record.values.get(column) for record in records]
    for number, column in enumerate(reference_columns):
        bindings[f"ids{number}"] = list({record.values.get(column) for record in records} - {None})
    try:
        with transaction.atomic():
            rows = statement_runner.fetch(statement, context.inputs(**bindings))
            if len(rows) != len(records):
                raise IntegrityError
    except (IntegrityError, DataError):
        return None
    return [sys_id for (sys_id,) in rows]


def _statement(
    change: WriteRequest, columns: Columns, sent_columns: Columns, reference_columns: Columns
) -> Statement | None:
    builder = StatementBuilder()
    conditions = single_statement.write_conditions(builder, change.context.view, reference_columns)
    if conditions is None:
        return None
    names = [f"v{number}" for number in range(len(columns))]
    arrays = [
        builder.input(name, f"{column.column_type.sql_type}[]") for name, column in zip(names, columns, strict=True)
    ]
    new = {column: f"batch.{name}" for column, name in zip(columns, names, strict=True)}
    parts = single_statement.insert_parts(builder, change, new, sent_columns, conditions, rows="batch")
    if parts is None or not arrays:
        return None
    source = f"unnest({', '.join(arrays)}) WITH ORDINALITY AS u({', '.join([*names, 'place'])})"
    rows = f"batch AS MATERIALIZED (SELECT public.svc_new_sys_id() AS sys_id, u.* FROM {source} ORDER BY place)"
    sql = f"WITH {rows}, {parts} SELECT batch.sys_id FROM batch JOIN written USING (sys_id) ORDER BY batch.place"
    return Statement(sql, builder.parameters)
