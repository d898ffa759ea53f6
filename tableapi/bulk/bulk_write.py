"""Creates, updates and deletes many records in one transaction, with the rules and errors of single writes."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from django.db import DataError, transaction

from system.errors import BadRequest, Conflict, InvalidParameter, ServiceError, TooLarge
from tableapi.access.caller_view import record_not_found
from tableapi.database import catalogue_loader, statement_runner
from tableapi.query import read_plan
from tableapi.query.parsed_query import parse_query_text
from tableapi.read import pipeline
from tableapi.sql import select
from tableapi.write import create, custom_columns, delete, product_records, update
from tableapi.write.write_request import WriteRequest

from . import row_insert
from .bulk_request import BulkRequest

CREATED, OK = 201, 200
# Hashing a password takes a quarter of a second, so limiting the records does not limit the time.
MAX_BULK_S = 60.0


@dataclass(frozen=True)
class RecordOutcome:
    sys_id: str | None
    status: int
    error: ServiceError | None = None


@dataclass(frozen=True)
class RecordToWrite:
    """`visible_id` is the id in the response, or None if the caller cannot read it."""

    body: dict[str, Any]
    sys_id: Any = None
    visible_id: str | None = None


def create_records(change: WriteRequest, bulk: BulkRequest) -> list[RecordOutcome]:
    writer = _RecordWriter(_with_minimal_output(change), bulk.continues_on_error, _create, CREATED)
    if not bulk.is_time_limited:
        writer.deadline = inf
    with transaction.atomic():
        for bodies, prepared_records in row_insert.group_records(writer.change, bulk.records):
            ids = row_insert.insert_records(writer.change, prepared_records or [])
            if ids is not None:
                writer.outcomes += [RecordOutcome(sys_id, CREATED) for sys_id in ids]
            else:
                writer.write_each(RecordToWrite(body) for body in bodies)
        return writer.outcomes


def update_records(change: WriteRequest, bulk: BulkRequest) -> list[RecordOutcome]:
    writer = _RecordWriter(_with_minimal_output(change), bulk.continues_on_error, _update, OK)
    with transaction.atomic():
        writer.write_each(_records_to_write(change, bulk, "NO KEY UPDATE"))
        return writer.outcomes


def delete_records(change: WriteRequest, bulk: BulkRequest) -> list[RecordOutcome]:
    writer = _RecordWriter(change, bulk.continues_on_error, _delete, OK)
    with transaction.atomic():
        writer.write_each(_records_to_write(change, bulk, "UPDATE"))
        return writer.outcomes


def _create(change: WriteRequest, record: RecordToWrite) -> str:
    return create.create(replace(change, body=record.body)).sys_id


def _update(change: WriteRequest, record: RecordToWrite) -> str | None:
    update.update(replace(change, body=record.body), _checked_id(record), replaces=False)
    return record.visible_id


def _delete(change: WriteRequest, record: RecordToWrite) -> str | None:
    delete.delete(change, _checked_id(record))
    return record.visible_id


def _checked_id(record: RecordToWrite) -> str:
    if not isinstance(record.sys_id, str):
        raise InvalidParameter("Each record must include its sys_id.", field="sys_id")
    return record.sys_id


def _with_minimal_output(change: WriteRequest) -> WriteRequest:
    """Bulk responses contain no record fields."""
    return replace(change, output=pipeline.minimal_output(change.context, change.table))


@dataclass
class _RecordWriter:
    """Writes records one by one, each in a savepoint. Stops at the first error unless `continues_on_error`."""

    change: WriteRequest
    continues_on_error: bool
    # Writes one record and returns the id that the response shows.
    write_record: Callable[[WriteRequest, RecordToWrite], str | None]
    status: int
    outcomes: list[RecordOutcome] = field(default_factory=list)
    deadline: float = field(default_factory=lambda: time.monotonic() + MAX_BULK_S)

    def write_each(self, records: Iterator[RecordToWrite]) -> None:
        for record in records:
            if time.monotonic() > self.deadline:
                raise TooLarge("The request took too long. Write fewer records in one request.")
            try:
                with transaction.atomic():
                    visible_id = self.write_record(self._current_change(), record)
                self.outcomes.append(RecordOutcome(visible_id, self.status))
            except DataError:
                self._handle_error(record, BadRequest("A value cannot be stored or compared."))
            except ServiceError as error:
                self._handle_error(record, error)

    def _current_change(self) -> WriteRequest:
        """Reload the catalogue, which the previous record may have changed if it belongs to a product table."""
        change = self.change
        if change.table.is_system:
            context = change.context.caller.context(catalogue_loader.reload_if_changed())
            self.change = replace(change, context=context, table=context.view.open_table(change.table.name))
        return self.change

    def _handle_error(self, record: RecordToWrite, error: ServiceError) -> None:
        if not self.continues_on_error or error.status >= 500:
            for item in (error, *error.other_errors):
                item.position = len(self.outcomes)
            raise error
        statement_runner.check_version(self.change.context.inputs())  # an outdated catalogue may have caused the error
        self.outcomes.append(RecordOutcome(record.visible_id, error.status, error))


def _records_to_write(change: WriteRequest, bulk: BulkRequest, lock: str) -> Iterator[RecordToWrite]:
    """The records in the body, or those that the query matches, whose number must be the expected one."""
    if not bulk.query:
        for record in bulk.records:
            sys_id = record.get("sys_id")
            body = {name: value for name, value in record.items() if name != "sys_id"}
            yield RecordToWrite(body, sys_id, sys_id if isinstance(sys_id, str) else None)
        return
    if not change.context.view.can_read(change.table):
        raise record_not_found()
    rows = _matching_rows(change, bulk, lock)
    if len(rows) != bulk.expected_count:
        actual = f"more than {bulk.expected_count:,}" if len(rows) > bulk.expected_count else f"{len(rows):,}"
        message = f"Number of matching records: {actual}. Expected: {bulk.expected_count:,}. Nothing was written."
        raise Conflict(message, code="count_differs", field="expected")
    for sys_id, visible_id in rows:
        yield RecordToWrite(bulk.values or {}, sys_id, visible_id)


def _matching_rows(change: WriteRequest, bulk: BulkRequest, lock: str) -> list[tuple[str, str | None]]:
    context = change.context
    product_records.lock_for_change(change.table)
    parsed_query = parse_query_text(bulk.query)
    if next(parsed_query.shape.query.conditions(), None) is None:
        raise InvalidParameter("sysparm_query must contain a condition.", field="sysparm_query")
    plan = read_plan.plan_filter(context.view, change.table, parsed_query.shape.query)
    sys_id = plan.fields[0] if plan.fields else None
    statement = select.locking_statement(plan, sys_id, bulk.expected_count + 1, lock)
    rows = custom_columns.fetch_locked(context, change.table, statement, conditions=parsed_query.conditions)
    return [(sys_id, visible_id) for sys_id, visible_id in rows if sys_id is not None]
