"""Counts the documents of collections by state, and their passages."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Sum

from collections_app.models import Document, Version
from collections_app.models.documents import UNFINISHED_STATES, VersionState

# Finished states first.
STATE_ORDER = (VersionState.READY, VersionState.EMPTY, VersionState.FAILED, *UNFINISHED_STATES)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentCounts:
    by_state: Counter[str]
    chunk_count: int = 0

    @property
    def document_count(self) -> int:
        return self.by_state.total()

    @property
    def unfinished_count(self) -> int:
        return sum(self.by_state[state] for state in UNFINISHED_STATES)

    @property
    def failed_count(self) -> int:
        return self.by_state[VersionState.FAILED]

    @property
    def state_counts(self) -> list[tuple[str, int]]:
        """The states that have documents, with their counts."""
        return [(state.value, self.by_state[state]) for state in STATE_ORDER if self.by_state[state]]


def count_by_collection(collection_ids: Iterable[str]) -> dict[str, DocumentCounts]:
    """Returns the counts by collection id. A document has the state of its newest version."""
    ids = list(collection_ids)
    documents = Document.objects.filter(collection__in=ids, deleted_at__isnull=True)
    rows = documents.order_by().values_list("collection_id", "newest__state").annotate(Count("id"))
    states: dict[str, Counter[str]] = {collection_id: Counter() for collection_id in ids}
    for collection_id, state, count in rows:
        states[collection_id][state or VersionState.QUEUED] = count
    searched_versions = Version.objects.filter(collection__in=ids, is_searched=True).order_by()
    chunks = dict(searched_versions.values_list("collection_id").annotate(Sum("chunks_count")))
    return {sys_id: DocumentCounts(by_state=states[sys_id], chunk_count=chunks.get(sys_id) or 0) for sys_id in ids}
