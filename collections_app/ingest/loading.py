"""Handles a load request: checks permissions, stores the document, and processes it if there is time."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings

from accounts.models import User
from collections_app import access
from collections_app.documents import storage
from collections_app.documents.storage import StoreResult
from collections_app.ingest import worker
from collections_app.models import Collection, Document
from collections_app.queue import leases
from system.errors import TooManyRequests

# The worker processes hundreds of documents in this time.
QUEUE_RETRY_AFTER_S = 10
# At most two of the four threads of a process load documents; the others serve other requests.
LOAD_SLOTS = threading.BoundedSemaphore(2)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    data: bytes | Iterable[bytes]
    size: int
    filename: str
    format: str
    metadata: dict[str, Any]
    doc_id: str | None
    on_duplicate: str
    wants_to_wait: bool


def load_by_name(user: User, name: str, request: LoadRequest) -> StoreResult:
    """Like `load_document`, but creates the collection if it does not exist."""
    _check_queue_length(user)
    return _store_and_process(user, access.open_or_create_collection(user, name), request)


def load_document(user: User, collection: Collection, request: LoadRequest) -> StoreResult:
    """Stores a document durably. Processes it too, unless it is long, no slot is free or the caller does not wait."""
    _check_queue_length(user)
    return _store_and_process(user, collection, request)


def reprocess(user: User, document: Document) -> StoreResult:
    """Loads the stored content as a new version; searches use the current version until the new one is ready."""
    _check_queue_length(user)
    return storage.store_next_generation(document, user_id=user.pk)


def _check_queue_length(user: User) -> None:
    """Limits the queued documents of a user, so that one user cannot fill the disk."""
    limit = settings.COLLECTIONS["waiting_limit"]
    if leases.is_queue_full(user.pk, limit):
        raise TooManyRequests(
            f"You have reached the limit of {limit} queued documents. Try again after some have been processed.",
            code="too_many_waiting",
            retry_after_s=QUEUE_RETRY_AFTER_S,
        )


def _store_and_process(user: User, collection: Collection, request: LoadRequest) -> StoreResult:
    is_short = request.size <= settings.COLLECTIONS["wait_limit"]
    has_slot = request.wants_to_wait and is_short and LOAD_SLOTS.acquire(blocking=False)
    try:
        result = storage.store_document(
            collection=collection,
            data=request.data,
            filename=request.filename,
            format=request.format,
            metadata=request.metadata,
            doc_id=request.doc_id,
            on_duplicate=request.on_duplicate,
            user_id=user.pk,
            takes_lease=has_slot,
        )
        return replace(result, version=worker.process_in_request(result))
    finally:
        if has_slot:
            LOAD_SLOTS.release()
