"""Finds the words of a query in a passage, as character offsets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from collections_app.lexical.tokens import PreparedText, is_single_character, prepare_words_with_spans
from system.plain_sql import fetch_rows

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
    """A text with its text search configuration and the lexemes to mark."""

    text: str
    configuration: str
    lexemes: Sequence[str]


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
