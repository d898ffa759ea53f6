"""In charge of moving a collection to another embedding space while it is searched.

    start ──▶ next_space is set ──▶ filled, a batch at a time ──▶ nothing lacks: space := next_space, in one transaction
                                        │ provider away: later, longer each time         └──▶ vectors of the old one go
                                        └── its reason stands in reembed_error

Searches see the old space until all of the new one is there. Who loads documents meanwhile puts their vectors into the
space that searches use when the document becomes ready; the last look, under the collection's lock, finds the others.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from typing import Any

import structlog
from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from collections_app import vector_indexes
from collections_app.embed import EmbeddingRefused, EmbeddingUnavailable, embedder
from collections_app.models import Collection, EmbeddingSpace, Version
from collections_app.models.documents import State
from collections_app.split import indexed_text
from system.errors import NotFound

logger = structlog.get_logger(__name__)

LOCK = 7_301_042
# Chunks embedded together, versions looked through together, vectors taken away together.
CHUNKS_AT_ONCE = 256
VERSIONS_AT_ONCE = 200
REMOVED_AT_ONCE = 5000

FIRST_WAIT_S = 10.0
LONGEST_WAIT_S = 3600.0
WAIT_FOR_INDEX_S = 15.0

LACKING = """
    SELECT chunk.id, chunk.heading_path, chunk.text FROM chunk
    WHERE chunk.version_id = ANY(%s) AND NOT EXISTS (
        SELECT 1 FROM chunk_vector WHERE chunk_vector.chunk_id = chunk.id AND chunk_vector.space_id = %s
    )
    ORDER BY chunk.version_id, chunk.number LIMIT %s
"""
# Of chunks that still stand: their documents may be deleted or replaced while the provider thinks.
STORE = """
    INSERT INTO chunk_vector (chunk_id, space_id, collection_id, version_id, dimensions, embedding)
    SELECT chunk.id, %s, chunk.collection_id, chunk.version_id, %s, made.vector::halfvec
    FROM unnest(%s::bigint[], %s::text[]) AS made (chunk_id, vector) JOIN chunk ON chunk.id = made.chunk_id
    FOR KEY SHARE OF chunk
    ON CONFLICT DO NOTHING
"""
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
        found.next_space_id = wanted
        found.reembed_error, found.reembed_attempt, found.reembed_at = "", 0, timezone.now()
        found.save()
    collection.refresh_from_db()


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
            if (space := _target(collection.pk)) is None or _move(collection.pk, space, until):
                _remove_old(collection.pk, until)
        except (EmbeddingUnavailable, EmbeddingRefused) as error:
            _postpone(collection.pk, error)


def _move(collection_id: str, space: EmbeddingSpace, until: float) -> bool:
    """True when searches have gone over."""
    complete: set[int] = set()
    while todo := _searched(collection_id) - complete:
        if not _fill(collection_id, space, sorted(todo), until):
            return False
        complete |= todo
    # Then those that will be searched soon. Whether more came meanwhile, the last look finds.
    if not _fill(collection_id, space, _versions(collection_id, Q(state=State.EMBEDDING)), until):
        return False
    return _is_index_there(collection_id, space) and _flip(collection_id, space, complete)


def _fill(collection_id: str, space: EmbeddingSpace, version_ids: Sequence[int], until: float) -> bool:
    """True when each chunk of these versions that still stands has a vector; False when time is over or plans changed.

    A version that is searched keeps its chunks: looked through once, it stays complete.
    """
    embeds = embedder(space)
    for ids in _slices(version_ids):
        while rows := _lacking(ids, space):
            if time.monotonic() > until or _target(collection_id) != space:
                return False
            vectors = embeds.embed_documents([indexed_text(headings, text) for _, headings, text in rows])
            _store(space, [row[0] for row in rows], vectors)
            Collection.objects.filter(pk=collection_id, reembed_attempt__gt=0).update(
                reembed_attempt=0, reembed_error=""
            )
    return True


def _flip(collection_id: str, space: EmbeddingSpace, complete: set[int]) -> bool:
    """Searches go over, unless a document became ready that was not looked through."""
    with transaction.atomic():
        found = _locked(collection_id)
        if found is None or found.next_space_id != space.pk or _searched(collection_id) - complete:
            return False
        found.space_id, found.next_space_id, found.has_old_vectors = space.pk, None, True
        found.reembed_error, found.reembed_attempt, found.reembed_at = "", 0, None
        found.save()
    logger.info("collection_reembedded", collection=collection_id, space=space.pk)
    return True


def _is_index_there(collection_id: str, space: EmbeddingSpace) -> bool:
    """Searches of a large collection would be slow without it; `vector_indexes.tend` builds it."""
    chunks = sum(
        Version.objects.filter(collection=collection_id, is_searched=True).values_list("chunks_count", flat=True)
    )
    if not vector_indexes.is_wanted(chunks, space.dimensions) or vector_indexes.is_usable(collection_id, space.pk):
        return True
    _note(collection_id, "All vectors are there; their index is being built.", 0, WAIT_FOR_INDEX_S)
    return False


def _remove_old(collection_id: str, until: float) -> None:
    while found := Collection.objects.filter(pk=collection_id, deleted_at=None, has_old_vectors=True).first():
        kept = _kept(found)
        for space_id in EmbeddingSpace.objects.exclude(pk__in=kept).values_list("pk", flat=True):
            while _run(REMOVE, [collection_id, space_id, REMOVED_AT_ONCE]):
                if time.monotonic() > until:
                    return
        with transaction.atomic():
            found = _locked(collection_id)
            if found is not None and _kept(found) == kept:
                Collection.objects.filter(pk=collection_id).update(has_old_vectors=False)


def _postpone(collection_id: str, error: EmbeddingUnavailable | EmbeddingRefused) -> None:
    attempt = Collection.objects.filter(pk=collection_id).values_list("reembed_attempt", flat=True).first() or 0
    wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(attempt, 20)) * random.uniform(0.5, 1)  # noqa: S311
    logger.warning("reembedding_waits", collection=collection_id, code=error.code)
    _note(collection_id, error.message, min(attempt + 1, 1000), max(wait_s, error.retry_after_s or 0))


def _note(collection_id: str, reason: str, attempt: int, wait_s: float) -> None:
    at = timezone.now() + timedelta(seconds=wait_s)
    Collection.objects.filter(pk=collection_id).update(
        reembed_error=reason[:300], reembed_attempt=attempt, reembed_at=at
    )


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


def _slices(version_ids: Sequence[int]) -> Iterator[list[int]]:
    left = iter(version_ids)
    while ids := list(islice(left, VERSIONS_AT_ONCE)):
        yield ids


def _lacking(version_ids: list[int], space: EmbeddingSpace) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(LACKING, [version_ids, space.pk, CHUNKS_AT_ONCE])
        rows: list[Any] = cursor.fetchall()
        return rows


def _store(space: EmbeddingSpace, chunk_ids: list[int], vectors: list[list[float]]) -> None:
    written = ["[" + ",".join(map(repr, vector)) + "]" for vector in vectors]
    _run(STORE, [space.pk, space.dimensions, chunk_ids, written])


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
