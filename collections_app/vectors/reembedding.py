"""Moves a collection to another embedding space while it is searched.

    start ──▶ next_space is set ──▶ filled in batches ──▶ complete: space := next_space, in one transaction
                                        │ failure: retried later,         └─ a minute ─▶ old vectors are removed
                                        └── reason in reembed_error

Searches use the old space until the new one is complete. A document that is loaded in the meantime gets vectors of the
space that searches use when it becomes ready; the final check, under the collection's lock, detects missing vectors.
`reembed_after` is only an optimization: all versions up to it were filled once. Before the switch, all are checked.

A slow model waits until loads have been processed. After the switch, loads into the collection wait for the model.
"""

import random
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypedDict

import structlog
from django.db import connection, transaction
from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import Now

from collections_app.embed import Embedder, EmbeddingRefused, EmbeddingUnavailable, is_slow
from collections_app.models import ChunkVector, Collection, EmbeddingSpace, Version
from collections_app.models.documents import VersionState
from collections_app.queue import leases, worker_signals
from collections_app.vectors import chunk_vectors, vector_indexes
from system.error_details import describe_safely
from system.errors import NotFound
from system.plain_sql import fetch_rows, run_statement

logger = structlog.get_logger(__name__)

ADVISORY_LOCK_ID = 7_301_042
# The numbers of versions to check, and of vectors to remove, in one batch.
VERSION_BATCH_SIZE = 200
REMOVAL_BATCH_SIZE = 5000

FIRST_BACKOFF_S = 10.0
MAX_BACKOFF_S = 3600.0
INDEX_CHECK_INTERVAL_S = 15.0
# A search that began before the switch still needs the old vectors; none takes this long.
OLD_VECTOR_RETENTION_S = 60.0

# A collection is busy if more passages were loaded in this time. A slow model embeds about three times as many.
BUSY_PERIOD = timedelta(seconds=30)
BUSY_CHUNKS = 500

REMOVE_VECTORS_SQL = """
    DELETE FROM chunk_vector WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM chunk_vector WHERE collection_id = %s AND space_id = %s LIMIT %s
    ))
"""


def start_reembedding(collection: Collection, space: EmbeddingSpace) -> None:
    """Start to move the collection to `space`. If it is already in that space, cancel any move to another."""
    with transaction.atomic():
        locked_collection = Collection.lock(collection.pk)
        if locked_collection is None:
            raise NotFound
        target_id = None if space.pk == locked_collection.space_id else space.pk
        if locked_collection.next_space_id not in (None, target_id):
            locked_collection.has_old_vectors = True
        locked_collection.next_space_id, locked_collection.reembed_after = target_id, 0
        locked_collection.reembed_error, locked_collection.reembed_attempt = "", 0
        locked_collection.reembed_at = _time_in(0 if target_id else OLD_VECTOR_RETENTION_S)
        locked_collection.save()
    collection.refresh_from_db()


def count_new_vectors(collections: Iterable[Collection]) -> dict[str, int]:
    """Counts the stored vectors of the next space, by the ids of the collections that have one."""
    ids = [collection.pk for collection in collections if collection.next_space_id is not None]
    if not ids:
        return {}
    vectors = ChunkVector.objects.filter(
        collection__in=ids, space=F("collection__next_space"), version__is_searched=True
    )
    counts = vectors.order_by().values_list("collection_id").annotate(Count("chunk_id"))
    return dict.fromkeys(ids, 0) | dict(counts)


class EmbeddingProgress(TypedDict):
    model: str
    total: int
    remaining: int


def read_progress(collection: Collection) -> EmbeddingProgress | None:
    if collection.next_space_id is None:
        return None
    vector_counts = count_new_vectors([collection])
    return embedding_progress(collection, vector_counts[collection.pk], _count_chunks(collection.pk))


def embedding_progress(collection: Collection, vector_count: int, chunk_count: int) -> EmbeddingProgress | None:
    """How far the change to another model is. Until searches use it, at least one passage remains."""
    if collection.next_space is None:
        return None
    remaining = max(1, chunk_count - vector_count)
    return {"model": collection.next_space.model, "total": max(remaining, chunk_count), "remaining": remaining}


