"""Splits a text into passages, with their offsets, pages and headings."""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from collections_app.chunk.sections import HeadingLike, end_of_titles, find_heading_path, section_spans

# Separators, best first: paragraphs, lines, sentences of scripts without spaces, words. Chosen: words longer than
# MAX_WORD_LENGTH are cut by length; cutting them into single characters took 40 times as long.
SEPARATORS = ("\n\n", "\n", "(?<=[。．！？])", " ")  # noqa: RUF001  (full-width punctuation is meant)
MAX_WORD_LENGTH = 40
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


def split_into_passages(
    text: str,
    *,
    size: int,
    overlap: int,
    page_starts: Sequence[int] | None = None,
    headings: Sequence[HeadingLike] = (),
) -> list[Passage]:
    """The passages of a text, each of at most `size` characters, without white space at the ends.

    Raises TooManyPassages if there are more than MAX_PASSAGES.

    >>> passages = split_into_passages("One two.\\n\\nThree.", size=10, overlap=2, page_starts=[0, 10])
    >>> [(passage.text, passage.char_start, passage.page) for passage in passages]
    [('One two.', 0, 1), ('Three.', 10, 2)]
    """
    if size < 2 or not 0 <= overlap < size:
        raise ValueError("The size must be at least 2. The overlap must be smaller than the size.")
    offsets = [heading.offset for heading in headings]
    return [
        Passage(
            number=number,
            text=text[start:end],
            char_start=start,
            char_end=end,
            page=bisect_right(page_starts, start) if page_starts else None,
            page_end=bisect_right(page_starts, end - 1) if page_starts else None,
            heading_path=find_heading_path(text, start, end, headings, offsets),
        )
        for number, (start, end) in enumerate(passage_spans(text, size, overlap, headings, offsets))
    ]


def indexed_text(heading_path: Sequence[str], text: str) -> str:
    """The text to embed and index: the passage with its headings, which say what it is about.

    >>> indexed_text(["Printers", "Paper"], "Open tray 2.")
    'Printers\\nPaper\\nOpen tray 2.'
    """
    return "\n".join([*heading_path, text])


def passage_spans(
    text: str, size: int, overlap: int, headings: Sequence[HeadingLike] = (), offsets: Sequence[int] = ()
) -> list[tuple[int, int]]:
    """The starts and ends of the passages, in order."""
    untrimmed_spans: list[tuple[int, int]] = []
    for start, end in section_spans(len(text), offsets, size):
        title_length = end_of_titles(text, start, end, headings, offsets) - start
        # A title stays with the text below it, even if that is longer than a passage.
        title_length = (
            title_length if end - start > size and title_length <= size // 2 and title_length + overlap < size else 0
        )
        parts = split_section(text, start + title_length, end, size - title_length, overlap)
        untrimmed_spans += [(start, parts[0][1]), *parts[1:]] if parts else [(start, end)]
    spans: list[tuple[int, int]] = []
    for start, end in (strip_span(text, *span) for span in untrimmed_spans):
        # Without white space, a passage may lie wholly within its neighbour and is then left out.
        if start >= end or (spans and end <= spans[-1][1]):
            continue
        if spans and start == spans[-1][0]:
            spans.pop()
        spans.append((start, end))
    if len(spans) > MAX_PASSAGES:
        raise TooManyPassages(
            f"The text would be split into more than {MAX_PASSAGES:,} passages. Send it as several documents."
        )
    return spans


def split_section(text: str, start: int, end: int, size: int, overlap: int) -> list[tuple[int, int]]:
    """The parts of a section, as the library splits it."""
    splitter = splitter_class()(
        # The last separator always fits, so that no part exceeds the size.
        separators=[*SEPARATORS, f"(?s:.{{1,{max(1, min(MAX_WORD_LENGTH, size // 4))}}})"],
        is_separator_regex=True,
        chunk_size=size,
        chunk_overlap=overlap,
    )
    splitter.position = start
    splitter.split_text(text[start:end])
    spans: list[tuple[int, int]] = splitter.spans
    return spans


class TooManyPassages(ValueError):
    """The text would be split into more passages than one document may have."""


def strip_span(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without the white space at its ends.

    >>> strip_span("a  b c", 1, 5)
    (3, 4)
    """
    content = text[start:end]
    return start + len(content) - len(content.lstrip()), start + len(content.rstrip())


@cache
def splitter_class() -> Any:
    """LangChain's splitter with our own merging, which tracks the offsets of the parts.

    The library searches for its passages in the text (`add_start_index`) and may find an earlier place where the text
    repeats, so that some text is in no passage. Its merging also takes quadratic time for short words. The resulting
    passages are the same.
    """
    # Takes 0.4 s and 28 MB, which only processes that load documents need.
    from langchain_text_splitters import RecursiveCharacterTextSplitter  # noqa: PLC0415

    class OffsetTrackingSplitter(RecursiveCharacterTextSplitter):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.spans: list[tuple[int, int]] = []
            self.position = 0

        def _merge_splits(self, splits: Iterable[str], separator: str) -> list[str]:
            """Called once for each part of the text, in order, because separators are kept."""
            lengths = [len(part) for part in splits]
            self.position = merge_parts(lengths, self.position, self._chunk_size, self._chunk_overlap, self.spans)
            return []

    return OffsetTrackingSplitter


def merge_parts(lengths: Sequence[int], position: int, size: int, overlap: int, spans: list[tuple[int, int]]) -> int:
    """Joins neighbouring parts while they fit; the next passage starts with the last of them, up to the overlap.

    >>> passage_spans = []
    >>> merge_parts([4, 4, 4], 0, 10, 4, passage_spans), passage_spans
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
    spans.append((position - total, position))
    return position
