"""Counts documents and passages of collections, and documents by state."""

from __future__ import annotations

from collections.abc import Collection as Container
from dataclasses import dataclass

from django.db.models import Count, Sum

from collections_app.models import Document, Version
from collections_app.models.documents import UNFINISHED, State

# In the order of a document's way, what went well first.
ORDER = (State.READY, State.EMPTY, State.FAILED, *UNFINISHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Of one collection, or of several together."""

    by_state: dict[str, int]
    chunks: int = 0

    @property
    def documents(self) -> int:
        return sum(self.by_state.values())

    @property
    def unfinished(self) -> int:
        return sum(self.by_state.get(state, 0) for state in UNFINISHED)

    @property
    def failed(self) -> int:
        return self.by_state.get(State.FAILED, 0)

    @property
    def empty(self) -> int:
        return self.by_state.get(State.EMPTY, 0)

    @property
    def ready(self) -> int:
        return self.by_state.get(State.READY, 0)

    @property
    def states(self) -> list[tuple[str, int]]:
        """The states that occur, in their order."""
        return [(state.value, self.by_state[state]) for state in ORDER if self.by_state.get(state)]


def of(collection_ids: Container[str]) -> dict[str, Counts]:
    """For each of these collections; a document's state is that of what was loaded last."""
    ids = list(collection_ids)
    documents = Document.objects.filter(collection__in=ids, deleted_at__isnull=True)
    found: dict[str, dict[str, int]] = {each: {} for each in ids}
    for each, state, count in documents.order_by().values_list("collection_id", "newest__state").annotate(Count("id")):
        found[each][state or State.QUEUED] = count
    searched = Version.objects.filter(collection__in=ids, is_searched=True).order_by()
    chunks = dict(searched.values_list("collection_id").annotate(Sum("chunks_count")))
    return {each: Counts(by_state=found[each], chunks=chunks.get(each) or 0) for each in ids}


def together(counts: Container[Counts]) -> Counts:
    """
    >>> together([Counts(by_state={"ready": 2}, chunks=5), Counts(by_state={"ready": 1, "failed": 1})])
    Counts(by_state={'ready': 3, 'failed': 1}, chunks=5)
    """
    by_state: dict[str, int] = {}
    for each in counts:
        for state, count in each.by_state.items():
            by_state[state] = by_state.get(state, 0) + count
    return Counts(by_state=by_state, chunks=sum(each.chunks for each in counts))
