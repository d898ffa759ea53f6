"""The queue of versions to process. Only the holder of a version's lease may change the version.

    free ── take_lease ──→ leased (60 s, a token) ── record_progress ──→ result stored, lease renewed
      ↑                      │ release_lease, postpone_version, fail_attempt: free again, immediately or later
      │                      │ finish_version: no longer in the queue
      └── expiry ────────────┘ the holder was killed or is too slow; its next write raises LeaseLost

`attempt` counts the leases since the last stored result. All times are the database's, because host clocks may differ.
If that clock is set back, stored times may lie too far in the future. They are ignored: a version waits only with an
`error_code`, and no lease is longer than `MAX_LEASE_DURATION`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from random import uniform
from typing import Any
from uuid import UUID, uuid4

import structlog
from django.db import transaction
from django.db.models import DateTimeField, F, Func, Q
from django.db.models.functions import Greatest

from collections_app.models import Version
from collections_app.models.documents import UNFINISHED_STATES, VersionState
from system.plain_sql import fetch_rows, run_statement

logger = structlog.get_logger(__name__)

LEASE_DURATION = timedelta(seconds=60)
# Longer than a lease, because a statement may have begun before the lease was taken.
MAX_LEASE_DURATION = 2 * LEASE_DURATION
MAX_ATTEMPTS = 5
FIRST_PAUSE_S = 5.0
MAX_ERROR_LENGTH = 1000

CURRENT_TIME = Func(function="clock_timestamp", output_field=DateTimeField())
STATEMENT_TIME = Func(function="statement_timestamp", output_field=DateTimeField())
LEASE_RENEWAL = {"lease_until": CURRENT_TIME + LEASE_DURATION}
NO_LEASE: dict[str, Any] = {"lease_until": None, "lease_token": None}
ATTEMPT_NOT_COUNTED = {"attempt": Greatest(F("attempt") - 1, 0)}

# Round-robin over the owners, oldest first: many files of one owner do not delay the single file of another.
# The index has the same order, so a long queue is not sorted for each lease.
TAKE_NEXT_SQL = """
UPDATE document_version
SET lease_token = %s, lease_until = clock_timestamp() + %s * interval '1 s', attempt = attempt + 1
WHERE id = (
    SELECT id FROM document_version
    WHERE state IN ('queued', 'extracting', 'splitting', 'embedding')
        AND (next_at <= statement_timestamp() OR error_code = '')
        AND (lease_until IS NULL
            OR lease_until NOT BETWEEN statement_timestamp() AND statement_timestamp() + %s * interval '1 s')
        AND created_by >= %s
    ORDER BY created_by, next_at, id LIMIT 1
    FOR NO KEY UPDATE SKIP LOCKED
)
RETURNING id, created_by, attempt
"""


# Leased and locked versions are skipped. Limited, because a web process has 5 s for a statement.
POSTPONE_BATCH_SIZE = 2_000
POSTPONE_WAITING_SQL = """
UPDATE document_version
SET next_at = clock_timestamp() + %s * (0.8 + 0.4 * random()) * interval '1 s', error_code = %s, error = %s
WHERE id IN (
    SELECT version.id FROM document_version version
    JOIN document_collection collection ON collection.sys_id = version.collection_id
    WHERE collection.space_id = %s AND version.state = 'embedding' AND version.next_at <= statement_timestamp()
        AND (version.lease_until IS NULL OR version.lease_until <= statement_timestamp())
    ORDER BY version.next_at LIMIT %s
    FOR NO KEY UPDATE OF version SKIP LOCKED
)
"""


class LeaseLost(Exception):
    """Another process holds the lease, or the version is gone: the result is discarded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    version_id: int
    token: UUID
    owner: str
    attempt: int


def take_next_lease(last_owner: str = "") -> Lease | None:
    """Leases the next due version, from the next owner after `last_owner`; returns None if nothing is due."""
    token = uuid4()
    # The next owner in order, then the first.
    durations_s = [LEASE_DURATION.total_seconds(), MAX_LEASE_DURATION.total_seconds()]
    for owner in (last_owner + " ", ""):
        if rows := fetch_rows(TAKE_NEXT_SQL, [token, *durations_s, owner]):
            ((version_id, created_by, attempt),) = rows
            return Lease(version_id=version_id, token=token, owner=created_by, attempt=attempt)
    return None


def take_lease(version_id: int) -> UUID | None:
    """Leases a version for the request that created it; returns None if it is already finished."""
    token = uuid4()
    versions = Version.objects.filter(pk=version_id, state__in=UNFINISHED_STATES)
    return token if versions.update(lease_token=token, attempt=F("attempt") + 1, **LEASE_RENEWAL) else None


