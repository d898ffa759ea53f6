"""Arranges the best chunks as results, if the caller asks for it: without copies, one of each document, or joined with
their neighbours. Without such a wish, the results are the best chunks as they are stored."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from system.plain_sql import fetch_rows

from .fusion import Candidate

# Only the best chunks are arranged; a search of many collections can have thousands.
MAX_ARRANGED = 1_000
# Neighbours are joined among this many chunks for each result, so that the results do not become whole documents.
JOINED_PER_RESULT = 3
# Texts are copies if only letter case and white space differ.
PLACES_SQL = """
    SELECT chunk.id, version.document_id, chunk.number, chunk.version_id,
        CASE WHEN %s THEN md5(lower(regexp_replace(chunk.text, '\\s+', ' ', 'g'))) ELSE '' END
    FROM chunk JOIN document_version version ON version.id = chunk.version_id WHERE chunk.id = ANY(%s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """What the caller asks for."""

    collapses_copies: bool = False
    by_document: bool = False
    # How many passages before and after each one are added. Those that touch are joined. None: each is on its own.
    context: int | None = None


class Place(NamedTuple):
    """Where a chunk is, in the order of results with equal scores."""

    document_id: str
    number: int
    version_id: int
    digest: str


@dataclass(slots=True)
class Span:
    """A result: its best chunk, and the numbers of the first and last chunk whose text it shows."""

    chunk: Candidate
    version_id: int
    first: int
    last: int


def arrange(chunks: Sequence[Candidate], k: int, arrangement: Arrangement) -> list[Span]:
    """Returns at most k results, best first; ties are sorted by document and position."""
    is_joined, context = arrangement.context is not None, arrangement.context or 0
    wanted = k * JOINED_PER_RESULT if is_joined else k
    spans: list[Span] = []
    for chunk, place in _without_repetitions(chunks, wanted, arrangement):
        span = Span(chunk, place.version_id, place.number - context, place.number + context)
        if not (is_joined and _join(spans, span)) and len(spans) < k:
            spans.append(span)
    return spans


def _without_repetitions(
    chunks: Sequence[Candidate], count: int, arrangement: Arrangement
) -> Iterator[tuple[Candidate, Place]]:
    """Yields the first chunks, of copies and documents only the best if that was asked."""
    has_repetitions = arrangement.collapses_copies or arrangement.by_document
    texts: set[str] = set()
    documents: set[str] = set()
    for chunk, place in _best_with_places(chunks, MAX_ARRANGED if has_repetitions else count, arrangement):
        is_copy = arrangement.collapses_copies and place.digest in texts
        # Also if it is left out itself: otherwise, another passage of a copied document would be its best one.
        texts.add(place.digest)
        if count > 0 and not is_copy and not (arrangement.by_document and place.document_id in documents):
            documents.add(place.document_id)
            count -= 1
            yield chunk, place


def _best_with_places(
    chunks: Sequence[Candidate], count: int, arrangement: Arrangement
) -> list[tuple[Candidate, Place]]:
    """Returns the first chunks. Reads only the places of ties, because thousands of equal texts may tie."""
    tied_chunks = [chunk for chunk in chunks if chunk.rank <= chunks[count - 1].rank] if len(chunks) > count else chunks
    rows = fetch_rows(PLACES_SQL, [arrangement.collapses_copies, [chunk.chunk_id for chunk in tied_chunks]])
    places = {chunk_id: Place(*place) for chunk_id, *place in rows}
    existing_chunks = [(chunk, places[chunk.chunk_id]) for chunk in tied_chunks if chunk.chunk_id in places]
    return sorted(existing_chunks, key=lambda pair: (pair[0].rank, pair[1]))[:count]


def _join(spans: list[Span], new: Span) -> bool:
    """Extends the best span that overlaps or touches the new one, and returns whether there is one."""
    touching = [
        span
        for span in spans
        if span.version_id == new.version_id and new.first <= span.last + 1 and span.first <= new.last + 1
    ]
    if not touching:
        return False
    best, *others = touching
    best.first = min(span.first for span in (*touching, new))
    best.last = max(span.last for span in (*touching, new))
    for span in others:
        spans.remove(span)
    return True
