"""Reads the passages of the best chunks, with their document, scores and highlights."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from collections_app.lexical.term_statistics import QueryTerms
from system.plain_sql import fetch_rows

from .fusion import ScoredChunk
from .highlights import HighlightRequest, find_highlights

# The maximum number of query words that are highlighted in a passage.
MAX_LEXEMES = 64
# Decimal places of a score. Further ones depend on the order of additions.
SCORE_DIGITS = 6
CHUNKS_SQL = """
    SELECT chunk.id, collection.sys_id, collection.name, version.text_configuration, document.id, document.doc_id,
        version.metadata::text, version.filename, version.chunks_count, chunk.number, chunk.text, chunk.heading_path,
        chunk.page, chunk.page_end, chunk.char_start, chunk.char_end, version.generation
    FROM chunk
    JOIN document_version version ON version.id = chunk.version_id
    JOIN document ON document.id = version.document_id
    JOIN document_collection collection ON collection.sys_id = chunk.collection_id
    WHERE chunk.id = ANY(%s)
"""

POSITIONS_SQL = """
    SELECT chunk.id, version.document_id, chunk.number
    FROM chunk JOIN document_version version ON version.id = chunk.version_id WHERE chunk.id = ANY(%s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A passage in a search result. `scores` contains its cosine and BM25 score, None if not computed."""

    # The columns of CHUNKS_SQL, in their order. The ids and the generation are for links, not part of the response.
    collection_id: str
    collection_name: str
    configuration: str
    document_id: str
    doc_id: str
    metadata: Any
    filename: str
    chunks_count: int
    chunk_index: int
    page_content: str
    heading_path: list[str]
    page: int | None
    page_end: int | None
    char_start: int
    char_end: int
    generation: int
    score: float = 0.0
    scores: dict[str, float | None] = field(default_factory=dict)
    highlights: list[list[int]] = field(default_factory=list)

    @property
    def id(self) -> str:
        # Chosen: derived from what the caller knows. Row ids would reveal how much others load.
        return str(uuid5(NAMESPACE_URL, f"{self.collection_name}\n{self.doc_id}\n{self.chunk_index}"))


def read_passages(chunks: Sequence[ScoredChunk], k: int, query_terms: Mapping[str, QueryTerms]) -> list[Hit]:
    """Returns the best k chunks as hits; ties are sorted by document and position."""
    best_chunks = _take_best(chunks, k)
    rows = _fetch_hits([chunk.candidate.chunk_id for chunk in best_chunks])
    best_rows = [(chunk, rows[chunk.candidate.chunk_id]) for chunk in best_chunks]
    highlights = find_highlights([_highlight_request(row, query_terms[row.collection_id]) for _, row in best_rows])
    return [_complete_hit(chunk, row, offsets) for (chunk, row), offsets in zip(best_rows, highlights, strict=True)]


def _take_best(chunks: Sequence[ScoredChunk], k: int) -> list[ScoredChunk]:
    """Returns the first k chunks. Reads only the positions of ties, because thousands of equal texts may tie."""
    tied_chunks = [chunk for chunk in chunks if chunk.rank <= chunks[k - 1].rank] if len(chunks) > k else chunks
    rows = fetch_rows(POSITIONS_SQL, [[chunk.candidate.chunk_id for chunk in tied_chunks]])
    positions = {chunk_id: position for chunk_id, *position in rows}
    existing_chunks = [chunk for chunk in tied_chunks if chunk.candidate.chunk_id in positions]
    return sorted(existing_chunks, key=lambda chunk: (chunk.rank, positions[chunk.candidate.chunk_id]))[:k]


def _fetch_hits(chunk_ids: Sequence[int]) -> dict[int, Hit]:
    if not chunk_ids:
        return {}
    names = [column.name for column in fields(Hit)]
    rows = fetch_rows(CHUNKS_SQL, [list(chunk_ids)])
    return {row[0]: Hit(**dict(zip(names, row[1:], strict=False))) for row in rows}


def _highlight_request(row: Hit, query_terms: QueryTerms) -> HighlightRequest:
    # Only the rarest words, because each is compared with every word of every passage.
    lexemes = [word.lexeme for word in query_terms.known_words if word.configuration == row.configuration]
    return HighlightRequest(text=row.page_content, configuration=row.configuration, lexemes=lexemes[:MAX_LEXEMES])


def _complete_hit(chunk: ScoredChunk, row: Hit, offsets: list[list[int]]) -> Hit:
    return replace(
        row,
        metadata=json.loads(row.metadata),
        score=round(chunk.score, SCORE_DIGITS),
        scores={"vector": _round_score(chunk.candidate.vector_score), "text": _round_score(chunk.candidate.text_score)},
        highlights=offsets,
    )


def _round_score(score: float | None) -> float | None:
    return None if score is None else round(score, SCORE_DIGITS)
