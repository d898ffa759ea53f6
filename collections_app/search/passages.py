"""Reads the passages of the best chunks, with their document and scores, and highlights the words of the query."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from collections_app.lexical.term_statistics import QueryTerms
from collections_app.lexical.tokens import PreparedText, is_single_character, prepare_words_with_spans
from system.plain_sql import fetch_rows

from .arrangement import Span
from .fusion import Candidate

# The maximum number of query words that are highlighted in a passage.
MAX_LEXEMES = 64
# Decimal places of a score. Further ones depend on the order of additions.
SCORE_DIGITS = 6
CHUNKS_SQL = """
    SELECT chunk.id, collection.sys_id, collection.name, version.text_configuration, document.id, document.doc_id,
        version.metadata::text, version.filename, version.chunks_count, chunk.number, chunk.text, chunk.heading_path,
        chunk.page, chunk.page_end, chunk.page_label, chunk.page_label_end, chunk.is_ocr, chunk.char_start,
        chunk.char_end, version.generation, version.format
    FROM chunk
    JOIN document_version version ON version.id = chunk.version_id
    JOIN document ON document.id = version.document_id
    JOIN document_collection collection ON collection.sys_id = chunk.collection_id
    WHERE chunk.id = ANY(%s)
"""

# The part of a document from its chunk with the first number to that with the last one. As in chunks, a header comes
# first if the part begins within a table.
JOINED_SQL = """
    SELECT left(first_chunk.text, length(first_chunk.text) - (first_chunk.char_end - first_chunk.char_start)),
        part.char_start, part.char_end, part.page, part.page_end,
        first_chunk.page_label, part.page_label_end, part.is_ocr
    FROM unnest(%s::bigint[], %s::int[], %s::int[]) WITH ORDINALITY AS span (version_id, first, last, number)
    CROSS JOIN LATERAL (
        SELECT min(char_start) AS char_start, max(char_end) AS char_end, min(page) AS page, max(page_end) AS page_end,
            (array_agg(page_label_end ORDER BY number DESC))[1] AS page_label_end, bool_or(is_ocr) AS is_ocr
        FROM chunk WHERE chunk.version_id = span.version_id AND chunk.number BETWEEN span.first AND span.last
    ) AS part
    JOIN chunk AS first_chunk ON first_chunk.version_id = span.version_id
        AND first_chunk.number = greatest(span.first, 0)
    ORDER BY span.number
"""
# Once for all parts of a document: to find an offset in a text of 10 MB takes 28 ms.
TEXT_SQL = "SELECT substr(text, %s + 1, %s) FROM document_text WHERE version_id = %s"
# Private-use characters, which never occur in prepared text.
START_MARK, STOP_MARK = "\ue000", "\ue001"
HEADLINE_SQL = """
    SELECT ts_headline(passage.configuration::regconfig, passage.words, passage.query::tsquery, %s)
    FROM unnest(%s::text[], %s::text[], %s::text[]) WITH ORDINALITY AS passage (configuration, words, query, number)
    ORDER BY passage.number
"""
# Chosen: the size of 200 passages of default length. A million characters without spaces would take six seconds.
MAX_HIGHLIGHTED_CHARACTERS = 240_000
HEADLINE_OPTIONS = f"HighlightAll=true, StartSel={START_MARK}, StopSel={STOP_MARK}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HighlightRequest:
    text: str
    configuration: str
    lexemes: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A passage in a search result. `scores` contains its cosine, BM25 and character scores, None if not computed."""

    # The columns of CHUNKS_SQL, in their order. The ids, generation and format are for pages only.
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
    page_label: str | None
    page_label_end: str | None
    is_ocr: bool
    char_start: int
    char_end: int
    generation: int
    format: str
    score: float = 0.0
    scores: dict[str, float | None] = field(default_factory=dict)
    highlights: list[list[int]] = field(default_factory=list)

    @property
    def id(self) -> str:
        # Chosen: derived from what the caller knows. Row ids would reveal how much others load.
        return str(uuid5(NAMESPACE_URL, f"{self.collection_name}\n{self.doc_id}\n{self.chunk_index}"))


def read_passages(spans: Sequence[Span], query_terms: Mapping[str, QueryTerms]) -> list[Hit]:
    """Returns the results with their texts and highlights."""
    rows = _fetch_hits([span.chunk.chunk_id for span in spans])
    hits = [rows[span.chunk.chunk_id] for span in spans]
    _join_texts(spans, hits)
    highlights = find_highlights([_highlight_request(hit, query_terms[hit.collection_id]) for hit in hits])
    found = zip(spans, hits, highlights, strict=True)
    return [_complete_hit(span.chunk, hit, offsets) for span, hit, offsets in found]


def _join_texts(spans: Sequence[Span], hits: list[Hit]) -> None:
    """Replaces the hits that show more than one chunk."""
    numbers = [number for number, span in enumerate(spans) if span.first < span.last]
    if not numbers:
        return
    columns = [[getattr(spans[number], name) for number in numbers] for name in ("version_id", "first", "last")]
    names = ("page_content", "char_start", "char_end", "page", "page_end", "page_label", "page_label_end", "is_ocr")
    numbers_by_version: dict[int, list[int]] = defaultdict(list)
    for number, row in zip(numbers, fetch_rows(JOINED_SQL, columns), strict=True):
        hits[number] = replace(hits[number], **dict(zip(names, row, strict=True)))
        numbers_by_version[spans[number].version_id].append(number)
    for version_id, version_numbers in numbers_by_version.items():
        _add_text(version_id, hits, version_numbers)


