"""Imports the files of a folder into a collection, and exports a collection to a folder."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from django.conf import settings

from collections_app import extract
from collections_app.documents import storage
from collections_app.http import parameters
from collections_app.ingest import worker
from collections_app.metadata import validation
from collections_app.models import Collection, Document
from collections_app.models.documents import State
from collections_app.transfer.folder_format import File, Target
from system.errors import BadRequest, ServiceError, TooLarge

HEAD_BYTES = 64 * 1024
# Above what the steps of one document may take; what is not done by then, the worker ends.
NOW_WITHIN_S = 600.0


class Outcome(StrEnum):
    """What became of a file."""

    LOADED = "loaded"
    QUEUED = "queued"
    THERE = "there already"
    REFUSED = "refused"
    FAILED = "failed"


class Brought(NamedTuple):
    outcome: Outcome
    about: str = ""


def import_file(collection: Collection, file: File, *, user_id: str, is_now: bool) -> Brought:
    """One file; what is wrong with it is told and does not stop the others."""
    if file.problem:
        return Brought(Outcome.REFUSED, file.problem)
    try:
        if is_there(collection, file):
            return Brought(Outcome.THERE)
        accepted = _accept(collection, file, user_id=user_id, is_now=is_now)
    except (ServiceError, OSError) as error:
        return Brought(Outcome.REFUSED, str(error))
    if accepted.is_duplicate:
        return Brought(Outcome.THERE)
    if accepted.lease_token is None:
        return Brought(Outcome.QUEUED)
    version = worker.load_now(accepted, within_s=NOW_WITHIN_S)
    if version.state == State.FAILED:
        return Brought(Outcome.FAILED, version.error)
    return Brought(Outcome.LOADED if version.state in (State.READY, State.EMPTY) else Outcome.QUEUED)


def is_there(collection: Collection, file: File) -> bool:
    """By its bytes and metadata, so that an import that was broken off goes on. A document with its id is the only one
    that counts, or a file changed to what another holds would never be loaded; so does one whose id an export says.
    What has failed is not there: it is tried again."""
    found = Document.objects.filter(collection=collection, deleted_at__isnull=True)
    own = found.filter(doc_id=_doc_id(file))
    if file.is_exported or own.exists():
        found = own
    same = storage.of_same_content(found, collection, file.sha256(), validation.checked(file.metadata))
    return same.exclude(newest__state=State.FAILED).exists()


def _accept(collection: Collection, file: File, *, user_id: str, is_now: bool) -> storage.StoredLoad:
    limit = settings.COLLECTIONS["file_limit"]
    if file.path.stat().st_size > limit:
        raise TooLarge(f"A file can have at most {limit:,} bytes.")
    data = file.path.read_bytes()
    if not data:
        raise BadRequest("The file is empty.", code="empty_file")
    # What an export says of a format is believed only where that opens no parser.
    is_text = file.format == "text"
    return storage.store_document(
        collection=collection,
        data=data,
        filename=file.name,
        format=file.format if is_text else extract.recognise(data[:HEAD_BYTES], file.name or file.path.name),
        metadata=validation.checked(file.metadata),
        doc_id=_doc_id(file),
        on_duplicate="replace",
        user_id=user_id,
        is_held=is_now,
    )


def _doc_id(file: File) -> str | None:
    """Its path in the folder, so that a changed file replaces what was loaded before; a path that cannot be an id
    leaves it to the service."""
    try:
        return parameters.name_of("doc_id", file.doc_id)
    except BadRequest:
        if file.is_exported:
            raise
        return None


def documents(collection: Collection) -> Iterator[Document]:
    found = Document.objects.filter(collection=collection, deleted_at__isnull=True, newest__isnull=False)
    return found.order_by("id").select_related("newest").iterator(chunk_size=200)


def take_out(document: Document, target: Target) -> str:
    """Write what was loaded last, as it was sent; the name of its file."""
    version = document.newest
    assert version is not None
    noted = {"doc_id": document.doc_id, "filename": version.filename, "format": version.format}
    return target.add(storage.content(version), noted, version.metadata)