def is_queue_full(owner: str, limit: int) -> bool:
    """Whether at least `limit` versions of this owner are unfinished. Reads at most that many index entries."""
    return Version.objects.filter(created_by=owner, state__in=UNFINISHED_STATES).order_by()[limit - 1 : limit].exists()


def due_versions() -> Any:
    is_due = Q(next_at__lte=STATEMENT_TIME) | Q(error_code="")
    lease_range = (STATEMENT_TIME, STATEMENT_TIME + MAX_LEASE_DURATION)
    return Version.objects.filter(is_due, state__in=UNFINISHED_STATES).exclude(lease_until__range=lease_range)


def leased_version(version_id: int, token: UUID) -> Version:
    """Returns the version with its document and collection; raises LeaseLost if the token is not that of its lease."""
    versions = Version.objects.select_related("document", "collection__space", "collection__next_space")
    return _require_lease(versions.filter(pk=version_id, lease_token=token).first())


@contextmanager
def lock_version(version: Version) -> Iterator[None]:
    """Locks the leased version in a transaction, so that no other process leases, purges or replaces it."""
    with transaction.atomic():
        versions = Version.objects.select_for_update(no_key=True).order_by()
        _require_lease(versions.filter(pk=version.pk, lease_token=version.lease_token).only("pk").first())
        yield


def record_progress(version: Version, **columns: Any) -> None:
    """Stores the columns, renews the lease and resets the number of attempts."""
    _update_leased(version, **columns, **LEASE_RENEWAL, attempt=1)


def finish_version(version: Version, state: VersionState, **columns: Any) -> None:
    _update_leased(version, state=state, **NO_LEASE, **columns)


def fail_version(version: Version, code: str, message: str) -> None:
    finish_version(version, VersionState.FAILED, error_code=code, error=message[:MAX_ERROR_LENGTH])
    # Never log the file name or the text.
    logger.warning("document_failed", version=version.pk, collection=version.collection_id, code=code)


def release_lease(version: Version) -> None:
    """Frees the version immediately without counting the attempt, for a holder that must stop."""
    _update_leased(version, **NO_LEASE, **ATTEMPT_NOT_COUNTED)


def postpone_version(version: Version, pause_s: float, code: str, message: str) -> None:
    """Frees the version after a pause without counting the attempt, for errors that the document did not cause."""
    _free_after_pause(version, pause_s, code, message, **ATTEMPT_NOT_COUNTED)


def postpone_waiting_versions(space_id: int, pause_s: float, code: str, message: str) -> None:
    """Like `postpone_version`, for all versions that wait for the provider of this space."""
    run_statement(POSTPONE_WAITING_SQL, [pause_s, code, message[:MAX_ERROR_LENGTH], space_id, POSTPONE_BATCH_SIZE])


def resume_postponed_versions(collection_id: str) -> bool:
    """Makes the postponed versions of a collection due, since its provider has changed."""
    postponed_versions = Version.objects.filter(
        collection=collection_id, state=VersionState.EMBEDDING, next_at__gt=STATEMENT_TIME
    )
    return bool(postponed_versions.update(next_at=CURRENT_TIME))


def fail_attempt(version: Version, code: str, message: str) -> None:
    if version.attempt >= MAX_ATTEMPTS:
        return fail_version(version, code, message)
    _free_after_pause(version, FIRST_PAUSE_S * 2 ** (version.attempt - 1), code, message)
    logger.warning("document_attempt_failed", version=version.pk, attempt=version.attempt, code=code)
    return None


def requeue_failed_version(version_id: int) -> bool:
    columns = {"state": VersionState.QUEUED, "attempt": 0, "next_at": CURRENT_TIME, "error_code": "", "error": ""}
    return bool(Version.objects.filter(pk=version_id, state=VersionState.FAILED).update(**columns, **NO_LEASE))


def _update_leased(version: Version, **columns: Any) -> None:
    assert version.lease_token is not None  # without a token, every free version would match
    if not Version.objects.filter(pk=version.pk, lease_token=version.lease_token).update(**columns):
        raise LeaseLost


def _require_lease(version: Version | None) -> Version:
    if version is None:
        raise LeaseLost
    return version


def _free_after_pause(version: Version, pause_s: float, code: str, message: str, **columns: Any) -> None:
    # Randomized to avoid simultaneous retries of versions that failed together.
    next_at = CURRENT_TIME + timedelta(seconds=pause_s * uniform(0.8, 1.2))  # noqa: S311  (not secret)
    error = message[:MAX_ERROR_LENGTH]
    _update_leased(version, next_at=next_at, error_code=code, error=error, **NO_LEASE, **columns)
