"""Moves a collection to another embedding space while it is searched.

    start ──▶ next_space is set ──▶ filled, a batch at a time ──▶ nothing lacks: space := next_space, in one transaction
                                        │ a failure: later, longer each time    └─ a minute ─▶ vectors of the old one go
                                        └── its reason stands in reembed_error

Searches see the old space until all of the new one is there. Who loads documents meanwhile puts their vectors into the
space that searches use when the document becomes ready; the last look, under the collection's lock, finds the others.
`reembed_after` only saves time: up to this version all were filled once. Before searches go over, all are looked at.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from collections_app.embed import EmbeddingRefused, EmbeddingUnavailable, embedder
from collections_app.models import ChunkVector, Collection, EmbeddingSpace, Version
from collections_app.models.documents import State
from collections_app.queue import leases, worker_signals
from collections_app.vectors import chunk_vectors, vector_indexes
from system.error_details import describe_safely
from system.errors import NotFound

logger = structlog.get_logger(__name__)

LOCK = 7_301_042
# Versions looked through together, vectors taken away together.
VERSIONS_AT_ONCE = 200
REMOVED_AT_ONCE = 5000

FIRST_WAIT_S = 10.0
LONGEST_WAIT_S = 3600.0
WAIT_FOR_INDEX_S = 15.0
# A search that began before searches went over still finds the old vectors: none takes so long.
OLD_VECTORS_STAY_S = 60.0

REMOVE = """
    DELETE FROM chunk_vector WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM chunk_vector WHERE collection_id = %s AND space_id = %s LIMIT %s
    ))
