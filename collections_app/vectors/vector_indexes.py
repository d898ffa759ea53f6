"""Vector indexes: one per large collection and space, built by the worker without blocking writers.

Small collections are scanned, which is exact, and fast up to the threshold. There is never one index over all
collections: chunks of others would take places among the nearest, and a search would find too few.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from psycopg import sql

from system.background import index_builds
from system.plain_sql import fetch_rows
from system.process_cache import WeightedCache

LOCK = 7_301_041
# Chunks times dimensions that an exact scan compares in 10 to 16 ms.
THRESHOLD = 10_000_000
# An index is dropped only far below the threshold, so that it is not rebuilt again and again around it.
KEPT_ABOVE = 0.5

M, EF_CONSTRUCTION = 16, 128
# Up to this many chunks → candidates that a search visits. Recall of the ten nearest: .94 to .97.
EF_SEARCH = ((100_000, 200), (250_000, 400))
EF_SEARCH_OF_MORE = 800

# The graph is built in memory, and slowly if it does not fit. This is its size per chunk in addition to the vector.
BYTES_OF_A_NODE = 400
LEAST_MEMORY_MB, MAX_MEMORY_MB = 64, 1024

PREFIX = "chunk_vector_near_"
CACHED_S = 10.0
CACHE_BYTES = 2 * 1024 * 1024
PER_INDEX = 400

SIZES = """
    SELECT collection.sys_id, space.id, space.dimensions, space.id = collection.space_id,
        (SELECT coalesce(sum(version.chunks_count), 0) FROM document_version version
         WHERE version.collection_id = collection.sys_id AND version.is_searched)::bigint
    FROM document_collection collection
    JOIN embedding_space space ON space.id IN (collection.space_id, collection.next_space_id)
    WHERE collection.deleted_at IS NULL
"""
FILLED = "SELECT count(*) FROM chunk_vector WHERE collection_id = %s AND space_id = %s"
EXISTING = """
    SELECT class.relname, index.indisvalid FROM pg_index index
    JOIN pg_class class ON class.oid = index.indexrelid
    WHERE index.indrelid = 'public.chunk_vector'::regclass AND starts_with(class.relname, %s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedSpace:
    collection_id: str
    space_id: int
    dimensions: int
    is_searched: bool
    chunks: int

    @property
    def name(self) -> str:
        return index_name(self.collection_id, self.space_id)

    @property
    def size(self) -> int:
        return self.chunks * self.dimensions


def index_name(collection_id: str, space_id: int) -> str:
    """The name of the index, within the 63 bytes that PostgreSQL allows.

    >>> index_name("176000000000000001", 3)
    'chunk_vector_near_3_9199d7d66001aafc3b8b'
    """
    return f"{PREFIX}{space_id}_{sha256(collection_id.encode()).hexdigest()[:20]}"


def ef_search(chunks: int) -> int:
    """
    >>> ef_search(100_000), ef_search(100_001), ef_search(1_000_000)
    (200, 400, 800)
    """
    return next((ef for most, ef in EF_SEARCH if chunks <= most), EF_SEARCH_OF_MORE)


def maintain_indexes() -> list[str]:
    """Build missing and drop surplus indexes, one at a time; return their names. Large ones take minutes.

    Only one process does this; others return immediately.
    """
    with index_builds.build_cursor(LOCK) as cursor:
        if cursor is None:
            return []
        # One process, because several need shared memory that containers lack.
        cursor.execute("SET max_parallel_maintenance_workers = 0")
        parts, existing = _parts(cursor), _existing(cursor)
        needed = {part.name for part in parts if part.size > THRESHOLD * KEPT_ABOVE}
        dropped = [name for name in existing if name not in needed and index_builds.execute(cursor, name, _drop(name))]
        built = [part.name for part in _wanted(cursor, parts) if not existing.get(part.name) and _build(cursor, part)]
    forget()
    return dropped + built


def is_wanted(chunks: int, dimensions: int) -> bool:
    """Whether the collection is too large for an exact scan."""
    return chunks * dimensions > THRESHOLD


_validity: WeightedCache[str, tuple[bool, float]] = WeightedCache(
    "vector indexes", limit=CACHE_BYTES, weigh=lambda name, _: PER_INDEX
)


def is_usable(collection_id: str, space_id: int) -> bool:
    """Whether the index exists and is valid; cached for some seconds."""
    name = index_name(collection_id, space_id)
    entry = _validity.get(name)
    if entry and time.monotonic() < entry[1]:
        return entry[0]
    query = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)"
    is_valid = (True,) in fetch_rows(query, [f"public.{name}"])
    _validity.put(name, (is_valid, time.monotonic() + CACHED_S))
    return is_valid


def forget() -> None:
    """Let the next `is_usable` query the database."""
    _validity.clear()


def _parts(cursor: Any) -> list[IndexedSpace]:
    cursor.execute(SIZES)
    names = ("collection_id", "space_id", "dimensions", "is_searched", "chunks")
    return [IndexedSpace(**dict(zip(names, row, strict=True))) for row in cursor.fetchall()]


def _wanted(cursor: Any, parts: Iterable[IndexedSpace]) -> list[IndexedSpace]:
    """The spaces that need an index. A new space gets it when it is filled, because an index slows each insert."""
    return [part for part in parts if is_wanted(part.chunks, part.dimensions) and _is_filled(cursor, part)]


def _is_filled(cursor: Any, part: IndexedSpace) -> bool:
    if part.is_searched:
        return True
    cursor.execute(FILLED, [part.collection_id, part.space_id])
    filled: int = cursor.fetchone()[0]
    return filled >= part.chunks


def _existing(cursor: Any) -> dict[str, bool]:
    cursor.execute(EXISTING, [PREFIX])
    return dict(cursor.fetchall())


def _build(cursor: Any, part: IndexedSpace) -> bool:
    memory_mb = part.chunks * (part.dimensions * 2 + BYTES_OF_A_NODE) // 2**20 + 1
    memory_mb = min(max(memory_mb, LEAST_MEMORY_MB), MAX_MEMORY_MB)
    return index_builds.execute(
        cursor,
        part.name,
        sql.SQL("SET maintenance_work_mem = {}").format(sql.Literal(f"{memory_mb}MB")),
        _drop(part.name),  # an invalid index of an interrupted build
        _create(part),
    )


def _create(part: IndexedSpace) -> sql.Composed:
    return sql.SQL(
        "CREATE INDEX CONCURRENTLY {name} ON public.chunk_vector "
        "USING hnsw ((embedding::halfvec({dimensions})) halfvec_cosine_ops) "
        "WITH (m = {m}, ef_construction = {ef}) WHERE collection_id = {collection} AND space_id = {space}"
    ).format(
        name=sql.Identifier(part.name),
        dimensions=sql.Literal(part.dimensions),
        m=sql.Literal(M),
        ef=sql.Literal(EF_CONSTRUCTION),
        collection=sql.Literal(part.collection_id),
        space=sql.Literal(part.space_id),
    )


def _drop(name: str) -> sql.Composed:
    return sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS public.{}").format(sql.Identifier(name))
