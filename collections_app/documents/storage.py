"""Stores a document's rows and bytes in one transaction; handles duplicates and replacement."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection, transaction
from django.db.models import Max, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from collections_app.documents import deletion
from collections_app.models import Collection, Document, Version
from collections_app.models.collections import well_named
from collections_app.models.documents import State
from collections_app.queue import leases, worker_signals
from system.errors import BadRequest, Conflict, NotFound

PIECE_BYTES = 1024 * 1024
LONGEST_LABEL = 255
# They turn the text after them around: "gpj.exe" would be shown as "exe.jpg".
TURNING = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
REPEATED = "There is this document already{}. Send on_duplicate=replace to put what you send in its place."


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLoad:
    """What a load has come to; whoever holds the token works on it first."""

    document: Document
    version: Version
    is_duplicate: bool
    lease_token: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentUpload:
    """What came, counted while it was cut. Whole in memory: no transaction waits for a slow disk or caller."""

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
    on_duplicate: str,
    user_id: str,
    is_held: bool,
) -> StoredLoad:
    """Keep a document; after the commit nothing loses it. `is_held`: its lease is this request's."""
    columns = {"filename": label(filename), "format": format, "metadata": metadata, "created_by": user_id}
    sent = _cut(data, columns)
    asked = _well_formed(doc_id)
    with transaction.atomic():
        _take_turn(collection.pk, sent.sha256, asked)
        _hold(collection)
        version, is_duplicate = _decide(collection, sent, asked, on_duplicate)
        token = leases.take(version.pk) if is_held and not is_duplicate else None
        version = Version.objects.select_related("document").get(pk=version.pk)
        if not is_duplicate and token is None:
            transaction.on_commit(worker_signals.work, robust=True)
    return StoredLoad(document=version.document, version=version, is_duplicate=is_duplicate, lease_token=token)


def accept_anew(document: Document, *, user_id: str) -> StoredLoad:
    """What was sent last, once more as the next generation: read, split and embedded by the settings of now."""
    with transaction.atomic():
        _hold(document.collection)
        locked = Document.objects.select_for_update(no_key=True).filter(pk=document.pk, deleted_at=None).first()
        if locked is None or locked.newest is None:
            raise NotFound("The document does not exist.")
        columns = {name: getattr(locked.newest, name) for name in ("filename", "format", "metadata")}
        sent = _cut(content(locked.newest), {**columns, "created_by": user_id})
        version = _replace(locked, sent)
        transaction.on_commit(worker_signals.work, robust=True)
    return StoredLoad(document=locked, version=version, is_duplicate=False, lease_token=None)


def content(version: Version) -> bytes:
    """The bytes as they were sent."""
    query = "SELECT data FROM document_piece WHERE version_id = %s ORDER BY number"
    with bound_cursor() as cursor:
        cursor.execute(query, [version.pk], binary=True)
        return b"".join(data for (data,) in cursor)


def of_same_content(
    documents: QuerySet[Document], collection: Collection, sha256: str, metadata: dict[str, Any]
) -> QuerySet[Document]:
    """Those of this collection that were loaded last with these bytes and this metadata."""
    # The collection of the version too: its index begins with it.
    return documents.filter(
        collection=collection,
        deleted_at=None,
        newest__collection=collection,
        newest__sha256=sha256,
        newest__metadata=metadata,
    )


def label(filename: str) -> str:
    r"""The name of a file as people see it; never a path.

    >>> label("C:\\docs\\..\\a\r\nb.pdf"), label("/etc/passwd"), label(".."), label("cafe\u0301")
    ('ab.pdf', 'passwd', '', 'café')
    """
    base = re.split(r"[/\\]", filename)[-1]
    shown = "".join(
        each
        for each in base
        if unicodedata.category(each) not in ("Cc", "Cs", "Zl", "Zp") and unicodedata.bidirectional(each) not in TURNING
    ).strip()
    # Some systems compose é, others do not; it is looked for as it is typed.
    return "" if shown in (".", "..") else unicodedata.normalize("NFC", shown)[:LONGEST_LABEL]


@contextmanager
def bound_cursor() -> Iterator[psycopg.Cursor[Any]]:
    """A cursor that sends values apart from the statement: Django's own writes them into its text, bytes as hex."""
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as found:
        yield found


