"""The versions that a search may find in each collection: those that are published and pass the filter.

Asked first, of the documents, so that chunks are looked at only where they count. It is told as the versions that are
kept when there is a filter, else as the few that are not: being loaded, replaced or taken away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from collections_app.metadata.filter import Filter
from collections_app.models import Collection

# Their number is stored with the chunks. What only waits in the queue has none, however much it is.
UNSEARCHED = """
    SELECT version.collection_id, array_agg(version.id) FROM document_version version
    WHERE version.collection_id = ANY(%s) AND NOT version.is_searched AND version.chunks_count > 0
    GROUP BY version.collection_id
"""
KEPT = """
    SELECT version.collection_id, array_agg(version.id), sum(version.chunks_count)::bigint
    FROM document_version version
    WHERE version.collection_id = ANY(%s) AND version.is_searched AND {condition}
    GROUP BY version.collection_id
"""
# One view of the data from the first statement to the last: a document that is replaced meanwhile is found once.
# What a search costs is decided by what it looks at: no scan of tables that others share, no workers of its own.
SNAPSHOT = """
    SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
    SET LOCAL enable_seqscan = off;
    SET LOCAL max_parallel_workers_per_gather = 0
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The part of a collection that is searched; `chunks` are so many, or None where all but a few are."""

    collection: Collection
    kept: Sequence[int] | None = None
    unsearched: Sequence[int] = ()
    chunks: int | None = None

    def condition(self, column: str) -> tuple[str, list[Any]]:
        """On a row that knows its version."""
        if self.kept is not None:
            return f"{column} = ANY(%s::bigint[])", [list(self.kept)]
        if self.unsearched:
            return f"{column} <> ALL(%s::bigint[])", [list(self.unsearched)]
        return "TRUE", []


@contextmanager
def snapshot() -> Iterator[None]:
    """One transaction for all that a search reads; inside of a caller's, that one."""
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(SNAPSHOT)
        yield


def scopes(collections: Sequence[Collection], wanted: Filter) -> list[Scope]:
    """Of these collections, without those in which the filter keeps nothing."""
    if wanted.is_empty:
        found = _rows(UNSEARCHED, [[each.pk for each in collections]])
        return [Scope(collection=each, unsearched=found.get(each.pk, ([],))[0]) for each in collections]
    condition, values = wanted.sql("version.metadata")
    kept = _rows(KEPT.format(condition=condition), [[each.pk for each in collections], *values])
    return [
        Scope(collection=each, kept=kept[each.pk][0], chunks=kept[each.pk][1])
        for each in collections
        if each.pk in kept
    ]


def _rows(statement: str, values: Sequence[Any]) -> Mapping[str, tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return {row[0]: row[1:] for row in cursor.fetchall()}
