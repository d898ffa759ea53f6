"""Deletes documents and collections: hidden at once, purged row by row afterwards.

A deletion is a mark, set in one short transaction; searches, lists and loads see it from then on. What is marked, and
contents that newer ones have replaced, is purged by the worker in batches: no transaction is long, however many chunks
there are. Whatever is to be purged stays so: nothing marked ever comes back.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from operator import or_
from typing import Any

import structlog
from django.db import DatabaseError, connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Now

from collections_app.lexical import term_statistics
from collections_app.models import Collection, Document, Version
from collections_app.models.collections import LONGEST_NAME, known_form
from collections_app.models.documents import State
from collections_app.queue import worker_signals
from system import deletion_log, process_cache
from system.error_details import sqlstate_of
from system.errors import NotFound

logger = structlog.get_logger(__name__)

# In one transaction; a web process has 5 s for a statement, and what words cost follows from their number.
CHUNKS_AT_ONCE = 2_000
CHARACTERS_AT_ONCE = 2_000_000
ROWS_AT_ONCE = 1_000
# So long this process leaves alone what could not be purged: each try may take as long as a statement may. Versions by
# their number, collections by their id.
REST_S = 300.0
_resting: dict[int | str, float] = {}
process_cache.register("deletions that rest", _resting.clear)

# Said of a version that has failed, and of nothing else: nobody needs it any more.
SUPERSEDED = "superseded"
# Each is found by an index of its own: a long queue is not read to find the few that may go.
NO_MORE: dict[str, Any] = {"state": State.FAILED, "error_code": SUPERSEDED}
REPLACED = (Q(**NO_MORE), Q(state=State.READY, is_searched=False))
OF_DELETED_DOCUMENTS = Q(document__deleted_at__isnull=False)
OF_DELETED_COLLECTIONS = Q(collection__deleted_at__isnull=False)
UNNEEDED = (*REPLACED, OF_DELETED_DOCUMENTS, OF_DELETED_COLLECTIONS)

DELETE_CHUNKS = """
DELETE FROM chunk WHERE id IN (SELECT id FROM chunk WHERE version_id = %s ORDER BY number LIMIT %s)
"""
# Both at once would read all documents: no index serves an "or".
DELETE_DOCUMENTS = (
    """
    DELETE FROM document WHERE id IN (
        SELECT id FROM document WHERE deleted_at IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM document_version WHERE document_version.document_id = document.id)
        LIMIT %s FOR UPDATE SKIP LOCKED
    )
    """,
    """
    DELETE FROM document WHERE id IN (
        SELECT id FROM document
        WHERE collection_id IN (SELECT sys_id FROM document_collection WHERE deleted_at IS NOT NULL)
            AND NOT EXISTS (SELECT 1 FROM document_version WHERE document_version.document_id = document.id)
        LIMIT %s FOR UPDATE SKIP LOCKED
    )
    """,
)


def delete_document(collection: Collection, doc_id: str, check: Callable[[Document], None] | None = None) -> int:
    """From now on it is nowhere; the number of its chunks that searches could find.

    `check` may refuse what is there: it is asked under the lock, so nothing changes between its word and the deletion.
    """
    with transaction.atomic():
        document = _locked_document(collection, doc_id)
        if document is None:
            raise NotFound(f"There is no document {doc_id[:LONGEST_NAME]} in this collection.", field="doc_id")
        if check is not None:
            check(document)
        searched = Version.objects.filter(document=document, is_searched=True).first()
        if searched is not None:
            take_from_searches(searched)
        Document.objects.filter(pk=document.pk).update(deleted_at=Now())
        transaction.on_commit(worker_signals.purge, robust=True)
    return searched.chunks_count if searched else 0


def delete_collection(collection: Collection, check: Callable[[Collection], None] | None = None) -> tuple[int, int]:
    """From now on it is nowhere, and its name is free; the numbers of its documents and of their chunks.

    `check` as for a document.
    """
    with transaction.atomic():
        found = Collection.objects.select_for_update().filter(pk=collection.pk, deleted_at=None).first()
        if found is None:
            raise NotFound(f"There is no collection {collection.name}.", field="collection_name")
        if check is not None:
            check(found)
        documents = Document.objects.filter(collection=found, deleted_at=None).count()
        searched = Version.objects.filter(collection=found, is_searched=True)
        chunks = searched.aggregate(sum=Sum("chunks_count", default=0))["sum"]
        deletion_log.write(found.table_name(), found.pk, found.shown_as(), found.payload())
        found.mark_deleted()
        transaction.on_commit(worker_signals.purge, robust=True)
    return documents, chunks


def take_from_searches(version: Version) -> None:
    """In the caller's transaction: searches see it no more. The words of a long one, or while others are counted, are
    counted out when it is purged: they weigh a little wrong until then, but nobody waits."""
    is_counted = version.state == State.READY
    if is_counted and not (_is_short(version) and _has_turn_to_count(version.collection_id)):
        Version.objects.filter(pk=version.pk).update(is_searched=False)
        return
    if is_counted:
        _count_out(version)
    Version.objects.filter(pk=version.pk).update(is_searched=False, **NO_MORE)


def purge_soon(version: Version) -> None:
    """A short one now, a long one by the worker."""
    if _is_short(version):
        _purge_batch(version.pk)
    else:
        worker_signals.purge()


def _is_short(version: Version) -> bool:
    return version.chunks_count <= CHUNKS_AT_ONCE and version.characters <= CHARACTERS_AT_ONCE


def is_due() -> bool:
    """Whether there is something to purge."""
    return (
        Collection.objects.filter(deleted_at__isnull=False).exists()
        or Document.objects.filter(deleted_at__isnull=False).exists()
        or any(Version.objects.filter(each).exists() for each in REPLACED)
    )


def purge(until: float) -> bool:
    """Take away what is not needed, until `time.monotonic()` is past `until`; whether there is more to do at once."""
    for unneeded in UNNEEDED:
        for version_id in _ids(Version.objects.filter(unneeded)):
            if not _rests(version_id) and not _purge_version(version_id, until):
                return True
    if _delete_documents(until):
        return True
    empty = ~Exists(Document.objects.filter(collection=OuterRef("pk"))) & Q(deleted_at__isnull=False)
    for collection_id in list(Collection.objects.filter(empty).values_list("pk", flat=True)):
        if not _rests(collection_id):
            with _apart(collection_id):
                _delete_collection(collection_id, empty)
    return False


def _ids(versions: QuerySet[Version]) -> Iterator[int]:
    last = 0
    while found := list(versions.filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:ROWS_AT_ONCE]):
        yield from found
        last = found[-1]


def _purge_version(version_id: int, until: float) -> bool:
    """Whether there is time for more."""
    with _apart(version_id):
        while not _purge_batch(version_id) and time.monotonic() <= until:
            pass
    return time.monotonic() <= until


def _rests(key: int | str) -> bool:
    return _resting.get(key, 0.0) > time.monotonic()


@contextmanager
def _apart(key: int | str) -> Iterator[None]:
    """What goes wrong with one, such as a statement that takes too long, stops no other."""
    try:
        yield
    except DatabaseError as error:
        if not connection.is_usable():
            raise
        _resting[key] = time.monotonic() + REST_S
        logger.warning("purge_failed", key=key, sqlstate=sqlstate_of(error))
    else:
        _resting.pop(key, None)


def _purge_batch(version_id: int) -> bool:
    """Take some of a version's chunks away, with the last of them the version; True when that was all."""
    with transaction.atomic():
        free = Version.objects.select_for_update(skip_locked=True, of=("self",)).select_related("collection")
        version = free.filter(reduce(or_, UNNEEDED), pk=version_id).first()
        if version is None:
            return True  # gone, or somebody has it just now: the next sweep comes
        if version.state == State.READY and version.collection.deleted_at is None:
            _count_out(version)
            Version.objects.filter(pk=version.pk).update(**NO_MORE)
        with connection.cursor() as cursor:
            cursor.execute(DELETE_CHUNKS, [version.pk, CHUNKS_AT_ONCE])
            if cursor.rowcount == CHUNKS_AT_ONCE:
                return False
            cursor.execute("DELETE FROM document_version WHERE id = %s", [version.pk])
    return True


