"""Processes a document step by step while there is time, and handles the failure of a step."""

from __future__ import annotations

import time
from contextlib import suppress
from math import inf
from uuid import UUID

import structlog
from django.db import DatabaseError, InterfaceError, transaction

from collections_app.documents import deletion
from collections_app.documents.storage import StoredLoad
from collections_app.embed import EmbeddingRefused, EmbeddingUnavailable
from collections_app.extract import Unreadable
from collections_app.ingest import publishing
from collections_app.ingest.steps import STEPS
from collections_app.ingest.time_budget import OutOfTime
from collections_app.models import Document, Version
from collections_app.models.documents import DELETING, UNFINISHED, State
from collections_app.queue import leases, shutdown, worker_signals
from collections_app.queue.leases import LeaseLost
from system.error_details import describe_safely, sqlstate_of
from system.errors import Conflict

logger = structlog.get_logger(__name__)

RELOAD = "To reprocess it with current settings, send POST …/reload."
REQUEST_S = 20.0
# No fault of the document, and it passes: no connection, no space or memory left, the server stops, a lock is held,
# others wait for it while it waits for them, another was faster.
PASSING = ("08", "53", "57P", "55P03", "40P01", "40001")
PASSING_S = 20.0
# A statement over its time. A request's is short, and the worker's is not; one that the worker cannot end is a fault.
CUT_OFF = "57014"


def work_on(version_id: int, lease_token: UUID, *, until: float, is_awaited: bool = False) -> str:
    """Go on with a version until it is done, cannot be now, or `time.monotonic()` is past `until`; its state then.

    A step that was begun is brought to its end; with somebody waiting it is broken off, where it can be.
    """
    try:
        while True:
            version = leases.held(version_id, lease_token)
            if version.state not in STEPS:
                leases.return_lease(version)
                break
            if publishing.is_superseded(version, version.document) or version.collection.deleted_at is not None:
                leases.finish(version, State.FAILED, error_code=deletion.SUPERSEDED)
                worker_signals.purge()
                return DELETING
            if version.attempt > leases.MOST_ATTEMPTS:
                leases.fail(version, "attempts", "Loading it ended the worker, each time it was tried.")
                return State.FAILED
            if time.monotonic() > until or shutdown.is_asked():
                leases.return_lease(version)
                return version.state
            if not _step(version, until - time.monotonic() if is_awaited else inf):
                break
    except LeaseLost:
        pass
    return _state(version_id)


def load_now(accepted: StoredLoad, *, within_s: float = REQUEST_S) -> Version:
    """What was accepted, as far as this request brings it; the worker does what is left."""
    if accepted.lease_token is None:
        return accepted.version
    try:
        state = work_on(accepted.version.pk, accepted.lease_token, until=time.monotonic() + within_s, is_awaited=True)
        if state in UNFINISHED:
            worker_signals.work()
        return Version.objects.select_related("document").get(pk=accepted.version.pk)
    except Version.DoesNotExist:
        return _as_superseded(accepted.version)  # its row is taken away already
    except (DatabaseError, InterfaceError) as error:
        # It is kept, and its lease runs out: nobody need send it again.
        logger.warning("load_goes_on_later", version=accepted.version.pk, kind=type(error.__cause__ or error).__name__)
        return accepted.version


def _as_superseded(version: Version) -> Version:
    version.state, version.error_code = State.FAILED, deletion.SUPERSEDED
    return version


def retry(document: Document) -> None:
    """Load what failed again, from its bytes."""
    if document.newest_id is None or not leases.queue_again(document.newest_id):
        state = _state(document.newest_id) if document.newest_id else DELETING
        said = f"Only a document that failed can be tried again; this one is {state}."
        raise Conflict(said if state in (*UNFINISHED, DELETING) else f"{said} {RELOAD}", code="not_failed")
    transaction.on_commit(worker_signals.work, robust=True)


def _step(version: Version, left_s: float) -> bool:
    """The next step; False when it goes no further now."""
    step = STEPS[version.state]
    try:
        step(version, left_s)
    except LeaseLost:
        raise
    except OutOfTime:
        leases.return_lease(version)
    except Unreadable as error:
        end = leases.fail_attempt if error.may_pass else leases.fail
        end(version, error.code, error.message)
    except (EmbeddingUnavailable, EmbeddingRefused) as error:
        if error.is_of_the_texts:
            leases.fail_attempt(version, error.code, error.message)
        else:
            pause_s = error.retry_after_s or leases.FIRST_PAUSE_S
            leases.postpone(version, pause_s, error.code, error.message)
            leases.postpone_waiting(version.collection.space_id, pause_s, error.code, error.message)
    except Exception as error:
        _note_fault(version, error, is_awaited=left_s < inf)
    except BaseException:
        # The worker is told to end: another goes on at once.
        with suppress(LeaseLost, DatabaseError, InterfaceError):
            leases.return_lease(version)
        raise
    else:
        return True
    return False


def _note_fault(version: Version, error: Exception, *, is_awaited: bool) -> None:
    sqlstate = sqlstate_of(error)
    if sqlstate == CUT_OFF and is_awaited:
        logger.info("loading_left_to_worker", version=version.pk)
        return leases.return_lease(version)
    if sqlstate.startswith(PASSING):
        logger.warning("loading_waits", version=version.pk, sqlstate=sqlstate)
        return leases.postpone(
            version, PASSING_S, "database", "The database is temporarily unavailable; processing will be retried."
        )
    logger.error("loading_failed", version=version.pk, state=version.state, **describe_safely(error))
    return leases.fail_attempt(version, "internal", f"An error of the service: {type(error).__name__}.")


def _state(version_id: int) -> str:
    return Version.objects.filter(pk=version_id).values_list("state", flat=True).first() or DELETING
