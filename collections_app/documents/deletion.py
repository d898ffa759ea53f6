"""Deletes documents and collections: hides them immediately, and purges their rows in the background.

A deletion sets `deleted_at` in one short transaction; searches, lists and loads ignore the row from then on. The worker
purges deleted rows and replaced versions in batches, so transactions stay short even if there are many chunks. A set
`deleted_at` is never cleared.
"""

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
from collections_app.models.collections import MAX_NAME_LENGTH, lookup_name
from collections_app.models.documents import VersionState
from collections_app.queue import worker_signals
from system import deletion_log, process_cache
from system.error_details import sqlstate_of
from system.errors import NotFound
from system.plain_sql import fetch_rows, run_statement

logger = structlog.get_logger(__name__)

# Limits per transaction: a statement in a web process may take 5 s, and long texts have many term counts to update.
CHUNK_BATCH_SIZE = 2_000
MAX_IMMEDIATE_CHARACTERS = 2_000_000
ROW_BATCH_SIZE = 1_000
# The wait before a failed purge is retried, by version or collection id. Each try may last until the statement timeout.
RETRY_PAUSE_S = 300.0
_retry_times: dict[int | str, float] = {}
process_cache.register("postponed purges", _retry_times.clear)

# The error code of a version that was replaced, or whose document was deleted.
SUPERSEDED_CODE = "superseded"
SUPERSEDED_COLUMNS: dict[str, Any] = {"state": VersionState.FAILED, "error_code": SUPERSEDED_CODE}
# Each condition has its own index, so finding the few versions to purge does not scan a long queue.
REPLACED_CONDITIONS = (Q(**SUPERSEDED_COLUMNS), Q(state=VersionState.READY, is_searched=False))
IN_DELETED_DOCUMENT = Q(document__deleted_at__isnull=False)
IN_DELETED_COLLECTION = Q(collection__deleted_at__isnull=False)
PURGE_CONDITIONS = (*REPLACED_CONDITIONS, IN_DELETED_DOCUMENT, IN_DELETED_COLLECTION)

DELETE_CHUNKS_SQL = """
DELETE FROM chunk WHERE id IN (SELECT id FROM chunk WHERE version_id = %s ORDER BY number LIMIT %s)
"""
DELETE_DOCUMENTS_SQL = """
DELETE FROM document WHERE id IN (
    SELECT id FROM document WHERE {condition}
        AND NOT EXISTS (SELECT 1 FROM document_version WHERE document_version.document_id = document.id)
    LIMIT %s FOR UPDATE SKIP LOCKED
)
"""
# Two statements, because no index supports their disjunction.
DELETED_CONDITIONS_SQL = (
    "deleted_at IS NOT NULL",
    "collection_id IN (SELECT sys_id FROM document_collection WHERE deleted_at IS NOT NULL)",
)


def delete_document(collection: Collection, doc_id: str, check: Callable[[Document], None] | None = None) -> int:
    """Deletes a document; returns the number of its searchable chunks.

    `check` may raise an error to prevent the deletion. It runs under the lock, so the document cannot change after it.
    """
    with transaction.atomic():
        documents = Document.objects.select_for_update(no_key=True).filter(collection=collection, deleted_at=None)
        # Lock the collection before the document, as all code of this app does.
        collection_exists = lock_against_deletion(collection)
        document = documents.filter(doc_id=lookup_name(doc_id)).first() if collection_exists else None
        if document is None:
            raise NotFound(f'There is no document "{doc_id[:MAX_NAME_LENGTH]}" in this collection.', field="doc_id")
        if check is not None:
            check(document)
        searched_version = Version.objects.filter(document=document, is_searched=True).first()
        if searched_version is not None:
            hide_from_searches(searched_version)
        Document.objects.filter(pk=document.pk).update(deleted_at=Now())
        transaction.on_commit(worker_signals.request_purge, robust=True)
    return searched_version.chunks_count if searched_version else 0


def delete_collection(collection: Collection, check: Callable[[Collection], None] | None = None) -> tuple[int, int]:
    """Deletes a collection and frees its name; returns the numbers of its documents and searchable chunks.

    `check` works as in `delete_document`.
    """
    with transaction.atomic():
        locked_collection = Collection.objects.select_for_update().filter(pk=collection.pk, deleted_at=None).first()
        if locked_collection is None:
            raise NotFound(f'There is no collection named "{collection.name}".', field="collection_name")
        if check is not None:
            check(locked_collection)
        document_count = Document.objects.filter(collection=locked_collection, deleted_at=None).count()
        searched_versions = Version.objects.filter(collection=locked_collection, is_searched=True)
        chunk_count = searched_versions.aggregate(sum=Sum("chunks_count", default=0))["sum"]
        table = locked_collection._meta.db_table
        deletion_log.write(table, locked_collection.pk, str(locked_collection), locked_collection.payload())
        locked_collection.mark_deleted()
        transaction.on_commit(worker_signals.request_purge, robust=True)
    return document_count, chunk_count


def hide_from_searches(version: Version) -> None:
    """Hides a version from searches, in the caller's transaction.

    If the version is long, or another transaction is changing the term counts, they are reduced only by the purge.
    Until then they are slightly too high, but no request waits.
    """
    is_counted = version.state == VersionState.READY
    if is_counted and not (_is_short(version) and _try_lock_term_counts(version.collection_id)):
        Version.objects.filter(pk=version.pk).update(is_searched=False)
        return
    if is_counted:
        _subtract_from_counts(version)
    Version.objects.filter(pk=version.pk).update(is_searched=False, **SUPERSEDED_COLUMNS)


