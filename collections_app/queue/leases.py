"""The queue: whose turn it is, and that only the holder of a version's lease writes to it.

    free ── take ──→ leased (60 s, a token) ── advance ──→ leased anew, what was done is stored
      ↑                 │ hand_back, postpone, fail_attempt: free again, at once or later
      │                 │ finish: it has come to its end
      └── run out ──────┘ its holder was killed or is too slow; what it still writes finds another token: Lost

`attempt` counts the takes since something was stored. All times are the database's: hosts may differ, clocks may jump.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from random import uniform
from typing import Any
from uuid import UUID, uuid4

import structlog
from django.db import connection, transaction
from django.db.models import DateTimeField, F, Func, Q
from django.db.models.functions import Greatest

from collections_app.models import Version
from collections_app.models.documents import UNFINISHED, State

logger = structlog.get_logger(__name__)

LEASE = timedelta(seconds=60)
MOST_ATTEMPTS = 5
FIRST_PAUSE_S = 5.0
LONGEST_ERROR = 1000

CLOCK = Func(function="clock_timestamp", output_field=DateTimeField())
STATEMENT_CLOCK = Func(function="statement_timestamp", output_field=DateTimeField())
LEASED = {"lease_until": CLOCK + LEASE}
FREE: dict[str, Any] = {"lease_until": None, "lease_token": None}
UNCOUNTED = {"attempt": Greatest(F("attempt") - 1, 0)}

# One owner after the other, each their oldest: many files of one never hold up another's only one. The order of the
# index, so that a long queue is not sorted for each take.
NEXT = """
UPDATE document_version
SET lease_token = %s, lease_until = clock_timestamp() + %s * interval '1 s', attempt = attempt + 1
WHERE id = (
    SELECT id FROM document_version
    WHERE state IN ('queued', 'extracting', 'splitting', 'embedding') AND next_at <= statement_timestamp()
        AND (lease_until IS NULL OR lease_until <= statement_timestamp()) AND created_by >= %s
    ORDER BY created_by, next_at, id LIMIT 1
    FOR NO KEY UPDATE SKIP LOCKED
)
RETURNING id, created_by, attempt
"""


# Those whose lease another holds, or who are being written to, are not due. Never more: a web process has 5 s.
WAITING_AT_ONCE = 2_000
POSTPONE_WAITING = """
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
    """Somebody else holds it by now, or it is gone: what was worked out is thrown away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    version_id: int
    token: UUID
    owner: str
    attempt: int


def take_next(after: str = "") -> Lease | None:
    """The next one that is due, of the owner who comes after this one; None when nothing is."""
    token = uuid4()
    with connection.cursor() as cursor:
        # The first name after an owner's, and then from the beginning.
        for owner in (after + " ", ""):
            cursor.execute(NEXT, [token, LEASE.total_seconds(), owner])
            row = cursor.fetchone()
            if row:
                return Lease(version_id=row[0], token=token, owner=row[1], attempt=row[2])
    return None


def take(version_id: int) -> UUID | None:
    """For the request that has just made it; None when nothing is to be done on it any more."""
    token = uuid4()
    unfinished = Version.objects.filter(pk=version_id, state__in=UNFINISHED)
    return token if unfinished.update(lease_token=token, attempt=F("attempt") + 1, **LEASED) else None


def has_waiting(owner: str, most: int) -> bool:
    """Whether so many of this owner's are not loaded yet. Reads no further in the index than to there."""
    return Version.objects.filter(created_by=owner, state__in=UNFINISHED).order_by()[most - 1 : most].exists()


def due() -> Any:
    """The versions that wait for somebody."""
    is_free = Q(lease_until=None) | Q(lease_until__lte=STATEMENT_CLOCK)
    return Version.objects.filter(is_free, state__in=UNFINISHED, next_at__lte=STATEMENT_CLOCK)


def held(version_id: int, token: UUID) -> Version:
    """The version as it is now, with its document and collection, for the holder of its lease."""
    found = Version.objects.select_related("document", "collection__space", "collection__next_space")
    return _or_lost(found.filter(pk=version_id, lease_token=token).first())


@contextmanager
def fenced(version: Version) -> Iterator[None]:
    """A transaction that the lease is held in to its end: nobody takes, purges or replaces what is locked."""
    with transaction.atomic():
        locked = Version.objects.select_for_update(no_key=True).order_by()
        _or_lost(locked.filter(pk=version.pk, lease_token=version.lease_token).only("pk").first())
        yield


def advance(version: Version, **columns: Any) -> None:
    """Note what is stored now; the lease begins anew, and so do its attempts."""
    _write(version, **columns, **LEASED, attempt=1)


def finish(version: Version, state: State, **columns: Any) -> None:
    _write(version, state=state, **FREE, **columns)


def fail(version: Version, code: str, message: str) -> None:
    """For ever, or until somebody says to try again."""
    finish(version, State.FAILED, error_code=code, error=message[:LONGEST_ERROR])
    # Never its file name or text.
    logger.warning("document_failed", version=version.pk, collection=version.collection_id, code=code)


def return_lease(version: Version) -> None:
    """Free at once, as if it had not been taken: its holder has other things to do, or must stop."""
    _write(version, **FREE, **UNCOUNTED)


def postpone(version: Version, pause_s: float, code: str, message: str) -> None:
    """Free later, and not counted: it waits for something that is no fault of it."""
    told = {"error_code": code, "error": message[:LONGEST_ERROR]}
    _write(version, next_at=_in(pause_s), **told, **FREE, **UNCOUNTED)


def postpone_waiting(space_id: int, pause_s: float, code: str, message: str) -> None:
    """As `postpone`, for all that would only be taken to find the provider of this space away."""
    with connection.cursor() as cursor:
        cursor.execute(POSTPONE_WAITING, [pause_s, code, message[:LONGEST_ERROR], space_id, WAITING_AT_ONCE])


def end_pauses(collection_id: str) -> bool:
    """Due at once are those that wait for vectors: what they waited for is none of theirs any more."""
    waiting = Version.objects.filter(collection=collection_id, state=State.EMBEDDING, next_at__gt=STATEMENT_CLOCK)
    return bool(waiting.update(next_at=CLOCK))


def fail_attempt(version: Version, code: str, message: str) -> None:
    """Free later; after the last attempt it has failed."""
    if version.attempt >= MOST_ATTEMPTS:
        return fail(version, code, message)
    told = {"error_code": code, "error": message[:LONGEST_ERROR]}
    _write(version, next_at=_in(FIRST_PAUSE_S * 2 ** (version.attempt - 1)), **told, **FREE)
    logger.warning("document_attempt_failed", version=version.pk, attempt=version.attempt, code=code)
    return None


def queue_again(version_id: int) -> bool:
    """From the beginning, if it has failed."""
    beginning = {"state": State.QUEUED, "attempt": 0, "next_at": CLOCK, "error_code": "", "error": ""}
    return bool(Version.objects.filter(pk=version_id, state=State.FAILED).update(**beginning, **FREE))


def _write(version: Version, **columns: Any) -> None:
    assert version.lease_token is not None  # it comes from `held`; no token would be anybody's
    if not Version.objects.filter(pk=version.pk, lease_token=version.lease_token).update(**columns):
        raise LeaseLost


def _or_lost(version: Version | None) -> Version:
    if version is None:
        raise LeaseLost
    return version


def _in(pause_s: float) -> Any:
    # Those that failed together do not all come back together.
    return CLOCK + timedelta(seconds=pause_s * uniform(0.8, 1.2))  # noqa: S311  (nothing secret)
