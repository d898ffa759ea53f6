"""Handles a load request: recognizes, checks and stores the document, and processes it if there is time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from accounts.models import User
from collections_app import access, extract
from collections_app.documents import storage
from collections_app.http import parameters
from collections_app.http.parameters import RequestParameters
from collections_app.http.uploads import FILE, Upload
from collections_app.ingest import worker
from collections_app.models import Collection, Document, Version
from collections_app.queue import leases
from system.errors import NotFound, TooMany, UnsupportedMedia

# Chosen: a proxy that waits half a minute for an answer gets one.
WAIT_S = 20.0
# Hundreds are done by then.
FLOOD_OVER_AFTER_S = 10
# Of a process's four threads; the others always serve other requests.
LOADS_AT_ONCE = threading.BoundedSemaphore(2)
KNOWN = ("collection_name", "metadata", "doc_id", "on_duplicate", "wait")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """What is to be kept, and how; nothing about it is wrong any more."""

    data: bytes | Iterable[bytes]
    size: int
    filename: str
    format: str
    metadata: dict[str, Any]
    doc_id: str | None
    on_duplicate: str
    wants_to_wait: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What became of it."""

    collection: Collection
    document: Document
    version: Version
    is_duplicate: bool


def of_upload(upload: Upload, given: RequestParameters, check: Callable[[], object] | None = None) -> LoadRequest:
    """A file with its parameters; what it is, its content says and its name must not contradict.

    `check` refuses callers who may not load, before work is put into what they sent.
    """
    asked = _asked(given)
    if check is not None:
        check()
    try:
        format = extract.recognise(upload.content(), upload.filename, upload.declared)
    except UnsupportedMedia as refused:
        refused.field = FILE
        raise
    return LoadRequest(data=upload.parts(), size=upload.size, filename=upload.filename, format=format, **asked)


def of_text(given: RequestParameters) -> LoadRequest:
    text = given.needed("text", parameters.long_text(settings.COLLECTIONS["text_limit"]))
    data = text.encode()
    return LoadRequest(data=data, size=len(data), filename="", format="text", **_asked(given))


def _asked(given: RequestParameters) -> dict[str, Any]:
    return {
        "metadata": given.get("metadata", parameters.metadata) or {},
        "doc_id": given.get("doc_id", parameters.name_of),
        "on_duplicate": given.get("on_duplicate", parameters.choice(parameters.ON_DUPLICATE)) or "skip",
        "wants_to_wait": given.get("wait", parameters.switch) is not False,
    }


def load_by_name(user: User, name: str, asked: LoadRequest) -> LoadResult:
    """As `load`; a collection that is missing is made, though not for what is refused."""
    _refuse_a_flood(user)
    return _load_in_turn(user, access.open_or_make(user, name), asked)


def load_document(user: User, collection: Collection, asked: LoadRequest) -> LoadResult:
    """Keep it, durably; and make it searchable, unless it is long, others are at it, or the caller does not wait."""
    _refuse_a_flood(user)
    return _load_in_turn(user, collection, asked)


def _load_in_turn(user: User, collection: Collection, asked: LoadRequest) -> LoadResult:
    wants_it_now = asked.wants_to_wait and asked.size <= settings.COLLECTIONS["wait_limit"]
    is_held = wants_it_now and LOADS_AT_ONCE.acquire(blocking=False)
    try:
        return _load(user, collection, asked, is_held=is_held)
    finally:
        if is_held:
            LOADS_AT_ONCE.release()


def check_may_load(user: User, name: str) -> None:
    """Refuse who will be refused by `access.open_or_make`; nothing is made yet."""
    try:
        access.open_collection(user, name, "write")
    except NotFound:
        if not access.may_make(user):
            raise


def _refuse_a_flood(user: User) -> None:
    """The worker serves one owner after the other; the disk has no such turns."""
    if leases.has_waiting(user.pk, settings.COLLECTIONS["waiting_limit"]):
        most = settings.COLLECTIONS["waiting_limit"]
        raise TooMany(
            f"{most} of your documents are queued. Try again when some have finished.",
            code="too_many_waiting",
            retry_after_s=FLOOD_OVER_AFTER_S,
        )


def _load(user: User, collection: Collection, asked: LoadRequest, *, is_held: bool) -> LoadResult:
    accepted = storage.store_document(
        collection=collection,
        data=asked.data,
        filename=asked.filename,
        format=asked.format,
        metadata=asked.metadata,
        doc_id=asked.doc_id,
        on_duplicate=asked.on_duplicate,
        user_id=user.pk,
        is_held=is_held,
    )
    version = accepted.version
    if accepted.lease_token is not None:
        version = worker.load_now(accepted, within_s=WAIT_S)
    return LoadResult(
        collection=collection, document=accepted.document, version=version, is_duplicate=accepted.is_duplicate
    )


def reprocess(user: User, collection: Collection, document: Document) -> LoadResult:
    """What was sent, once more, as its next generation; searches see the one before until this one is ready."""
    _refuse_a_flood(user)
    accepted = storage.accept_anew(document, user_id=user.pk)
    return LoadResult(collection=collection, document=accepted.document, version=accepted.version, is_duplicate=False)