def purge_or_schedule(version: Version) -> None:
    """Purges a short version immediately and leaves a long one to the worker."""
    if _is_short(version):
        _purge_batch(version.pk)
    else:
        worker_signals.request_purge()


def _is_short(version: Version) -> bool:
    return version.chunks_count <= CHUNK_BATCH_SIZE and version.characters <= MAX_IMMEDIATE_CHARACTERS


def is_purge_due() -> bool:
    return (
        Collection.objects.filter(deleted_at__isnull=False).exists()
        or Document.objects.filter(deleted_at__isnull=False).exists()
        or any(Version.objects.filter(condition).exists() for condition in REPLACED_CONDITIONS)
    )


def purge_deleted(deadline: float) -> bool:
    """Purges until `time.monotonic()` is past `deadline`; returns whether work remains."""
    for condition in PURGE_CONDITIONS:
        for version_id in _version_ids(Version.objects.filter(condition)):
            if not _is_postponed(version_id) and not _purge_version(version_id, deadline):
                return True
    if _delete_documents(deadline):
        return True
    is_purgeable = ~Exists(Document.objects.filter(collection=OuterRef("pk"))) & Q(deleted_at__isnull=False)
    for collection_id in list(Collection.objects.filter(is_purgeable).values_list("pk", flat=True)):
        if not _is_postponed(collection_id):
            # Skips a locked collection; the next sweep tries again.
            collections = Collection.objects.select_for_update(skip_locked=True).filter(is_purgeable, pk=collection_id)
            with _isolate_errors(collection_id), transaction.atomic():
                for collection in collections:
                    collection.delete()
    return False


def _version_ids(versions: QuerySet[Version]) -> Iterator[int]:
    last_id = 0
    while ids := list(versions.filter(pk__gt=last_id).order_by("pk").values_list("pk", flat=True)[:ROW_BATCH_SIZE]):
        yield from ids
        last_id = ids[-1]


def _purge_version(version_id: int, deadline: float) -> bool:
    with _isolate_errors(version_id):
        while not _purge_batch(version_id) and time.monotonic() <= deadline:
            pass
    return time.monotonic() <= deadline


def _is_postponed(key: int | str) -> bool:
    return _retry_times.get(key, 0.0) > time.monotonic()


@contextmanager
def _isolate_errors(key: int | str) -> Iterator[None]:
    """Logs a database error in one purge, such as a statement timeout, and postpones its retry; others continue."""
    try:
        yield
    except DatabaseError as error:
        if not connection.is_usable():
            raise
        _retry_times[key] = time.monotonic() + RETRY_PAUSE_S
        logger.warning("purge_failed", key=key, sqlstate=sqlstate_of(error))
    else:
        _retry_times.pop(key, None)


def _purge_batch(version_id: int) -> bool:
    """Deletes a batch of chunks, and the version after its last chunk; returns True if nothing is left to delete."""
    with transaction.atomic():
        versions = Version.objects.select_for_update(skip_locked=True, of=("self",)).select_related("collection")
        version = versions.filter(reduce(or_, PURGE_CONDITIONS), pk=version_id).first()
        if version is None:
            return True  # deleted, or locked: the next sweep tries again
        if version.state == VersionState.READY and version.collection.deleted_at is None:
            _subtract_from_counts(version)
            Version.objects.filter(pk=version.pk).update(**SUPERSEDED_COLUMNS)
        if run_statement(DELETE_CHUNKS_SQL, [version.pk, CHUNK_BATCH_SIZE]) == CHUNK_BATCH_SIZE:
            return False
        run_statement("DELETE FROM document_version WHERE id = %s", [version.pk])
    return True


def _delete_documents(deadline: float) -> bool:
    """Deletes the rows of deleted documents that have no versions left; returns whether work remains."""
    for condition in DELETED_CONDITIONS_SQL:
        while run_statement(DELETE_DOCUMENTS_SQL.format(condition=condition), [ROW_BATCH_SIZE]) == ROW_BATCH_SIZE:
            if time.monotonic() > deadline:
                return True
    return False


def _subtract_from_counts(version: Version) -> None:
    lock_term_counts(version.collection_id)
    term_statistics.change_term_counts(version.pk, version.collection_id, -1)


def lock_term_counts(collection_id: str) -> None:
    """Locks the term counts of a collection until the end of the transaction.

    Otherwise two transactions that each subtract one version and add another could deadlock on the rows of terms.
    """
    run_statement("SELECT pg_advisory_xact_lock(%s)", [advisory_lock_key(f"words {collection_id}")])


def _try_lock_term_counts(collection_id: str) -> bool:
    """Like `lock_term_counts`, but returns False if another transaction holds the lock."""
    key = advisory_lock_key(f"words {collection_id}")
    return fetch_rows("SELECT pg_try_advisory_xact_lock(%s)", [key]) == [(True,)]


def advisory_lock_key(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)


def lock_against_deletion(collection: Collection) -> bool:
    """Prevents the deletion of a collection until the transaction ends; returns False if it is already deleted."""
    query = "SELECT 1 FROM document_collection WHERE sys_id = %s AND deleted_at IS NULL FOR KEY SHARE"
    return bool(fetch_rows(query, [collection.pk]))