"""


def start(collection: Collection, space: EmbeddingSpace) -> None:
    """Let it be moved to `space`; to the one it is in: let it stay there, whatever was begun."""
    with transaction.atomic():
        found = _locked(collection.pk)
        if found is None:
            raise NotFound
        wanted = None if space.pk == found.space_id else space.pk
        if found.next_space_id not in (None, wanted):
            found.has_old_vectors = True
        found.next_space_id, found.reembed_after = wanted, 0
        found.reembed_error, found.reembed_attempt = "", 0
        found.reembed_at = _in(0 if wanted else OLD_VECTORS_STAY_S)
        found.save()
    collection.refresh_from_db()


def progress(collection: Collection) -> tuple[int, int]:
    """Of how many passages that are searched the next space has the vector, and how many there are."""
    filled = ChunkVector.objects.filter(
        collection=collection, space=collection.next_space_id, version__is_searched=True
    )
    return filled.count(), _chunks(collection.pk)


def due() -> QuerySet[Collection]:
    """Where something is to be done now, what waits longest first."""
    unfinished = Q(next_space__isnull=False) | Q(has_old_vectors=True)
    is_time = Q(reembed_at=None) | Q(reembed_at__lte=timezone.now())
    return Collection.objects.filter(unfinished, is_time, deleted_at=None).order_by(
        F("reembed_at").asc(nulls_first=True)
    )


def work(collection: Collection, until: float) -> None:
    """Go on with it until `until`, a moment of `time.monotonic`. Whoever comes second leaves it to the first."""
    with _alone(collection.pk) as is_alone:
        if not is_alone:
            return
        try:
            if space := _target(collection.pk):
                _move(collection.pk, space, until)
            else:
                _remove_old(collection.pk, until)
        except (EmbeddingUnavailable, EmbeddingRefused) as error:
            _postpone(collection.pk, error.code, error.message, error.retry_after_s or 0)
        except Exception as error:
            # Whatever is wrong with it, the others have their turn.
            _note_fault(collection.pk, error)


def _move(collection_id: str, space: EmbeddingSpace, until: float) -> None:
    """Fill the space, and let searches go over when nothing lacks."""
    if not _fill_on(collection_id, space, until):
        return
    complete = _searched(collection_id)
    if _fill(collection_id, space, sorted(complete), until) and _is_index_there(collection_id, space):
        _flip(collection_id, space, complete)


def _fill_on(collection_id: str, space: EmbeddingSpace, until: float) -> bool:
    """From where the last turn ended; those, too, that will be searched soon. True at the end of them."""
    after = Collection.objects.filter(pk=collection_id).values_list("reembed_after", flat=True).first() or 0
    wanted = Q(is_searched=True) | Q(state=State.EMBEDDING)
    for ids in _slices(_versions(collection_id, wanted & Q(pk__gt=after))):
        if not _fill(collection_id, space, ids, until):
            return False
        Collection.objects.filter(pk=collection_id, next_space=space).update(reembed_after=ids[-1])
        if time.monotonic() > until:
            return False
    return True


def _fill(collection_id: str, space: EmbeddingSpace, version_ids: list[int], until: float) -> bool:
    """True when each chunk of these versions that still stands has a vector; False when time is over or plans changed.

    The clock is looked at after a batch is stored: however long the looking takes, each turn comes further.
    A version that is searched keeps its chunks: looked through once, it stays complete.
    """
    embeds = embedder(space)
    after = chunk_vectors.BEFORE_ALL
    for ids in _slices(version_ids):
        while rows := chunk_vectors.lacking(ids, space.pk, most=chunk_vectors.AT_ONCE, after=after):
            if _target(collection_id) != space:
                return False
            found = embeds.embed_documents([row.indexed_text for row in rows])
            made = chunk_vectors.NewVectors(space=space, rows=rows, vectors=found)
            chunk_vectors.store(made)
            failed = Collection.objects.filter(pk=collection_id, reembed_attempt__gt=0)
            failed.update(reembed_attempt=0, reembed_error="")
            after = made.last
            if time.monotonic() > until:
                return False
    return True


def _flip(collection_id: str, space: EmbeddingSpace, complete: set[int]) -> None:
    """Searches go over, unless something lacks in a document that became ready after the look at all."""
    with transaction.atomic():
        found = _locked(collection_id)
        if found is None or found.next_space_id != space.pk:
            return
        if chunk_vectors.lacking(sorted(_searched(collection_id) - complete), space.pk, most=1):
            return
        found.space_id, found.next_space_id, found.has_old_vectors = space.pk, None, True
        found.reembed_error, found.reembed_attempt, found.reembed_after = "", 0, 0
        found.reembed_at = _in(OLD_VECTORS_STAY_S)
        found.save()
    logger.info("collection_reembedded", collection=collection_id, space=space.pk)
    # After the commit, for who holds a version may wait for the collection. Another provider is asked from now on.
    if leases.end_pauses(collection_id):
        worker_signals.work()


def _is_index_there(collection_id: str, space: EmbeddingSpace) -> bool:
    """Searches of a large collection would be slow without it; `vector_indexes.tend` builds it."""
    chunks = _chunks(collection_id)
    if not vector_indexes.is_wanted(chunks, space.dimensions) or vector_indexes.is_usable(collection_id, space.pk):
        return True
    _note(collection_id, "All vectors are there; their index is being built.", 0, WAIT_FOR_INDEX_S)
    return False


def _remove_old(collection_id: str, until: float) -> None:
    # Asked again: between `due` and its turn, another may have let searches go over.
    while found := due().filter(pk=collection_id, has_old_vectors=True).first():
        kept = _kept(found)
        for space_id in EmbeddingSpace.objects.exclude(pk__in=kept).values_list("pk", flat=True):
            while _run(REMOVE, [collection_id, space_id, REMOVED_AT_ONCE]):
                if time.monotonic() > until:
                    return
        with transaction.atomic():
            found = _locked(collection_id)
            if found is not None and _kept(found) == kept:
                Collection.objects.filter(pk=collection_id).update(has_old_vectors=False, reembed_error="")


def _note_fault(collection_id: str, error: Exception) -> None:
    logger.error("reembedding_failed", collection=collection_id, **describe_safely(error))
    connection.close_if_unusable_or_obsolete()
    _postpone(collection_id, "internal", f"An error of the service: {type(error).__name__}.")


def _postpone(collection_id: str, code: str, reason: str, least_s: float = 0) -> None:
    attempt = Collection.objects.filter(pk=collection_id).values_list("reembed_attempt", flat=True).first() or 0
    wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(attempt, 20)) * random.uniform(0.5, 1)  # noqa: S311
    logger.warning("reembedding_waits", collection=collection_id, code=code)
    _note(collection_id, reason, min(attempt + 1, 1000), max(wait_s, least_s))


def _note(collection_id: str, reason: str, attempt: int, wait_s: float) -> None:
    Collection.objects.filter(pk=collection_id).update(
        reembed_error=reason[:300], reembed_attempt=attempt, reembed_at=_in(wait_s)
    )


def _in(seconds: float) -> datetime:
    return timezone.now() + timedelta(seconds=seconds)


def _target(collection_id: str) -> EmbeddingSpace | None:
    found = Collection.objects.select_related("next_space").filter(pk=collection_id, deleted_at=None).first()
    return found.next_space if found else None


def _kept(collection: Collection) -> set[int]:
    return {found for found in (collection.space_id, collection.next_space_id) if found is not None}


def _locked(collection_id: str) -> Collection | None:
    # Unordered, or PostgreSQL would lock what it orders by too.
    return Collection.objects.select_for_update().order_by().filter(pk=collection_id, deleted_at=None).first()


def _versions(collection_id: str, which: Q) -> list[int]:
    return list(Version.objects.filter(which, collection=collection_id).order_by("pk").values_list("pk", flat=True))


def _searched(collection_id: str) -> set[int]:
    return set(_versions(collection_id, Q(is_searched=True)))


def _chunks(collection_id: str) -> int:
    return sum(
        Version.objects.filter(collection=collection_id, is_searched=True).values_list("chunks_count", flat=True)
    )


def _slices(version_ids: list[int]) -> list[list[int]]:
    return [version_ids[at : at + VERSIONS_AT_ONCE] for at in range(0, len(version_ids), VERSIONS_AT_ONCE)]


def _run(statement: str, values: list[Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return int(cursor.rowcount)


@contextmanager
def _alone(collection_id: str) -> Iterator[bool]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", [LOCK, collection_id])
        is_alone: bool = cursor.fetchone()[0]
    try:
        yield is_alone
    finally:
        if is_alone:
            _run("SELECT pg_advisory_unlock(%s, hashtext(%s))", [LOCK, collection_id])
