"""Processes a document step by step while there is time, and handles the failure of a step."""

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
from collections_app.queue import leases, worker_signals
from collections_app.queue.leases import LeaseLost
from system.error_details import QUERY_CANCELED, describe_safely, sqlstate_of
from system.errors import Conflict

logger = structlog.get_logger(__name__)

RELOAD = "To reprocess it with current settings, send POST …/reload."
DATABASE_UNAVAILABLE = "The database is temporarily unavailable; processing will be retried."
REQUEST_S = 20.0
# Temporary, and no fault of the document: connection lost, out of space or memory, server shutting down, lock not
# available, deadlock, serialization failure.
TEMPORARY_SQLSTATES = ("08", "53", "57P", "55P03", "40P01", "40001")
TEMPORARY_PAUSE_S = 20.0


def work_on(version_id: int, lease_token: UUID, *, until: float, is_awaited: bool = False) -> str:
    """Processes a version until it is done, has to wait, or `time.monotonic()` is past `until`; returns its state.

    A step that has started is finished; while a caller waits, it is interrupted where possible.
    """
    try:
        while True:
            version = leases.leased_version(version_id, lease_token)
            if version.state not in STEPS:
                leases.return_lease(version)
                break
            if publishing.is_superseded(version, version.document) or version.collection.deleted_at is not None:
                leases.finish(version, State.FAILED, error_code=deletion.SUPERSEDED)
                worker_signals.purge()
                return DELETING
            if version.attempt > leases.MAX_ATTEMPTS:
                leases.fail(version, "attempts", "The worker stopped at each attempt to process this document.")
                return State.FAILED
            if time.monotonic() > until or worker_signals.is_shutting_down():
                leases.return_lease(version)
                return version.state
            if not _step(version, until - time.monotonic() if is_awaited else inf):
                break
    except LeaseLost:
        pass
    return _state(version_id)


def load_now(stored: StoredLoad, *, within_s: float = REQUEST_S) -> Version:
    """Processes a stored document as far as the request has time; the worker does the rest."""
    if stored.lease_token is None:
        return stored.version
    try:
        state = work_on(stored.version.pk, stored.lease_token, until=time.monotonic() + within_s, is_awaited=True)
        if state in UNFINISHED:
            worker_signals.work()
        return Version.objects.select_related("document").get(pk=stored.version.pk)
    except Version.DoesNotExist:
        return _as_superseded(stored.version)  # its row is already deleted
    except (DatabaseError, InterfaceError) as error:
        # The document is stored and its lease expires, so the caller need not send it again.
        logger.warning("load_goes_on_later", version=stored.version.pk, kind=type(error.__cause__ or error).__name__)
        return stored.version


def _as_superseded(version: Version) -> Version:
    version.state, version.error_code = State.FAILED, deletion.SUPERSEDED
    return version


def retry(document: Document) -> None:
    if document.newest_id is None or not leases.queue_again(document.newest_id):
        state = _state(document.newest_id) if document.newest_id else DELETING
        message = f"Only failed documents can be retried; this one is {state}."
        raise Conflict(message if state in (*UNFINISHED, DELETING) else f"{message} {RELOAD}", code="not_failed")
    transaction.on_commit(worker_signals.work, robust=True)


def _step(version: Version, left_s: float) -> bool:
    """Runs the next step; returns False if the version cannot continue now."""
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
        _handle_error(version, error, is_awaited=left_s < inf)
    except BaseException:
        # The worker is shutting down: another process continues immediately.
        with suppress(LeaseLost, DatabaseError, InterfaceError):
            leases.return_lease(version)
        raise
    else:
        return True
    return False


def _handle_error(version: Version, error: Exception, *, is_awaited: bool) -> None:
    sqlstate = sqlstate_of(error)
    # The timeout of a request is short; a statement that the worker cannot finish is an error.
    if sqlstate == QUERY_CANCELED and is_awaited:
        logger.info("loading_left_to_worker", version=version.pk)
        return leases.return_lease(version)
    if sqlstate.startswith(TEMPORARY_SQLSTATES):
        logger.warning("loading_waits", version=version.pk, sqlstate=sqlstate)
        return leases.postpone(version, TEMPORARY_PAUSE_S, "database", DATABASE_UNAVAILABLE)
    logger.error("loading_failed", version=version.pk, state=version.state, **describe_safely(error))
    return leases.fail_attempt(version, "internal", f"Internal error: {type(error).__name__}.")


def _state(version_id: int) -> str:
    return Version.objects.filter(pk=version_id).values_list("state", flat=True).first() or DELETING