def _add_text(version_id: int, hits: list[Hit], numbers: Sequence[int]) -> None:
    """Adds the text of hits that have only the header so far. They are all in one document."""
    start = min(hits[number].char_start for number in numbers)
    end = max(hits[number].char_end for number in numbers)
    ((text,),) = fetch_rows(TEXT_SQL, [start, end - start, version_id])
    for number in numbers:
        hit = hits[number]
        own_text = text[hit.char_start - start : hit.char_end - start]
        hits[number] = replace(hit, page_content=hit.page_content + own_text)


def cut_to_length(hits: Sequence[Hit], max_characters: int) -> list[Hit]:
    """Returns the first hits whose texts have at most this length together. The first one is cut if it is too long."""
    kept: list[Hit] = []
    remaining_characters = max_characters
    for hit in hits:
        if len(hit.page_content) > remaining_characters:
            return kept or [_cut_text(hit, max_characters)]
        remaining_characters -= len(hit.page_content)
        kept.append(hit)
    return kept


def _cut_text(hit: Hit, length: int) -> Hit:
    highlights = [[start, end] for start, end in hit.highlights if end <= length]
    text = hit.page_content[:length]
    # The header of a table is not part of the document at this position, and can be longer than the rest.
    char_end = max(hit.char_start, hit.char_end - (len(hit.page_content) - length))
    return replace(hit, page_content=text, char_end=char_end, highlights=highlights)


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


def _complete_hit(chunk: Candidate, row: Hit, offsets: list[list[int]]) -> Hit:
    scores = {
        "vector": chunk.vector_score,
        "text": chunk.text_score,
        "characters": chunk.character_score,
        "match": chunk.match,
    }
    return replace(
        row,
        metadata=json.loads(row.metadata),
        score=round(chunk.score, SCORE_DIGITS),
        scores={name: None if score is None else round(score, SCORE_DIGITS) for name, score in scores.items()},
        highlights=offsets,
    )


def find_highlights(passages: Sequence[HighlightRequest]) -> list[list[list[int]]]:
    """Returns the offsets `[start, end]` of the matching words of each passage, in order and without overlaps. If the
    passages are long, only the first ones are highlighted."""
    offsets: list[list[list[int]]] = [[] for _ in passages]
    numbers = _numbers_within_limit(passages)
    if not numbers:
        return offsets
    selected_passages = [passages[number] for number in numbers]
    prepared_texts = [
        prepare_words_with_spans(passage.text, frozenset(filter(is_single_character, passage.lexemes)))
        for passage in selected_passages
    ]
    parameters = [
        [passage.configuration for passage in selected_passages],
        [text.text for text in prepared_texts],
        [any_lexeme_tsquery(passage.lexemes) for passage in selected_passages],
    ]
    rows = fetch_rows(HEADLINE_SQL, [HEADLINE_OPTIONS, *parameters])
    for number, text, (marked_text,) in zip(numbers, prepared_texts, rows, strict=True):
        offsets[number] = _merge_overlaps(marked_offsets(marked_text, text))
    return offsets


def _numbers_within_limit(passages: Sequence[HighlightRequest]) -> list[int]:
    remaining_characters, numbers = MAX_HIGHLIGHTED_CHARACTERS, []
    for number, passage in enumerate(passages):
        if passage.lexemes and passage.text:
            remaining_characters -= len(passage.text)
            if remaining_characters < 0:
                break
            numbers.append(number)
    return numbers


def any_lexeme_tsquery(lexemes: Iterable[str]) -> str:
    """Returns a tsquery that matches any of the lexemes.

    >>> any_lexeme_tsquery(["fox", "o'clock"])
    "'fox' | 'o''clock'"
    """
    quoted_lexemes = [lexeme.replace("\\", "\\\\").replace("'", "''") for lexeme in lexemes]
    return " | ".join([f"'{lexeme}'" for lexeme in quoted_lexemes])


def marked_offsets(marked_text: str, text: PreparedText) -> list[tuple[int, int]]:
    """Returns the offsets of the marked words in the original text.

    >>> marked_offsets(f"the {START_MARK}fox{STOP_MARK}", PreparedText("the fox", range(7), range(1, 8)))
    [(4, 7)]
    """
    if marked_text.replace(START_MARK, "").replace(STOP_MARK, "") != text.text:
        return []
    offsets, position, start = [], 0, 0
    for character in marked_text:
        if character == START_MARK:
            start = position
        elif character == STOP_MARK:
            offsets.append((text.starts[start], text.ends[position - 1]))
        else:
            position += 1
    return offsets


def _merge_overlaps(offsets: Iterable[tuple[int, int]]) -> list[list[int]]:
    """
    >>> _merge_overlaps([(4, 6), (0, 2), (5, 7)])
    [[0, 2], [4, 7]]
    """
    merged_offsets: list[list[int]] = []
    for start, end in sorted(offsets):
        if merged_offsets and start <= merged_offsets[-1][1]:
            merged_offsets[-1][1] = max(merged_offsets[-1][1], end)
        else:
            merged_offsets.append([start, end])
    return merged_offsets
