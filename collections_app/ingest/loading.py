"""Handles a load request: checks permissions, stores the document, and processes it if there is time."""

import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypedDict, Unpack

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


class LoadOptions(TypedDict):
    metadata: dict[str, Any]
    doc_id: str | None
    # None is `skip`, but a file whose name is taken gets another name.
    on_duplicate: str | None
    wants_to_wait: bool


class LoadRequest(LoadOptions):
    data: bytes | Iterable[bytes]
    size: int
    filename: str
    format: str


def load_document(user: User, target: Collection | str, **request: Unpack[LoadRequest]) -> StoreResult:
    """Stores a document durably in a collection, or in the one with this name, which is created if it does not exist.

    Processes it too, unless it is long, no slot is free or the caller does not wait.
    """
    _check_queue_length(user)
    collection = access.open_or_create_collection(user, target) if isinstance(target, str) else target
    content: dict[str, Any] = {**request}
    size, wants_to_wait = content.pop("size"), content.pop("wants_to_wait")
    is_short = size <= settings.COLLECTIONS["wait_limit"]
    has_slot = wants_to_wait and is_short and LOAD_SLOTS.acquire(blocking=False)
    try:
        result = storage.store_document(collection=collection, user_id=user.pk, takes_lease=has_slot, **content)
        return replace(result, version=worker.process_in_request(result))
    finally:
        if has_slot:
            LOAD_SLOTS.release()


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
