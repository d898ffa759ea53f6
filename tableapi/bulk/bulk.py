"""Creates, changes and deletes many records in one transaction, with the rules and errors of single writes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction

from system.encoded_query import QueryError
from system.errors import BadRequest, Conflict, ServiceError
from tableapi.access.caller_view import record_not_found
from tableapi.database import statement_runner
from tableapi.query import read_plan
from tableapi.query.parameters import OutputOptions, invalid_query
from tableapi.query.parsed_query import parse_query_text
from tableapi.sql import select
from tableapi.write import create, delete, update
from tableapi.write.change_request import WriteRequest

from . import row_insert
from .bulk_request import BulkRequest

CREATED, WRITTEN = 201, 200


@dataclass(frozen=True)
class RecordOutcome:
    """What became of one record of a request."""

    sys_id: str | None
    status: int
    error: ServiceError | None = None


# Writes one record and returns its id.
WriteRecord = Callable[[dict[str, Any]], str]


def create_records(change: WriteRequest, bulk: BulkRequest) -> list[RecordOutcome]:
    change = _with_short_output(change)

    def create_record(body: dict[str, Any]) -> str:
        return create.create(replace(change, body=body)).sys_id

    with transaction.atomic():
        outcomes: list[RecordOutcome] = []
        for run in row_insert.runs_of(change, bulk.records):
            ids = row_insert.insert_run(change, run)
            if ids is not None:
                outcomes += [RecordOutcome(sys_id, CREATED) for sys_id in ids]
                continue
            bodies = [run_change.body for run_change in run.changes]
            outcomes += _write_each(bodies, create_record, CREATED, bulk.continues, first_position=len(outcomes))
        return outcomes


def update_records(change: WriteRequest, bulk: BulkRequest) -> list[RecordOutcome]:
    change = _with_short_output(change)

    def write_record(record: dict[str, Any]) -> str:
        sys_id = _id_of(record)
        body = {name: value for name, value in record.items() if name != "sys_id"}
        return update.update(replace(change, body=body), sys_id, replaces=False).sys_id

    with transaction.atomic():
        return _write_each(list(_records_of(change, bulk)), write_record, WRITTEN, bulk.continues)


def delete_records(change: WriteRequest, bulk: BulkRequest) -> list[RecordOutcome]:
    def delete_record(record: dict[str, Any]) -> str:
        sys_id = _id_of(record)
        delete.delete(change, sys_id)
        return sys_id

    with transaction.atomic():
        return _write_each(list(_records_of(change, bulk)), delete_record, WRITTEN, bulk.continues)


def _with_short_output(change: WriteRequest) -> WriteRequest:
    """The response has no fields of the records, so as few as possible are read."""
    is_visible = change.context.view.column(change.table, "sys_id") is not None
    return replace(change, output=OutputOptions(fields=("sys_id",) if is_visible else ()))


def _write_each(
    records: list[dict[str, Any]], write_record: WriteRecord, status: int, continues: bool, first_position: int = 0
) -> list[RecordOutcome]:
    outcomes = []
    for position, record in enumerate(records, first_position):
        try:
            with transaction.atomic():
                outcomes.append(RecordOutcome(write_record(record), status))
        except ServiceError as error:
            if not continues or error.status >= 500:
                for item in (error, *error.other_errors):
                    item.position = position
                raise
            sys_id = record.get("sys_id")
            outcomes.append(RecordOutcome(sys_id if isinstance(sys_id, str) else None, error.status, error))
    return outcomes


def _id_of(record: dict[str, Any]) -> str:
    sys_id = record.get("sys_id")
    if not isinstance(sys_id, str):
        raise BadRequest("Each record must have its sys_id.", code="invalid_parameter", field="sys_id")
    return sys_id


def _records_of(change: WriteRequest, bulk: BulkRequest) -> Iterator[dict[str, Any]]:
    """The records of the body, or those that the query matches, if there are as many as expected."""
    if not bulk.query:
        yield from bulk.records
        return
    if not change.context.view.can_read(change.table):
        raise record_not_found()
    ids = _matching_ids(change, bulk)
    if len(ids) != bulk.expected:
        counted = f"more than {bulk.expected:,}" if len(ids) > bulk.expected else f"{len(ids):,}"
        message = f"The query matches {counted} records, but {bulk.expected:,} are expected. Nothing was written."
        raise Conflict(message, code="count_differs", field="expected")
    yield from ({**(bulk.values or {}), "sys_id": sys_id} for sys_id in ids)


def _matching_ids(change: WriteRequest, bulk: BulkRequest) -> list[str]:
    context = change.context
    try:
        parsed = parse_query_text(bulk.query)
        plan = read_plan.plan_filter(context.view, change.table, parsed.shape.query)
        statement = select.ids_statement(plan, bulk.expected + 1)
        rows = statement_runner.fetch(statement, context.inputs(parsed.conditions))
    except QueryError as error:
        raise invalid_query(error) from None
    ids = [sys_id for (sys_id,) in statement_runner.strip_version(rows, context.view.catalogue)]
    return [sys_id for sys_id in ids if sys_id is not None]