def _cut(data: bytes | Iterable[bytes], columns: dict[str, Any]) -> ContentUpload:
    digest, pieces, rest = hashlib.sha256(), [], bytearray()
    for part in (data,) if isinstance(data, bytes) else data:
        digest.update(part)
        rest += part
        while len(rest) >= PIECE_BYTES:
            pieces.append(bytes(rest[:PIECE_BYTES]))
            del rest[:PIECE_BYTES]
    if rest:
        pieces.append(bytes(rest))
    size = sum(map(len, pieces))
    return ContentUpload(pieces=tuple(pieces), size=size, sha256=digest.hexdigest(), columns=columns)


def _well_formed(doc_id: str | None) -> str | None:
    if doc_id is None:
        return None
    try:
        return well_named(doc_id)
    except ValueError as error:
        raise BadRequest(str(error), code="invalid_parameter", field="doc_id") from None


def _take_turn(collection_id: str, sha256: str, doc_id: str | None) -> None:
    """Loads of the same bytes, or for the same document, go one after the other; in one order, so that none waits for
    another that waits for it."""
    names = [f"bytes {collection_id} {sha256}"] + ([f"document {collection_id} {doc_id}"] if doc_id else [])
    keys = sorted(
        int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True, byteorder="big") for name in names
    )
    with connection.cursor() as cursor:
        for key in keys:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])


def _hold(collection: Collection) -> None:
    """It cannot be deleted before this commits; if it was meanwhile, there is nothing to load into."""
    query = "SELECT 1 FROM document_collection WHERE sys_id = %s AND deleted_at IS NULL FOR KEY SHARE"
    with connection.cursor() as cursor:
        cursor.execute(query, [collection.pk])
        if cursor.fetchone() is None:
            raise NotFound(f"There is no collection {collection.name}.", field="collection_name")


def _decide(collection: Collection, sent: ContentUpload, asked: str | None, on_duplicate: str) -> tuple[Version, bool]:
    """The version that stands for what was sent, and whether it was there already.

    A `doc_id` says which document is meant; without one it is the document of the same bytes and metadata.
    """
    there = Document.objects.select_for_update(no_key=True, of=("self",)).filter(collection=collection, deleted_at=None)
    same = of_same_content(there, collection, sent.sha256, sent.columns["metadata"]).order_by("id")
    if asked is None:
        found = same.first()
        if found is None:
            return _make(collection, sent, None), False
        if on_duplicate == "replace":
            return _replace(found, sent), False
        is_same = True
    else:
        found = there.filter(doc_id=asked).first()
        if found is None:
            return _make(collection, sent, asked), False
        is_same = same.filter(pk=found.pk).exists()
        if not is_same and on_duplicate == "replace":
            return _replace(found, sent), False
    if not is_same or on_duplicate == "error":
        # Without a doc_id the caller does not know which one it is.
        which = "" if asked else f": its doc_id is {found.doc_id}"
        raise Conflict(REPEATED.format(which), code="duplicate", field="doc_id" if asked else None)
    return _repeated(found)


def _make(collection: Collection, sent: ContentUpload, doc_id: str | None) -> Version:
    with connection.cursor() as cursor:
        cursor.execute("SELECT public.svc_new_sys_id()")
        (made,) = cursor.fetchone()
    document = Document.objects.create(
        id=made, doc_id=doc_id or made, collection=collection, created_by=sent.columns["created_by"]
    )
    return _add(document, sent, generation=1)


def _replace(document: Document, sent: ContentUpload) -> Version:
    newest = document.versions.aggregate(Max("generation"))["generation__max"]
    # What is still worked on is marked by who works on it.
    document.versions.filter(state=State.FAILED).update(error_code=deletion.SUPERSEDED)
    return _add(document, sent, generation=newest + 1)


def _add(document: Document, sent: ContentUpload, *, generation: int) -> Version:
    version = Version.objects.create(
        document=document,
        collection_id=document.collection_id,
        generation=generation,
        size=sent.size,
        sha256=sent.sha256,
        next_at=Now(),
        **sent.columns,
    )
    document.newest = version
    document.updated_at = timezone.now()
    document.save(update_fields=["newest", "updated_at"])
    with bound_cursor() as cursor:
        for number, piece in enumerate(sent.pieces):
            cursor.execute(
                "INSERT INTO document_piece (version_id, number, data) VALUES (%s, %s, %b)", [version.pk, number, piece]
            )
    return version


def _repeated(document: Document) -> tuple[Version, bool]:
    """Chosen: sent again after it failed, it is loaded again; what made it fail may have been mended."""
    version = document.newest
    assert version is not None  # its document was found by it, or has had one since it was made
    if version.state == State.FAILED and leases.queue_again(version.pk):
        return version, False
    return version, True  # it has not failed, or somebody else was faster to say so
