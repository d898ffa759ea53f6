"""Vector indexes: one per large collection and space, built by the worker without blocking writers.

Small collections are scanned, which is exact, and fast up to the threshold. There is never one index over all
collections: chunks of other collections would be among the nearest, and a search would find too few of its own.
"""

import time
from hashlib import sha256
from typing import Any, NamedTuple

from psycopg import sql

from system.background import index_builds
from system.plain_sql import fetch_rows
from system.process_cache import WeightedCache

ADVISORY_LOCK_ID = 7_301_041
# Chunks times dimensions that an exact scan compares in 10 to 16 ms.
INDEX_THRESHOLD = 10_000_000
# An index is dropped only far below the threshold, to avoid repeated rebuilds near the threshold.
KEEP_INDEX_SHARE = 0.5

HNSW_M, HNSW_EF_CONSTRUCTION = 16, 128
# The maximum number of chunks → the candidates that a search visits. Recall of the ten nearest: .94 to .97.
EF_SEARCH = ((100_000, 200), (250_000, 400))
MAX_EF_SEARCH = 800

# The graph is built in memory; if it does not fit, the build is slow. Its size per chunk, in addition to the vector:
NODE_BYTES = 400
MIN_MEMORY_MB, MAX_MEMORY_MB = 64, 1024

INDEX_NAME_PREFIX = "chunk_vector_near_"
CACHE_TTL_S = 10.0
CACHE_BYTES = 2 * 1024 * 1024
CACHED_INDEX_BYTES = 400

SPACE_SIZES_SQL = """
    SELECT collection.sys_id, space.id, space.dimensions, space.id = collection.space_id,
        (SELECT coalesce(sum(version.chunks_count), 0) FROM document_version version
         WHERE version.collection_id = collection.sys_id AND version.is_searched)::bigint
    FROM document_collection collection
    JOIN embedding_space space ON space.id IN (collection.space_id, collection.next_space_id)
    WHERE collection.deleted_at IS NULL
"""
COUNT_VECTORS_SQL = "SELECT count(*) FROM chunk_vector WHERE collection_id = %s AND space_id = %s"
EXISTING_INDEXES_SQL = """
    SELECT class.relname, index.indisvalid FROM pg_index index
    JOIN pg_class class ON class.oid = index.indexrelid
    WHERE index.indrelid = 'public.chunk_vector'::regclass AND starts_with(class.relname, %s)
"""


class IndexCandidate(NamedTuple):
    collection_id: str
    space_id: int
    dimensions: int
    is_searched: bool
    chunk_count: int

    @property
    def name(self) -> str:
        return index_name(self.collection_id, self.space_id)

    @property
    def size(self) -> int:
        return self.chunk_count * self.dimensions


def index_name(collection_id: str, space_id: int) -> str:
    """Return the name of the index, within the 63 bytes that PostgreSQL allows.

    >>> index_name("176000000000000001", 3)
    'chunk_vector_near_3_9199d7d66001aafc3b8b'
    """
    return f"{INDEX_NAME_PREFIX}{space_id}_{sha256(collection_id.encode()).hexdigest()[:20]}"


def ef_search(chunk_count: int) -> int:
    """
    >>> ef_search(100_000), ef_search(100_001), ef_search(1_000_000)
    (200, 400, 800)
    """
    return next((ef for max_chunks, ef in EF_SEARCH if chunk_count <= max_chunks), MAX_EF_SEARCH)


def maintain_indexes() -> list[str]:
    """Build missing and drop unneeded indexes, one at a time; return their names. Large indexes take minutes.

    Only one process does this; others return immediately.
    """
    with index_builds.build_cursor(ADVISORY_LOCK_ID) as cursor:
        if cursor is None:
            return []
        # One process, because several need shared memory that containers lack.
        cursor.execute("SET max_parallel_maintenance_workers = 0")
        cursor.execute(EXISTING_INDEXES_SQL, [INDEX_NAME_PREFIX])
        existing_indexes: dict[str, bool] = dict(cursor.fetchall())
        cursor.execute(SPACE_SIZES_SQL)
        candidates = [IndexCandidate(*row) for row in cursor.fetchall()]
        needed_names = {
            candidate.name for candidate in candidates if candidate.size > INDEX_THRESHOLD * KEEP_INDEX_SHARE
        }
        dropped_names = [
            name
            for name in existing_indexes
            if name not in needed_names and index_builds.execute(cursor, name, _drop_index_sql(name))
        ]
        built_names = [
            candidate.name
            for candidate in candidates
            if candidate.size > INDEX_THRESHOLD
            and not existing_indexes.get(candidate.name)
            and _is_filled(cursor, candidate)
            and _build_index(cursor, candidate)
        ]
    clear_cache()
    return dropped_names + built_names


def needs_index(chunk_count: int, dimensions: int) -> bool:
    return chunk_count * dimensions > INDEX_THRESHOLD


_validity: WeightedCache[str, tuple[bool, float]] = WeightedCache(
    "vector indexes", max_weight=CACHE_BYTES, weigh=lambda name, _: CACHED_INDEX_BYTES
)


def is_index_usable(collection_id: str, space_id: int) -> bool:
    """Whether the index exists and is valid; cached for some seconds."""
    name = index_name(collection_id, space_id)
    entry = _validity.get(name)
    if entry and time.monotonic() < entry[1]:
        return entry[0]
    query = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)"
    is_valid = (True,) in fetch_rows(query, [f"public.{name}"])
    _validity.put(name, (is_valid, time.monotonic() + CACHE_TTL_S))
    return is_valid


def clear_cache() -> None:
    _validity.clear()


def _is_filled(cursor: Any, candidate: IndexCandidate) -> bool:
    """Whether the space is filled. A new space gets its index only then, because an index slows each insert."""
    if candidate.is_searched:
        return True
    cursor.execute(COUNT_VECTORS_SQL, [candidate.collection_id, candidate.space_id])
    return bool(cursor.fetchone()[0] >= candidate.chunk_count)


def _build_index(cursor: Any, candidate: IndexCandidate) -> bool:
    memory_mb = candidate.chunk_count * (candidate.dimensions * 2 + NODE_BYTES) // 2**20 + 1
    memory_mb = min(max(memory_mb, MIN_MEMORY_MB), MAX_MEMORY_MB)
    return index_builds.execute(
        cursor,
        candidate.name,
        sql.SQL("SET maintenance_work_mem = {}").format(sql.Literal(f"{memory_mb}MB")),
        _drop_index_sql(candidate.name),  # an invalid index of an interrupted build
        _create_index_sql(candidate),
    )


def _create_index_sql(candidate: IndexCandidate) -> sql.Composed:
    return sql.SQL(
        "CREATE INDEX CONCURRENTLY {name} ON public.chunk_vector "
        "USING hnsw ((embedding::halfvec({dimensions})) halfvec_cosine_ops) "
        "WITH (m = {m}, ef_construction = {ef}) WHERE collection_id = {collection} AND space_id = {space}"
    ).format(
        name=sql.Identifier(candidate.name),
        dimensions=sql.Literal(candidate.dimensions),
        m=sql.Literal(HNSW_M),
        ef=sql.Literal(HNSW_EF_CONSTRUCTION),
        collection=sql.Literal(candidate.collection_id),
        space=sql.Literal(candidate.space_id),
    )


def _drop_index_sql(name: str) -> sql.Composed:
    return sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS public.{}").format(sql.Identifier(name))
