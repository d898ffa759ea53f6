"""Splits a text into passages, with their offsets, pages and headings."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from collections_app.chunk.sections import HeadingLike, below_titles, path_of, sections

# Where to cut, best first: paragraphs, lines, sentences of scripts without spaces, words. Chosen: words longer than
# LONGEST_WORD are cut by length; cut into single characters they took 40 times as long.
SEPARATORS = ("\n\n", "\n", "(?<=[。．！？])", " ")  # noqa: RUF001  (full-width punctuation is meant)
LONGEST_WORD = 40
# Each is stored, indexed and embedded: one document never keeps the service busy for days.
MOST_PASSAGES = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of the whole text: `text == whole[char_start:char_end]`."""

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
    """The passages of a text, each of at most `size` characters and without white space around it; TooManyPassages
    when they are more than MOST_PASSAGES.

    >>> found = split("One two.\\n\\nThree.", size=10, overlap=2, page_starts=[0, 10])
    >>> [(each.text, each.char_start, each.page) for each in found]
    [('One two.', 0, 1), ('Three.', 10, 2)]
    """
    if size < 2 or not 0 <= overlap < size:
        raise ValueError("A passage has two characters or more, and its overlap is smaller.")
    offsets = [each.offset for each in headings]
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
    """What is embedded and indexed of a passage: its headings tell what it is about.

    >>> indexed_text(["Printers", "Paper"], "Open tray 2.")
    'Printers\\nPaper\\nOpen tray 2.'
    """
    return "\n".join([*heading_path, text])


def spans(
    text: str, size: int, overlap: int, headings: Sequence[HeadingLike] = (), offsets: Sequence[int] = ()
) -> list[tuple[int, int]]:
    """Beginnings and ends of the passages, in order."""
    cut: list[tuple[int, int]] = []
    for start, end in sections(len(text), offsets, size):
        lead = below_titles(text, start, end, headings, offsets) - start
        # A title goes along with what stands below it, also where that is longer than a passage.
        lead = lead if end - start > size and lead <= size // 2 and lead + overlap < size else 0
        here = pieces(text, start + lead, end, size - lead, overlap)
        cut += [(start, here[0][1]), *here[1:]] if here else [(start, end)]
    found: list[tuple[int, int]] = []
    for start, end in (stripped(text, *span) for span in cut):
        # White space cut off, one may lie wholly within the one before, or that within this: it says nothing more.
        if start >= end or (found and end <= found[-1][1]):
            continue
        if found and start == found[-1][0]:
            found.pop()
        found.append((start, end))
    if len(found) > MOST_PASSAGES:
        raise TooManyPassages(f"The text has more than {MOST_PASSAGES:,} passages.")
    return found


def pieces(text: str, start: int, end: int, size: int, overlap: int) -> list[tuple[int, int]]:
    """A stretch of the text as the library cuts it."""
    splitter = splitter_class()(
        # Longest first to be tried: the last always fits, so no piece is ever above the size.
        separators=[*SEPARATORS, f"(?s:.{{1,{max(1, min(LONGEST_WORD, size // 4))}}})"],
        is_separator_regex=True,
        chunk_size=size,
        chunk_overlap=overlap,
    )
    splitter.position = start
    splitter.split_text(text[start:end])
    found: list[tuple[int, int]] = splitter.spans
    return found


class TooManyPassages(ValueError):
    """A text that would be cut into more passages than are kept of one document."""


def stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without the white space at its ends.

    >>> stripped("a  b c", 1, 5)
    (3, 4)
    """
    inner = text[start:end]
    return start + len(inner) - len(inner.lstrip()), start + len(inner.rstrip())


@cache
def splitter_class() -> Any:
    """LangChain's splitter with a merging of our own, which knows where in the text its pieces are.

    The library looks its passages up in the text again (`add_start_index`) and may find an earlier place where the text
    repeats itself, so that some of it is in no passage. Its merging also takes quadratic time for short words. Which
    passages come out is the same.
    """
    # 0.4 s and 28 MB, which only a process that loads documents needs.
    from langchain_text_splitters import RecursiveCharacterTextSplitter  # noqa: PLC0415

    class PlacingSplitter(RecursiveCharacterTextSplitter):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.spans: list[tuple[int, int]] = []
            self.position = 0

        def _merge_splits(self, splits: Iterable[str], separator: str) -> list[str]:
            """Called with each piece of the text once and in order, since separators are kept."""
            lengths = [len(each) for each in splits]
            self.position = merge(lengths, self.position, self._chunk_size, self._chunk_overlap, self.spans)
            return []

    return PlacingSplitter


def merge(lengths: Sequence[int], position: int, size: int, overlap: int, spans: list[tuple[int, int]]) -> int:
    """Put neighbouring pieces together while they fit, and begin the next with the last of them, up to the overlap.

    >>> found = []
    >>> merge([4, 4, 4], 0, 10, 4, found), found
    (12, [(0, 8), (4, 12)])
    """
    held: deque[int] = deque()
    total = 0
    for length in lengths:
        if total + length > size and held:
            spans.append((position - total, position))
            while total > overlap or (total + length > size and total > 0):
                total -= held.popleft()
        held.append(length)
        total += length
        position += length
    spans.append((position - total, position))
    return position
