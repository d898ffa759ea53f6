"""Stores a document's rows and bytes in one transaction; handles duplicates and replacement."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, count
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Max, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from collections_app.documents import deletion
from collections_app.models import Collection, Document, Version
from collections_app.models.collections import MAX_NAME_LENGTH, InvalidName, normalize_name
from collections_app.models.documents import VersionState
from collections_app.queue import leases, worker_signals
from system.errors import Conflict, NotFound
from system.http.uploads import clean_filename
from system.plain_sql import fetch_rows, run_statement, server_binding_cursor

PIECE_BYTES = 1024 * 1024
# Leaves room for a number.
MAX_FILE_NAME_LENGTH = MAX_NAME_LENGTH - 10
DUPLICATE_MESSAGE = "This document already exists{}. Send on_duplicate=replace to replace it."


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreResult:
    """The stored document and, if the caller must process it, the token of its lease."""

    document: Document
    version: Version
    is_duplicate: bool
    lease_token: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentUpload:
    """The uploaded bytes in pieces, held in memory so that no transaction waits for a slow disk or client."""

    pieces: tuple[bytes, ...]
    size: int
    sha256: str
    columns: dict[str, Any]


def store_document(
    *,
    collection: Collection,
    data: bytes | Iterable[bytes],
    filename: str,
    format: str,
    metadata: dict[str, Any],
    doc_id: str | None,
    on_duplicate: str | None,
    user_id: str,
    takes_lease: bool,
) -> StoreResult:
    """Stores a document durably. With `takes_lease` the current request processes it, otherwise the worker does.

    If `on_duplicate` is None, an equal document is not stored again, and a file whose name is taken gets another name.
    """
    columns = {"filename": clean_filename(filename), "format": format, "metadata": metadata, "created_by": user_id}
    upload = _split_into_pieces(data, columns)
    doc_id = None if doc_id is None else normalize_name(doc_id, "doc_id")
    file_name = _name_of_file(str(columns["filename"])) if doc_id is None and collection.doc_id_from_filename else None
    if on_duplicate is not None:
        doc_id, file_name = doc_id or file_name, None
    with transaction.atomic():
        _lock_content_and_doc_id(collection.pk, upload.sha256, doc_id)
        _lock_collection(collection)
        version, is_duplicate = _find_or_create_version(collection, upload, doc_id, on_duplicate or "skip", file_name)
        token = leases.take_lease(version.pk) if takes_lease and not is_duplicate else None
        version = Version.objects.select_related("document__collection").get(pk=version.pk)
        if not is_duplicate and token is None:
            transaction.on_commit(worker_signals.request_processing, robust=True)
    return StoreResult(document=version.document, version=version, is_duplicate=is_duplicate, lease_token=token)


def store_next_generation(document: Document, *, user_id: str) -> StoreResult:
    """Stores the newest content again as the next generation, for processing with the current settings."""
    with transaction.atomic():
        _lock_collection(document.collection)
        documents = Document.objects.select_for_update(no_key=True, of=("self",)).select_related("collection")
        locked_document = documents.filter(pk=document.pk, deleted_at=None).first()
        if locked_document is None or locked_document.newest is None:
            raise NotFound("The document does not exist.")
        columns = {name: getattr(locked_document.newest, name) for name in ("filename", "format", "metadata")}
        upload = _split_into_pieces(read_content(locked_document.newest), {**columns, "created_by": user_id})
        version = _replace_content(locked_document, upload)
        transaction.on_commit(worker_signals.request_processing, robust=True)
    return StoreResult(document=locked_document, version=version, is_duplicate=False, lease_token=None)


def read_content(version: Version) -> bytes:
    """Returns the original bytes, or fewer during a purge. Reads them in pieces, so memory holds them only once."""
    query = "SELECT data FROM document_piece WHERE version_id = %s AND number = %s"
    content, piece_numbers = BytesIO(), count()
    with server_binding_cursor() as cursor:
        while content.tell() < version.size:
            piece = cursor.execute(query, [version.pk, next(piece_numbers)], binary=True).fetchone()
            if piece is None:
                break
            content.write(piece[0])
    return content.getvalue()


def filter_same_content(
    documents: QuerySet[Document], collection: Collection, sha256: str, metadata: dict[str, Any]
) -> QuerySet[Document]:
    # The condition on `newest__collection` is redundant, but the index begins with this column.
    return documents.filter(
        collection=collection,
        deleted_at=None,
        newest__collection=collection,
        newest__sha256=sha256,
        newest__metadata=metadata,
    )


def _split_into_pieces(data: bytes | Iterable[bytes], columns: dict[str, Any]) -> ContentUpload:
    digest, pieces, buffer = hashlib.sha256(), [], bytearray()
    for part in (data,) if isinstance(data, bytes) else data:
        digest.update(part)
        buffer += part
        while len(buffer) >= PIECE_BYTES:
            pieces.append(bytes(buffer[:PIECE_BYTES]))
            del buffer[:PIECE_BYTES]
    if buffer:
        pieces.append(bytes(buffer))
    size = sum(map(len, pieces))
    return ContentUpload(pieces=tuple(pieces), size=size, sha256=digest.hexdigest(), columns=columns)


def _lock_content_and_doc_id(collection_id: str, sha256: str, doc_id: str | None) -> None:
    """Serializes loads of the same bytes or the same document; sorted keys prevent deadlocks."""
    names = [f"bytes {collection_id} {sha256}"] + ([f"document {collection_id} {doc_id}"] if doc_id else [])
    for key in sorted(map(deletion.advisory_lock_key, names)):
        run_statement("SELECT pg_advisory_xact_lock(%s)", [key])


def _lock_collection(collection: Collection) -> None:
    if not deletion.lock_against_deletion(collection):
        raise NotFound(f'There is no collection named "{collection.name}".', field="collection_name")


def _find_or_create_version(
    collection: Collection, upload: ContentUpload, doc_id: str | None, on_duplicate: str, file_name: str | None
) -> tuple[Version, bool]:
    """Returns the version of the uploaded content, and whether it is a duplicate.

    The document is found by its `doc_id` or, without one, by its bytes and metadata. A new one without `doc_id` gets
    the name of its file or a number.
    """
    documents = Document.objects.select_for_update(no_key=True, of=("self",))
    documents = documents.filter(collection=collection, deleted_at=None)
    same_content = filter_same_content(documents, collection, upload.sha256, upload.columns["metadata"]).order_by("id")
    document = same_content.first() if doc_id is None else documents.filter(doc_id=doc_id).first()
    if document is None:
        document = _create_document(collection, doc_id, file_name, created_by=upload.columns["created_by"])
        return _add_version(document, upload, generation=1), False
    has_same_content = doc_id is None or same_content.filter(pk=document.pk).exists()
    if on_duplicate == "replace" and (doc_id is None or not has_same_content):
        return _replace_content(document, upload), False
    if not has_same_content or on_duplicate == "error":
        # A caller who sent no doc_id does not know the existing document.
        detail = "" if doc_id else f' with the doc_id "{document.doc_id}"'
        raise Conflict(DUPLICATE_MESSAGE.format(detail), code="duplicate", field="doc_id" if doc_id else None)
    version = document.newest
    assert version is not None  # a document gets its first version when it is created
    # Chosen: a failed document that is sent again is processed again, since the cause may have been fixed.
    is_requeued = version.state == VersionState.FAILED and leases.requeue_failed_version(version.pk)
    return version, not is_requeued


def _create_document(collection: Collection, doc_id: str | None, file_name: str | None, *, created_by: str) -> Document:
    ((sys_id,),) = fetch_rows("SELECT public.svc_new_sys_id()")
    columns = {"id": sys_id, "collection": collection, "created_by": created_by}
    while file_name is not None:
        try:
            with transaction.atomic():
                return Document.objects.create(doc_id=_free_name(collection, file_name), **columns)
        except IntegrityError:
            continue  # another load has taken the name
    return Document.objects.create(doc_id=doc_id or sys_id, **columns)


def _name_of_file(filename: str) -> str | None:
    """The file name as a `doc_id`, or None if it cannot be one."""
    try:
        return normalize_name(filename[:MAX_FILE_NAME_LENGTH], "doc_id")
    except InvalidName:
        return None


def _free_name(collection: Collection, name: str) -> str:
    """The name, or the first one of `name (2)`, `name (3)` … that no document has."""
    documents = Document.objects.filter(collection=collection, deleted_at=None, doc_id__startswith=name)
    taken_names = set(documents.values_list("doc_id", flat=True))
    names = chain([name], (f"{name} ({number})" for number in count(2)))
    return next(free for free in names if free not in taken_names)


def _replace_content(document: Document, upload: ContentUpload) -> Version:
    newest_generation = document.versions.aggregate(Max("generation"))["generation__max"]
    # A version in progress is marked by the process that holds its lease.
    document.versions.filter(state=VersionState.FAILED).update(error_code=deletion.SUPERSEDED_CODE)
    return _add_version(document, upload, generation=newest_generation + 1)


def _add_version(document: Document, upload: ContentUpload, *, generation: int) -> Version:
    version = Version.objects.create(
        document=document,
        collection_id=document.collection_id,
        generation=generation,
        size=upload.size,
        sha256=upload.sha256,
        next_at=Now(),
        **upload.columns,
    )
    document.newest = version
    document.updated_at = timezone.now()
    document.save(update_fields=["newest", "updated_at"])
    with server_binding_cursor() as cursor:
        for number, piece in enumerate(upload.pieces):
            cursor.execute(
                "INSERT INTO document_piece (version_id, number, data) VALUES (%s, %s, %b)", [version.pk, number, piece]
            )
    return version
