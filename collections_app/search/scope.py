"""Determines the versions that a search can find in each collection: those that are published and match the filter.

This is done first, per document, so only relevant chunks are read. With a filter, a scope lists the matching
versions; without one, it lists the few that are excluded because they are being loaded, replaced or deleted.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from collections_app.metadata.filter import Filter
from collections_app.models import Collection
from system.plain_sql import fetch_rows, run_statement

# Only versions with stored chunks matter; queued ones have none.
UNSEARCHED_SQL = """
    SELECT version.collection_id, array_agg(version.id) FROM document_version version
    WHERE version.collection_id = ANY(%s) AND NOT version.is_searched AND version.chunks_count > 0
    GROUP BY version.collection_id
"""
MATCHING_SQL = """
    SELECT version.collection_id, array_agg(version.id), sum(version.chunks_count)::bigint
    FROM document_version version
    WHERE version.collection_id = ANY(%s) AND version.is_searched AND {condition}
    GROUP BY version.collection_id
"""
# All statements see one snapshot, in which a document that is replaced concurrently occurs once. The cost of a search
# depends only on what it reads: no scans of tables shared with other collections, and no parallel workers.
SNAPSHOT_SQL = """
    SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
    SET LOCAL enable_seqscan = off;
    SET LOCAL max_parallel_workers_per_gather = 0
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The searched part of a collection; `chunk_count` is its size, or None if almost all of it is searched."""

    collection: Collection
    version_ids: Sequence[int] | None = None
    unsearched_ids: Sequence[int] = ()
    chunk_count: int | None = None

    def condition(self, column: str, *, uses_index: bool = True) -> tuple[str, list[Any]]:
        """Returns the condition on a version id column, and its parameters.

        Without `uses_index`, it only tests rows that another index finds. Otherwise, the planner estimates for each
        version how often it occurs, which takes longer than the search if there are thousands.
        """
        if self.version_ids is not None:
            condition, ids = f"{column} = ANY(%s::bigint[])", self.version_ids
        elif self.unsearched_ids:
            condition, ids = f"{column} <> ALL(%s::bigint[])", self.unsearched_ids
        else:
            return "TRUE", []
        return (condition if uses_index else f"coalesce({condition}, FALSE)"), [list(ids)]


@contextmanager
def snapshot_transaction() -> Iterator[None]:
    """Runs all reads of a search in one transaction, or in the caller's transaction if there is one."""
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        run_statement(SNAPSHOT_SQL)
        yield


def build_scopes(collections: Sequence[Collection], filter: Filter) -> list[Scope]:
    ids = [collection.pk for collection in collections]
    if filter.is_empty:
        unsearched_ids = dict(fetch_rows(UNSEARCHED_SQL, [ids]))
        return [
            Scope(collection=collection, unsearched_ids=unsearched_ids.get(collection.pk, ()))
            for collection in collections
        ]
    condition, values = filter.sql("version.metadata")
    rows = fetch_rows(MATCHING_SQL.format(condition=condition), [ids, *values])
    collections_by_id = {collection.pk: collection for collection in collections}
    return [
        Scope(collection=collections_by_id[sys_id], version_ids=version_ids, chunk_count=chunk_count)
        for sys_id, version_ids, chunk_count in rows
    ]
