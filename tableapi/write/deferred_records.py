"""Queues records that were validated in the request, and creates them in the worker."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import structlog
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models.functions import Now
from psycopg.types.json import Jsonb

from system.background.task_dispatch import wake_worker
from system.errors import ServiceError
from system.records import acting_user
from tableapi.catalogue.definitions import Column, Table
from tableapi.database import catalogue_loader
from tableapi.models import DeferredRecord
from tableapi.values import column_values

from . import designed_records

logger = structlog.get_logger(__name__)

MAX_ATTEMPTS = 5
FIRST_RETRY_DELAY = timedelta(seconds=10)
MAX_RETRY_DELAY = FIRST_RETRY_DELAY * 2 ** (MAX_ATTEMPTS - 1)
BATCH_SIZE = 100


def enqueue(table: Table, sys_id: str, values: Mapping[Column, Any]) -> None:
    """Store the values to insert, in the transaction of the request."""
    queued = {column.name: _as_json(value) for column, value in values.items() if value is not None}
    try:
        DeferredRecord.objects.create(
            table=table.name, record_id=sys_id, values=queued, caller=acting_user.current(), next_at=Now()
        )
    except IntegrityError:
        raise designed_records.Duplicate from None  # the imported id is already queued
    transaction.on_commit(lambda: wake_worker("tableapi.tasks.create_deferred"), robust=True)


def _as_json(value: Any) -> Any:
    if isinstance(value, Jsonb):
        return value.obj
    return value if isinstance(value, list | str) else str(value)


def create_due_records() -> int:
    """Create the records that are due, each in its own transaction; return how many were processed."""
    queued = DeferredRecord.objects.filter(state=DeferredRecord.State.QUEUED)
    # Uses the database's clock, because host clocks may differ. Later times are from before it was set back.
    due = queued.exclude(next_at__range=(Now(), Now() + MAX_RETRY_DELAY)).order_by("id")
    ids = list(due.values_list("id", flat=True)[:BATCH_SIZE])
    for row_id in ids:
        _create(row_id)
    return len(ids)


def _create(row_id: int) -> None:
    with transaction.atomic():
        # A row that another worker has locked is skipped.
        queued = DeferredRecord.objects.filter(pk=row_id, state=DeferredRecord.State.QUEUED)
        row = queued.select_for_update(skip_locked=True).first()
        if row is None:
            return
        try:
            with transaction.atomic():
                _insert(row)
        except (ServiceError, DatabaseError) as error:
            _record_failure(row, error)
        else:
            row.delete()


def _insert(row: DeferredRecord) -> None:
    catalogue = catalogue_loader.reload_if_changed()
    table = catalogue.tables.get(row.table)
    if table is None:
        raise ServiceError(f'The table "{row.table}" no longer exists.')
    values = {}
    for name, value in row.values.items():
        column = table.columns.get(name)
        if column is None:
            raise ServiceError(f'The column "{name}" no longer exists.')
        values[column] = column_values.stored_value(column, value)
    with acting_user.acting_as(row.caller):
        designed_records.insert(catalogue, table, values, row.record_id)


def _record_failure(row: DeferredRecord, error: Exception) -> None:
    row.attempts += 1
    # Not the database's message, which could contain values that the reader may not see.
    row.error = error.message if isinstance(error, ServiceError) else type(error).__name__
    is_final = isinstance(error, ServiceError) and error.status < 500
    if is_final or row.attempts >= MAX_ATTEMPTS:
        row.state = DeferredRecord.State.FAILED
        logger.error("deferred_record_failed", table=row.table, record_id=row.record_id, attempts=row.attempts)
    row.next_at = Now() + FIRST_RETRY_DELAY * 2 ** (row.attempts - 1)
    row.save()