def due_collections() -> QuerySet[Collection]:
    """Return the collections with work to do now; the one that has waited longest comes first."""
    has_work = Q(next_space__isnull=False) | Q(has_old_vectors=True)
    # By the database's clock, because host clocks may differ. Longer waits are ignored: the clock was set back.
    wait_range = (Now(), Now() + timedelta(seconds=MAX_BACKOFF_S))
    collections = Collection.objects.filter(has_work, deleted_at=None).exclude(reembed_at__range=wait_range)
    return collections.order_by(F("reembed_at").asc(nulls_first=True))


def continue_reembedding(collection: Collection, deadline: float) -> None:
    """Continue the move until `time.monotonic()` is past `deadline`. Only one process works on a collection."""
    with _exclusive_lock(collection.pk) as has_lock:
        if not has_lock:
            return
        try:
            if space := _read_target_space(collection.pk):
                _fill_and_switch(collection.pk, space, deadline)
            else:
                _remove_old_vectors(collection.pk, deadline)
        except (EmbeddingUnavailable, EmbeddingRefused) as error:
            _postpone(collection.pk, error.code, error.message, error.retry_after_s or 0)
        except Exception as error:
            # Continue with the other collections.
            logger.error("reembedding_failed", collection=collection.pk, **describe_safely(error))
            connection.close_if_unusable_or_obsolete()
            _postpone(collection.pk, "internal", f"Internal error: {type(error).__name__}.")


def _fill_and_switch(collection_id: str, space: EmbeddingSpace, deadline: float) -> None:
    if is_slow(space) and _is_busy(collection_id):
        return
    if not _fill_new_versions(collection_id, space, deadline):
        return
    complete_ids = _searched_ids(collection_id)
    if _fill_versions(collection_id, space, sorted(complete_ids), deadline) and _is_index_ready(collection_id, space):
        _switch_space(collection_id, space, complete_ids)


def _fill_new_versions(collection_id: str, space: EmbeddingSpace, deadline: float) -> bool:
    """Fill the versions after `reembed_after` that are searched or soon will be; return whether all are filled."""
    last_id = Collection.objects.filter(pk=collection_id).values_list("reembed_after", flat=True).first() or 0
    is_used = Q(is_searched=True) | Q(state=VersionState.EMBEDDING)
    for ids in _batches(_version_ids(collection_id, is_used & Q(pk__gt=last_id))):
        if not _fill_versions(collection_id, space, ids, deadline):
            return False
        Collection.objects.filter(pk=collection_id, next_space=space).update(reembed_after=ids[-1])
        if time.monotonic() > deadline:
            return False
    return True


def _fill_versions(collection_id: str, space: EmbeddingSpace, version_ids: list[int], deadline: float) -> bool:
    """Embed the chunks of these versions that have no vector; return False if time is up or the target has changed.

    The time is checked after a batch is stored, so every call makes progress.
    The chunks of a searched version do not change, so a filled version stays filled.
    """
    embedder = Embedder(space)
    after = chunk_vectors.START_POSITION
    for ids in _batches(version_ids):
        while rows := chunk_vectors.chunks_to_embed(ids, space.pk, limit=chunk_vectors.batch_size(space), after=after):
            if _read_target_space(collection_id) != space:
                return False
            vectors = embedder.embed_documents([row.indexed_text for row in rows])
            batch = chunk_vectors.VectorBatch(space=space, rows=rows, vectors=vectors)
            chunk_vectors.store_vectors(batch)
            postponed_collection = Collection.objects.filter(pk=collection_id, reembed_attempt__gt=0)
            postponed_collection.update(reembed_attempt=0, reembed_error="")
            after = batch.last_position
            if time.monotonic() > deadline or (is_slow(space) and leases.due_versions().exists()):
                return False
    return True


def _is_busy(collection_id: str) -> bool:
    """Whether documents wait for the worker, or many were loaded into the collection just now."""
    recent_versions = Version.objects.filter(collection=collection_id, created_at__gt=Now() - BUSY_PERIOD)
    recent_count = recent_versions.aggregate(count=Sum("chunks_count", default=0))["count"]
    return bool(recent_count > BUSY_CHUNKS or leases.due_versions().exists())