def _delete_documents(until: float) -> bool:
    """Those without versions; whether something is left."""
    for statement in DELETE_DOCUMENTS:
        while _deleted(statement) == ROWS_AT_ONCE:
            if time.monotonic() > until:
                return True
    return False


def _deleted(statement: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, [ROWS_AT_ONCE])
        return int(cursor.rowcount)


def _delete_collection(collection_id: str, empty: Q) -> None:
    """Where somebody still holds it, the next sweep comes."""
    with transaction.atomic():
        for found in Collection.objects.select_for_update(skip_locked=True).filter(empty, pk=collection_id):
            found.remove()


def _count_out(version: Version) -> None:
    take_turn_to_count(version.collection_id)
    term_statistics.count_out(version.pk, version.collection_id)


def take_turn_to_count(collection_id: str) -> None:
    """To the end of the transaction. One that counts one version out and another in locks words twice in their order,
    so two of them would wait for each other."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_words_of(collection_id)])


def _has_turn_to_count(collection_id: str) -> bool:
    """As `take_turn_to_count`, if nobody else counts just now."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_words_of(collection_id)])
        return bool(cursor.fetchone()[0])


def _words_of(collection_id: str) -> int:
    digest = hashlib.sha256(f"words {collection_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _locked_document(collection: Collection, doc_id: str) -> Document | None:
    """In the order of all locks here: first the collection, which a load holds in the same way."""
    with connection.cursor() as cursor:
        query = "SELECT 1 FROM document_collection WHERE sys_id = %s AND deleted_at IS NULL FOR KEY SHARE"
        cursor.execute(query, [collection.pk])
        if cursor.fetchone() is None:
            return None
    found = Document.objects.select_for_update(no_key=True)
    return found.filter(collection=collection, doc_id=known_form(doc_id), deleted_at=None).first()
