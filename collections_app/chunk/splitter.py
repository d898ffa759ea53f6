"""Splits a text into passages, with their offsets, pages and headings."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from collections_app.chunk.sections import HeadingLike, end_of_titles, path_of, sections

# Separators, best first: paragraphs, lines, sentences of scripts without spaces, words. Chosen: words longer than
# MAX_WORD are cut by length; cutting them into single characters took 40 times as long.
SEPARATORS = ("\n\n", "\n", "(?<=[。．！？])", " ")  # noqa: RUF001  (full-width punctuation is meant)
MAX_WORD = 40
# Each passage is stored, indexed and embedded. The limit keeps one document from occupying the service for days.
MAX_PASSAGES = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A part of the whole text: `text == whole[char_start:char_end]`."""

    number: int
    text: str
    char_start: int
    char_end: int
    page: int | None
    page_end: int | None
    heading_path: tuple[str, ...]


def split(
    text: str,
    *,
    size: int,
    overlap: int,
    page_starts: Sequence[int] | None = None,
    headings: Sequence[HeadingLike] = (),
) -> list[Passage]:
    """The passages of a text, each of at most `size` characters, without white space at the ends.

    Raises TooManyPassages if there are more than MAX_PASSAGES.

    >>> passages = split("One two.\\n\\nThree.", size=10, overlap=2, page_starts=[0, 10])
    >>> [(passage.text, passage.char_start, passage.page) for passage in passages]
    [('One two.', 0, 1), ('Three.', 10, 2)]
    """
    if size < 2 or not 0 <= overlap < size:
        raise ValueError("The size must be at least 2, and the overlap smaller than the size.")
    offsets = [heading.offset for heading in headings]
    return [
        Passage(
            number=number,
            text=text[start:end],
            char_start=start,
            char_end=end,
            page=bisect_right(page_starts, start) if page_starts else None,
            page_end=bisect_right(page_starts, end - 1) if page_starts else None,
            heading_path=path_of(text, start, end, headings, offsets),
        )
        for number, (start, end) in enumerate(spans(text, size, overlap, headings, offsets))
    ]


def indexed_text(heading_path: Sequence[str], text: str) -> str:
    """The text to embed and index: the passage with its headings, which say what it is about.

    >>> indexed_text(["Printers", "Paper"], "Open tray 2.")
    'Printers\\nPaper\\nOpen tray 2.'
    """
    return "\n".join([*heading_path, text])


def spans(
    text: str, size: int, overlap: int, headings: Sequence[HeadingLike] = (), offsets: Sequence[int] = ()
) -> list[tuple[int, int]]:
    """The starts and ends of the passages, in order."""
    cut: list[tuple[int, int]] = []
    for start, end in sections(len(text), offsets, size):
        lead = end_of_titles(text, start, end, headings, offsets) - start
        # A title stays with the text below it, even if that is longer than a passage.
        lead = lead if end - start > size and lead <= size // 2 and lead + overlap < size else 0
        parts = pieces(text, start + lead, end, size - lead, overlap)
        cut += [(start, parts[0][1]), *parts[1:]] if parts else [(start, end)]
    result: list[tuple[int, int]] = []
    for start, end in (stripped(text, *span) for span in cut):
        # Without white space, a passage may lie wholly within its neighbour and is then left out.
        if start >= end or (result and end <= result[-1][1]):
            continue
        if result and start == result[-1][0]:
            result.pop()
        result.append((start, end))
    if len(result) > MAX_PASSAGES:
        raise TooManyPassages(f"The text has more than {MAX_PASSAGES:,} passages.")
    return result


def pieces(text: str, start: int, end: int, size: int, overlap: int) -> list[tuple[int, int]]:
    """The parts of a section."""
    # The last separator always fits, so that no part exceeds the size.
    separators = [*SEPARATORS, f"(?s:.{{1,{max(1, min(MAX_WORD, size // 4))}}})"]
    spans: list[tuple[int, int]] = []
    divide(text[start:end], start, separators, size, overlap, spans)
    return spans


class TooManyPassages(ValueError):
    """The text would be split into more passages than one document may have."""


def stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without the white space at its ends.

    >>> stripped("a  b c", 1, 5)
    (3, 4)
    """
    inner = text[start:end]
    return start + len(inner) - len(inner.lstrip()), start + len(inner.rstrip())


def divide(
    text: str, position: int, separators: Sequence[str], size: int, overlap: int, spans: list[tuple[int, int]]
) -> None:
    """Cuts before each match of the first separator that occurs, and a part that is too long at the next separators.

    The passages are those of LangChain's RecursiveCharacterTextSplitter, which keeps no offsets and needs 60 MB.
    """
    while len(separators) > 1 and not re.search(separators[0], text):
        separators = separators[1:]
    cuts = sorted({0, *(match.start() for match in re.finditer(separators[0], text)), len(text)})
    lengths: list[int] = []
    for begin, end in pairwise(cuts):
        if end - begin < size or len(separators) == 1:
            lengths.append(end - begin)
        else:
            position = merge(lengths, position, size, overlap, spans)
            lengths = []
            divide(text[begin:end], position, separators[1:], size, overlap, spans)
            position += end - begin
    merge(lengths, position, size, overlap, spans)


def merge(lengths: Sequence[int], position: int, size: int, overlap: int, spans: list[tuple[int, int]]) -> int:
    """Joins neighbouring parts while they fit; the next passage starts with the last of them, up to the overlap.

    >>> spans = []
    >>> merge([4, 4, 4], 0, 10, 4, spans), spans
    (12, [(0, 8), (4, 12)])
    """
    window: deque[int] = deque()
    total = 0
    for length in lengths:
        if total + length > size and window:
            spans.append((position - total, position))
            while total > overlap or (total + length > size and total > 0):
                total -= window.popleft()
        window.append(length)
        total += length
        position += length
    if total:
        spans.append((position - total, position))
    return position
