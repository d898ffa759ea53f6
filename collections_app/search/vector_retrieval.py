"""Finds the chunks nearest to a query's vector, by a scan or, in a large collection, by its index."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from collections_app.models import EmbeddingSpace
from collections_app.vectors import vector_indexes
from system.plain_sql import fetch_rows, run_statement

from .scope import Scope

SCAN_SQL = """
    SELECT chunk_id, embedding <=> %s::halfvec AS distance FROM chunk_vector
    WHERE collection_id = %s AND space_id = %s AND {condition} ORDER BY distance, chunk_id LIMIT %s
"""
INDEX_SEARCH_SQL = """
    SELECT chunk_id, embedding::halfvec({dimensions}) <=> %s::halfvec({dimensions}) AS distance FROM chunk_vector
    WHERE collection_id = %s AND space_id = %s AND {condition}
    ORDER BY embedding::halfvec({dimensions}) <=> %s::halfvec({dimensions}) LIMIT %s
"""
COSINES_SQL = """
    SELECT chunk_id, embedding <=> %s::halfvec FROM chunk_vector WHERE space_id = %s AND chunk_id = ANY(%s::bigint[])
"""
# Visiting a vector by the index takes as long as comparing this many in a scan.
VISIT_COST = 20
# Without table statistics the planner would prefer to read and sort the whole collection.
INDEX_SETTINGS_SQL = """
    SET LOCAL enable_sort = off;
    SET LOCAL hnsw.iterative_scan = strict_order;
    SET LOCAL hnsw.max_scan_tuples = {max_visited};
    SET LOCAL hnsw.ef_search = {ef}
"""


def vector_literal(vector: Sequence[float]) -> str:
    """
    >>> vector_literal([0.5, -1])
    '[0.5,-1]'
    """
    return "[" + ",".join([f"{number:.7g}" for number in vector]) + "]"


def nearest_chunks(scope: Scope, chunk_count: int, vector: str, count: int) -> dict[int, float]:
    """Returns the cosines of the nearest chunks; `chunk_count` is the size of the collection."""
    space = scope.collection.space
    searched_count = chunk_count if scope.chunk_count is None else scope.chunk_count
    ef_search = max(vector_indexes.ef_search(chunk_count), count)
    # A filter makes the index search visit more vectors. Counted twice, because it then also misses near ones.
    visited_count = max(ef_search, 2 * count * chunk_count // max(1, searched_count))
    max_visited = int(searched_count / VISIT_COST)
    if (
        vector_indexes.needs_index(chunk_count, space.dimensions)
        and visited_count < max_visited
        and vector_indexes.is_index_usable(scope.collection.pk, space.pk)
    ):
        cosines = _search_index(scope, vector, count, ef_search, max_visited)
        # It finds too few if the filter excludes most of the nearest vectors.
        if len(cosines) >= min(count, searched_count):
            return cosines
    condition, values = scope.condition("version_id")
    values = [vector, scope.collection.pk, space.pk, *values, count]
    return _fetch_cosines(SCAN_SQL.format(condition=condition), values)


def _search_index(scope: Scope, vector: str, count: int, ef_search: int, max_visited: int) -> dict[int, float]:
    space = scope.collection.space
    condition, values = scope.condition("version_id", uses_index=False)
    run_statement(INDEX_SETTINGS_SQL.format(ef=ef_search, max_visited=max_visited))
    statement = INDEX_SEARCH_SQL.format(condition=condition, dimensions=int(space.dimensions))
    cosines = _fetch_cosines(statement, [vector, scope.collection.pk, space.pk, *values, vector, count])
    run_statement("SET LOCAL enable_sort = on")
    return cosines


def chunk_cosines(chunk_ids: Iterable[int], space: EmbeddingSpace, vector: str) -> dict[int, float]:
    """Returns the cosines of chunks that were found by words; omits chunks without a vector."""
    ids = sorted(chunk_ids)
    return _fetch_cosines(COSINES_SQL, [vector, space.pk, ids]) if ids else {}


def _fetch_cosines(statement: str, values: list[Any]) -> dict[int, float]:
    rows = fetch_rows(statement, values)
    return {chunk: 1.0 - distance for chunk, distance in rows if not math.isnan(distance)}
