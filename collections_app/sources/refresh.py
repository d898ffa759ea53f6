"""Leases due sources, loads them, and records the outcome. A killed worker delays a source until its lease expires."""

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any
from uuid import uuid4

import structlog
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce

from collections_app.models import Source
from collections_app.queue import worker_signals
from collections_app.queue.leases import CURRENT_TIME, NO_LEASE, STATEMENT_TIME
from collections_app.sources import watching, web_page
from collections_app.sources.errors import RefreshInterrupted, SourceFailed
from system.background import shutdown
from system.errors import ServiceError

logger = structlog.get_logger(__name__)

# Longer than a task may take.
LEASE_DURATION = timedelta(minutes=6)
INTERRUPTED_PAUSE = timedelta(seconds=10)
# A source that failed is tried again after this time or its interval, whichever is shorter.
RETRY_INTERVAL = timedelta(hours=1)
MAX_ERROR_LENGTH = 500

HANDLERS: Mapping[str, Callable[[Source], dict[str, Any]]] = {
    Source.Kind.PAGE: web_page.refresh_page,
    Source.Kind.FOLDER: watching.scan_folder,
}


def refresh_due_sources(deadline: float) -> None:
    """Refreshes one source after the other until nothing is due or `time.monotonic()` is past `deadline`."""
    while time.monotonic() < deadline and not shutdown.has_begun():
        source = lease_next_source()
        if source is None:
            return
        refresh(source)


def request_refresh(source: Source) -> None:
    """Makes the source due now."""
    Source.objects.filter(pk=source.pk).update(next_at=CURRENT_TIME)
    source.refresh_from_db()
    transaction.on_commit(worker_signals.request_refresh, robust=True)


def lease_next_source() -> Source | None:
    """The source that has been due for the longest time, unless one is being refreshed: slow servers must not occupy
    all processes of the worker."""
    # Also ends leases from before the database's clock was set back.
    has_lease = Q(lease_until__range=(STATEMENT_TIME, STATEMENT_TIME + LEASE_DURATION))
    with transaction.atomic():
        if Source.objects.filter(has_lease).exists():
            return None
        # Another process may have leased a source since the check.
        due = Source.objects.filter(~has_lease, next_at__lte=STATEMENT_TIME, collection__deleted_at__isnull=True)
        locked = due.select_for_update(no_key=True, skip_locked=True, of=("self",)).select_related("collection")
        source = locked.order_by("next_at", "pk").first()
        if source is not None:
            source.lease_token = uuid4()
            lease_until = CURRENT_TIME + LEASE_DURATION
            Source.objects.filter(pk=source.pk).update(lease_token=source.lease_token, lease_until=lease_until)
    return source


def refresh(source: Source) -> None:
    error, pause = "", timedelta(minutes=source.interval_minutes)
    try:
        columns = HANDLERS[source.kind](source)
    except RefreshInterrupted:
        _leased(source).update(next_at=CURRENT_TIME + INTERRUPTED_PAUSE, **NO_LEASE)
        return
    except SourceFailed as failure:
        error = str(failure)
    except ServiceError as failure:
        error = failure.message
    except Exception as failure:
        error = f"Internal error: {type(failure).__name__}."
    if error:
        # Never log the address or the message.
        logger.warning("source_failed", source=source.pk, kind=source.kind, collection=source.collection_id)
        pause = min(pause, RETRY_INTERVAL)
        columns = {"error": error[:MAX_ERROR_LENGTH], "error_since": Coalesce("error_since", CURRENT_TIME)}
    else:
        columns |= {"succeeded_at": CURRENT_TIME, "error": "", "error_since": None}
    _leased(source).update(checked_at=CURRENT_TIME, next_at=CURRENT_TIME + pause, **columns, **NO_LEASE)


def _leased(source: Source) -> QuerySet[Source]:
    assert source.lease_token is not None
    return Source.objects.filter(pk=source.pk, lease_token=source.lease_token)
