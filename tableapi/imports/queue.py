"""The queue of imports. Only the holder of the lease of an import may change it or write its records.

free ── take_next / take ──→ leased (60 s, a token) ── record ──→ progress stored, lease renewed
  ↑                            │ release, postpone: free again, immediately or later
  │                            │ finish: no longer in the queue
  └── expiry ──────────────────┘ the holder was killed; if it is only slow, its next write raises LeaseLost
"""

import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import connections
from django.db.models import DateTimeField, F, Func
from django.db.models.functions import Now

from system.background.task_dispatch import wake_worker
from system.plain_sql import fetch_rows
from tableapi.models.imports import Import

TASK = "tableapi.tasks.run_imports"
State = Import.State
ACTIVE_STATES = (State.READING, State.WRITING, State.UNDOING)
LEASE_DURATION = timedelta(seconds=60)
RENEWAL_INTERVAL_S = 2.0
MAX_ATTEMPTS = 5
FIRST_PAUSE_S = 5.0
NO_LEASE: dict[str, Any] = {"lease_until": None, "lease_token": None}
CLOCK = Func(function="clock_timestamp", output_field=DateTimeField())
RENEWAL = {"lease_until": CLOCK + LEASE_DURATION}
# The import that waited longest, so that imports take turns. A lease further in the future is from before the clock of
# the database was set back.
TAKE_NEXT = """
UPDATE public.tableapi_import
SET lease_token = %s, lease_until = clock_timestamp() + %s * interval '1 s', attempt = attempt + 1
WHERE id = (
    SELECT id FROM public.tableapi_import
    WHERE state IN ('reading', 'writing', 'undoing') AND next_at <= statement_timestamp()
        AND (lease_until IS NULL
            OR lease_until NOT BETWEEN statement_timestamp() AND statement_timestamp() + interval '2 min')
    ORDER BY next_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
)
RETURNING id
"""
RENEW = """
UPDATE public.tableapi_import SET lease_until = clock_timestamp() + %s * interval '1 s', counts = %s::jsonb
WHERE id = %s AND lease_token = %s
"""


class LeaseLost(Exception):
    """Another process holds the lease, or the import was cancelled. What the step wrote is rolled back."""


def wake() -> None:
    wake_worker(TASK)


def take_next() -> tuple[str, UUID] | None:
    token = uuid4()
    rows = fetch_rows(TAKE_NEXT, [token, LEASE_DURATION.total_seconds()])
    return (rows[0][0], token) if rows else None


def take(job: Import) -> UUID | None:
    """Lease an import for the request that started it; None if a worker was faster."""
    token = uuid4()
    free = Import.objects.filter(pk=job.pk, lease_token=None, state__in=ACTIVE_STATES)
    return token if free.update(lease_token=token, attempt=F("attempt") + 1, **RENEWAL) else None


def leased(import_id: str, token: UUID) -> Import:
    job = Import.objects.filter(pk=import_id, lease_token=token).select_related("user").first()
    if job is None:
        raise LeaseLost
    return job


def record(job: Import, **columns: Any) -> None:
    """Store progress and renew the lease, as the last statement of a step."""
    _update(job, **columns, **RENEWAL, attempt=1)


def renew(job: Import) -> None:
    _update(job, **RENEWAL)


def finish(job: Import, state: str, **columns: Any) -> None:
    _update(job, state=state, finished_at=Now(), **columns, **NO_LEASE)


def release(job: Import) -> None:
    """Free the import for the next process, behind the others that wait."""
    _update(job, next_at=CLOCK, attempt=0, **NO_LEASE)


def postpone(job: Import, *, counts_attempt: bool) -> None:
    pause = timedelta(seconds=FIRST_PAUSE_S * 2 ** (job.attempt - 1 if counts_attempt else 2))
    _update(job, next_at=CLOCK + pause, attempt=job.attempt - (not counts_attempt), **NO_LEASE)


def is_queue_full(user_id: str, limit: int) -> bool:
    return Import.objects.filter(user=user_id, state__in=ACTIVE_STATES).count() >= limit


class Heartbeat:
    """Renews the lease of a long transaction through another connection, which also shows its progress to others."""

    def __init__(self, job: Import, on_progress: Callable[[Import], None]) -> None:
        self.job = job
        self.on_progress = on_progress
        self.last_at = time.monotonic()

    def beat(self, counts: str) -> None:
        self.on_progress(self.job)
        if time.monotonic() - self.last_at < RENEWAL_INTERVAL_S:
            return
        with closing(connections.create_connection("default")) as connection, connection.cursor() as cursor:
            cursor.execute(RENEW, [LEASE_DURATION.total_seconds(), counts, self.job.pk, self.job.lease_token])
            if not cursor.rowcount:
                raise LeaseLost
        self.last_at = time.monotonic()


def _update(job: Import, **columns: Any) -> None:
    assert job.lease_token is not None
    if not Import.objects.filter(pk=job.pk, lease_token=job.lease_token).update(**columns):
        raise LeaseLost
