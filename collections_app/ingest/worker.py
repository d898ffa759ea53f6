"""Processes a document step by step while there is time, and handles the failure of a step."""

import time
from contextlib import suppress
from math import inf
from uuid import UUID

import structlog
from django.db import DatabaseError, InterfaceError, transaction

from collections_app.documents import deletion
from collections_app.documents.storage import StoreResult
from collections_app.embed import EmbeddingRefused, EmbeddingUnavailable
from collections_app.extract import UnreadableFile
from collections_app.ingest.steps import STEPS, OutOfTime, is_superseded
from collections_app.models import Document, Version
from collections_app.models.documents import DELETING_STATE, UNFINISHED_STATES, VersionState
from collections_app.queue import leases, worker_signals
from collections_app.queue.leases import LeaseLost
from system.background import shutdown
from system.error_details import QUERY_CANCELED, describe_safely, sqlstate_of
from system.errors import Conflict

logger = structlog.get_logger(__name__)

REPROCESS_HINT = "To reprocess it with current settings, send a POST request to …/reload."
DATABASE_UNAVAILABLE = "The database is temporarily unavailable. Processing will be retried."
# Chosen: less than the 30 s that proxies usually wait for a response.
REQUEST_BUDGET_S = 20.0
# Temporary, and no fault of the document: connection lost, out of space or memory, server shutting down, lock not
# available, deadlock, serialization failure.
TEMPORARY_SQLSTATES = ("08", "53", "57P", "55P03", "40P01", "40001")
TEMPORARY_PAUSE_S = 20.0


def process_version(version_id: int, lease_token: UUID, *, deadline: float, is_awaited: bool = False) -> str:
    """Processes a version until it is done, has to wait, or `time.monotonic()` is past `deadline`; returns its state.

    A started step is completed; if a caller waits (`is_awaited`), it is interrupted where possible.
    """
    try:
        while True:
            version = leases.leased_version(version_id, lease_token)
            if version.state not in STEPS:
                leases.release_lease(version)
                break
            if is_superseded(version, version.document) or version.collection.deleted_at is not None:
                leases.finish_version(version, VersionState.FAILED, error_code=deletion.SUPERSEDED_CODE)
                worker_signals.request_purge()
                return DELETING_STATE
            if version.attempt > leases.MAX_ATTEMPTS:
                leases.fail_version(version, "attempts", "Every attempt to process the document was interrupted.")
                return VersionState.FAILED
            if time.monotonic() > deadline or shutdown.has_begun():
                leases.release_lease(version)
                return version.state
            if not _run_step(version, deadline - time.monotonic() if is_awaited else inf):
                break
    except LeaseLost:
        pass
    return _read_state(version_id)


def process_in_request(result: StoreResult, *, timeout_s: float = REQUEST_BUDGET_S) -> Version:
    """Processes a stored document while the request has time; the worker does the rest."""
    if result.lease_token is None:
        return result.version
    try:
        state = process_version(
            result.version.pk, result.lease_token, deadline=time.monotonic() + timeout_s, is_awaited=True
        )
        if state in UNFINISHED_STATES:
            worker_signals.request_processing()
        return Version.objects.select_related("document").get(pk=result.version.pk)
    except Version.DoesNotExist:
        version = result.version  # its row is already deleted
        version.state, version.error_code = VersionState.FAILED, deletion.SUPERSEDED_CODE
        return version
    except (DatabaseError, InterfaceError) as error:
        # The document is stored, and the worker takes it when its lease expires. The caller need not send it again.
        logger.warning("load_left_to_worker", version=result.version.pk, kind=type(error.__cause__ or error).__name__)
        return result.version


def retry_document(document: Document) -> None:
    if document.newest_id is None or not leases.requeue_failed_version(document.newest_id):
        state = _read_state(document.newest_id) if document.newest_id else DELETING_STATE
        message = f"Only failed documents can be retried. This document is {state}."
        raise Conflict(
            message if state in (*UNFINISHED_STATES, DELETING_STATE) else f"{message} {REPROCESS_HINT}",
            code="not_failed",
        )
    transaction.on_commit(worker_signals.request_processing, robust=True)


def _run_step(version: Version, remaining_s: float) -> bool:
    """Runs the next step; returns False if the version cannot continue now."""
    try:
        STEPS[version.state](version, remaining_s)
    except LeaseLost:
        raise
    except OutOfTime:
        leases.release_lease(version)
    except UnreadableFile as error:
        record_failure = leases.fail_attempt if error.is_temporary else leases.fail_version
        record_failure(version, error.code, error.message)
    except (EmbeddingUnavailable, EmbeddingRefused) as error:
        if error.is_about_texts:
            leases.fail_attempt(version, error.code, error.message)
        else:
            pause_s = error.retry_after_s or leases.FIRST_PAUSE_S
            leases.postpone_version(version, pause_s, error.code, error.message)
            leases.postpone_waiting_versions(version.collection.space_id, pause_s, error.code, error.message)
    except Exception as error:
        _handle_error(version, error, is_awaited=remaining_s < inf)
    except BaseException:
        # The worker is shutting down. Free the version for another process to continue immediately.
        with suppress(LeaseLost, DatabaseError, InterfaceError):
            leases.release_lease(version)
        raise
    else:
        return True
    return False


def _handle_error(version: Version, error: Exception, *, is_awaited: bool) -> None:
    sqlstate = sqlstate_of(error)
    # Statements of a request have a short timeout. A timeout in the worker is an error.
    if sqlstate == QUERY_CANCELED and is_awaited:
        logger.info("load_timed_out", version=version.pk)
        return leases.release_lease(version)
    if sqlstate.startswith(TEMPORARY_SQLSTATES):
        logger.warning("processing_postponed", version=version.pk, sqlstate=sqlstate)
        return leases.postpone_version(version, TEMPORARY_PAUSE_S, "database", DATABASE_UNAVAILABLE)
    logger.error("processing_step_failed", version=version.pk, state=version.state, **describe_safely(error))
    return leases.fail_attempt(version, "internal", f"Internal error: {type(error).__name__}.")


def _read_state(version_id: int) -> str:
    return Version.objects.filter(pk=version_id).values_list("state", flat=True).first() or DELETING_STATE
