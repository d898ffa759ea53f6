"""Creates, changes and deletes many records in one transaction, with the rules and errors of single writes."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from django.db import DataError, transaction

from system.errors import BadRequest, Conflict, ServiceError, TooLarge
from tableapi.access.caller_view import record_not_found
from tableapi.database import catalogue_loader, statement_runner
from tableapi.query import read_plan
from tableapi.query.parsed_query import parse_query_text
from tableapi.read import pipeline
from tableapi.sql import select
from tableapi.write import create, custom_columns, delete, system_records, update
from tableapi.write.write_request import WriteRequest

from . import row_insert
from .bulk_request import BulkRequest

CREATED, WRITTEN = 201, 200
# A password takes a quarter of a second, so records alone do not limit the time.
MAX_BULK_S = 60.0


@dataclass(frozen=True)
class RecordOutcome:
    """What became of one record of a request."""

    sys_id: str | None
    status: int
    error: ServiceError | None = None


@dataclass(frozen=True)
class RecordToWrite:
    """`shown_id` is what the response says: a caller may not be able to read the id."""

    body: dict[str, Any]
    sys_id: Any = None
    shown_id: str | None = None


# Writes one record and returns the id that the response shows.
WriteRecord = Callable[[WriteRequest, RecordToWrite], str | None]


def create_records(change: WriteRequest, bulk: BulkRequest) -> list[RecordOutcome]:
    writer = _Writer(_with_short_output(change), bulk.continues, _create, CREATED)
    with transaction.atomic():
        for run in row_insert.runs_of(writer.change, bulk.records):
            ids = row_insert.insert_run(writer.change, run)
            if ids is not None:
                writer.outcomes += [RecordOutcome(sys_id, CREATED) for sys_id in ids]
            else:
                writer.write_each(RecordToWrite(body) for body in run.bodies)
        return writer.outcomes


def update_records(change: WriteRequest, bulk: BulkRequest) -> list[RecordOutcome]:
    writer = _Writer(_with_short_output(change), bulk.continues, _update, WRITTEN)
    with transaction.atomic():
        writer.write_each(_records_of(change, bulk, "NO KEY UPDATE"))
        return writer.outcomes


def delete_records(change: WriteRequest, bulk: BulkRequest) -> list[RecordOutcome]:
    writer = _Writer(change, bulk.continues, _delete, WRITTEN)
    with transaction.atomic():
        writer.write_each(_records_of(change, bulk, "UPDATE"))
        return writer.outcomes


def _create(change: WriteRequest, record: RecordToWrite) -> str:
    return create.create(replace(change, body=record.body)).sys_id


def _update(change: WriteRequest, record: RecordToWrite) -> str | None:
    update.update(replace(change, body=record.body), _checked_id(record), replaces=False)
    return record.shown_id


def _delete(change: WriteRequest, record: RecordToWrite) -> str | None:
    delete.delete(change, _checked_id(record))
    return record.shown_id


def _checked_id(record: RecordToWrite) -> str:
    if not isinstance(record.sys_id, str):
        raise BadRequest("Each record must have its sys_id.", code="invalid_parameter", field="sys_id")
    return record.sys_id


def _with_short_output(change: WriteRequest) -> WriteRequest:
    """The response has no fields of the records."""
    return replace(change, output=pipeline.shortest_output(change.context, change.table))


class _Writer:
    """Writes records one by one, each in a savepoint, until the first error or to the end."""

    def __init__(self, change: WriteRequest, continues: bool, write_record: WriteRecord, status: int) -> None:
        self.change = change
        self.continues = continues
        self.write_record = write_record
        self.status = status
        self.outcomes: list[RecordOutcome] = []
        self.ends_at = time.monotonic() + MAX_BULK_S

    def write_each(self, records: Iterator[RecordToWrite]) -> None:
        for record in records:
            if time.monotonic() > self.ends_at:
                raise TooLarge("The request takes too long. Send fewer records.")
            try:
                with transaction.atomic():
                    shown_id = self.write_record(self._current_change(), record)
                self.outcomes.append(RecordOutcome(shown_id, self.status))
            except DataError:
                self._fail(record, BadRequest("A value cannot be stored or compared."))
            except ServiceError as error:
                self._fail(record, error)

    def _current_change(self) -> WriteRequest:
        """A record of a product table may have changed the catalogue: the next one is written under the new one."""
        change = self.change
        if change.table.is_system:
            context = change.context.caller.context(catalogue_loader.reload_if_changed())
            self.change = replace(change, context=context, table=context.view.open_table(change.table.name))
        return self.change

    def _fail(self, record: RecordToWrite, error: ServiceError) -> None:
        if not self.continues or error.status >= 500:
            for item in (error, *error.other_errors):
                item.position = len(self.outcomes)
            raise error
        statement_runner.check_version(self.change.context.inputs())  # the error may be one of an outdated catalogue
        self.outcomes.append(RecordOutcome(record.shown_id, error.status, error))


def _records_of(change: WriteRequest, bulk: BulkRequest, lock: str) -> Iterator[RecordToWrite]:
    """The records of the body, or those that the query matches, if there are as many as expected."""
    if not bulk.query:
        for record in bulk.records:
            sys_id = record.get("sys_id")
            body = {name: value for name, value in record.items() if name != "sys_id"}
            yield RecordToWrite(body, sys_id, sys_id if isinstance(sys_id, str) else None)
        return
    if not change.context.view.can_read(change.table):
        raise record_not_found()
    rows = _matching_rows(change, bulk, lock)
    if len(rows) != bulk.expected:
        counted = f"more than {bulk.expected:,}" if len(rows) > bulk.expected else f"{len(rows):,}"
        message = f"The query matches {counted} records, but {bulk.expected:,} are expected. Nothing was written."
        raise Conflict(message, code="count_differs", field="expected")
    for sys_id, visible_id in rows:
        yield RecordToWrite(bulk.values or {}, sys_id, visible_id)


def _matching_rows(change: WriteRequest, bulk: BulkRequest, lock: str) -> list[tuple[str, str | None]]:
    context = change.context
    system_records.lock_for_change(change.table)
    parsed = parse_query_text(bulk.query)
    plan = read_plan.plan_filter(context.view, change.table, parsed.shape.query)
    sys_id = plan.fields[0] if plan.fields else None
    statement = select.locking_statement(plan, sys_id, bulk.expected + 1, lock)
    rows = custom_columns.fetch_locked(change.table, statement, context.inputs(parsed.conditions))
    rows = statement_runner.strip_version(rows, context.view.catalogue)
    return [(sys_id, visible_id) for sys_id, visible_id in rows if sys_id is not None]