def _switch_space(collection_id: str, space: EmbeddingSpace, complete_ids: set[int]) -> None:
    """Switch searches to the space, unless a document that became ready in the meantime has no vectors in it."""
    with transaction.atomic():
        collection = Collection.lock(collection_id)
        if collection is None or collection.next_space_id != space.pk:
            return
        if chunk_vectors.chunks_to_embed(sorted(_searched_ids(collection_id) - complete_ids), space.pk, limit=1):
            return
        collection.space_id, collection.next_space_id, collection.has_old_vectors = space.pk, None, True
        collection.reembed_error, collection.reembed_attempt, collection.reembed_after = "", 0, 0
        collection.reembed_at = _time_in(OLD_VECTOR_RETENTION_S)
        collection.save()
    logger.info("collection_reembedded", collection=collection_id, space=space.pk)
    # After the commit, because the holder of a version may wait for the collection. Its new provider may be available.
    if leases.resume_postponed_versions(collection_id):
        worker_signals.request_processing()


def _is_index_ready(collection_id: str, space: EmbeddingSpace) -> bool:
    """Whether the index is ready, if the collection is large enough to need one. `vector_indexes` builds it."""
    needs_index = vector_indexes.needs_index(_count_chunks(collection_id), space.dimensions)
    if not needs_index or vector_indexes.is_index_usable(collection_id, space.pk):
        return True
    _record_status(collection_id, "All vectors are stored. The index is being built.", 0, INDEX_CHECK_INTERVAL_S)
    return False


def _remove_old_vectors(collection_id: str, deadline: float) -> None:
    # Read again, because another process may have switched searches since `due_collections`.
    while collection := due_collections().filter(pk=collection_id, has_old_vectors=True).first():
        used_space_ids = _used_space_ids(collection)
        for space_id in EmbeddingSpace.objects.exclude(pk__in=used_space_ids).values_list("pk", flat=True):
            while run_statement(REMOVE_VECTORS_SQL, [collection_id, space_id, REMOVAL_BATCH_SIZE]):
                if time.monotonic() > deadline:
                    return
        with transaction.atomic():
            locked_collection = Collection.lock(collection_id)
            if locked_collection is not None and _used_space_ids(locked_collection) == used_space_ids:
                Collection.objects.filter(pk=collection_id).update(has_old_vectors=False, reembed_error="")


def _postpone(collection_id: str, code: str, reason: str, min_wait_s: float = 0) -> None:
    attempt = Collection.objects.filter(pk=collection_id).values_list("reembed_attempt", flat=True).first() or 0
    wait_s = min(MAX_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(attempt, 20)) * random.uniform(0.5, 1)  # noqa: S311
    logger.warning("reembedding_postponed", collection=collection_id, code=code)
    _record_status(collection_id, reason, min(attempt + 1, 1000), max(wait_s, min_wait_s))


def _record_status(collection_id: str, reason: str, attempt: int, wait_s: float) -> None:
    Collection.objects.filter(pk=collection_id).update(
        reembed_error=reason[:300], reembed_attempt=attempt, reembed_at=_time_in(wait_s)
    )


def _time_in(seconds: float) -> Any:
    return Now() + timedelta(seconds=seconds)


def _read_target_space(collection_id: str) -> EmbeddingSpace | None:
    collection = Collection.objects.select_related("next_space").filter(pk=collection_id, deleted_at=None).first()
    return collection.next_space if collection else None


def _used_space_ids(collection: Collection) -> set[int]:
    return {space_id for space_id in (collection.space_id, collection.next_space_id) if space_id is not None}


def _version_ids(collection_id: str, condition: Q) -> list[int]:
    return list(Version.objects.filter(condition, collection=collection_id).order_by("pk").values_list("pk", flat=True))


def _searched_ids(collection_id: str) -> set[int]:
    return set(_version_ids(collection_id, Q(is_searched=True)))


def _count_chunks(collection_id: str) -> int:
    searched_versions = Version.objects.filter(collection=collection_id, is_searched=True)
    return sum(searched_versions.values_list("chunks_count", flat=True))


def _batches(version_ids: list[int]) -> list[list[int]]:
    return [version_ids[start : start + VERSION_BATCH_SIZE] for start in range(0, len(version_ids), VERSION_BATCH_SIZE)]


@contextmanager
def _exclusive_lock(collection_id: str) -> Iterator[bool]:
    ((has_lock,),) = fetch_rows("SELECT pg_try_advisory_lock(%s, hashtext(%s))", [ADVISORY_LOCK_ID, collection_id])
    try:
        yield has_lock
    finally:
        if has_lock:
            run_statement("SELECT pg_advisory_unlock(%s, hashtext(%s))", [ADVISORY_LOCK_ID, collection_id])
