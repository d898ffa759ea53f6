"""Splits a text into passages, with their offsets, pages and headings."""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, takewhile
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from collections_app.chunk.tables import Table, find_tables

# Separators, best first: paragraphs, lines, sentences of scripts without spaces, words. Chosen: words longer than
# MAX_WORD_LENGTH are cut by length; cutting them into single characters took 40 times as long.
SEPARATORS = ("\n\n", "\n", "(?<=[。．！？])", " ")  # noqa: RUF001  (full-width punctuation is intended)
MAX_WORD_LENGTH = 40
# Each passage is stored, indexed and embedded. The limit keeps one document from occupying the service for days.
MAX_PASSAGES = 200_000
# A section shorter than a fifth of a passage, such as a title without text or a single introductory line, is joined to
# the next section even if that is long.
SHORT_SECTION_DIVISOR = 5
# Characters that Markdown puts around a title.
TITLE_MARKUP = " \t\n#=-*_`~"
MAX_MARKUP_LENGTH = 20
heading_offset = attrgetter("offset")


class HeadingLike(Protocol):
    @property
    def offset(self) -> int: ...
    @property
    def path(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A part of a text: `text` is `full_text[char_start:char_end]`, preceded by the header of the table if the part
    begins in the body of a long table."""

    number: int
    text: str
    char_start: int
    char_end: int
    page: int | None
    page_end: int | None
    heading_path: tuple[str, ...]


class Span(NamedTuple):
    """The offsets of a passage; `header` is the header of the table that it continues."""

    start: int
    end: int
    header: str = ""


def split_into_passages(
    text: str,
    *,
    size: int,
    overlap: int,
    page_starts: Sequence[int] | None = None,
    headings: Sequence[HeadingLike] = (),
) -> list[Passage]:
    """Splits a text into passages of at most `size` characters, without white space at their ends.

    Raises TooManyPassages if there are more than MAX_PASSAGES.

    >>> passages = split_into_passages("One two.\\n\\nThree.", size=10, overlap=2, page_starts=[0, 10])
    >>> [(passage.text, passage.char_start, passage.page) for passage in passages]
    [('One two.', 0, 1), ('Three.', 10, 2)]
    """
    if size < 2 or not 0 <= overlap < size:
        raise ValueError("The size must be at least 2. The overlap must be smaller than the size.")
    return [
        Passage(
            number=number,
            text=header + text[start:end],
            char_start=start,
            char_end=end,
            page=bisect_right(page_starts, start) if page_starts else None,
            page_end=bisect_right(page_starts, end - 1) if page_starts else None,
            heading_path=find_heading_path(text, start, end, headings),
        )
        for number, (start, end, header) in enumerate(passage_spans(text, size, overlap, headings))
    ]


def indexed_text(heading_path: Sequence[str], text: str) -> str:
    """Returns the text to embed and index: the headings, which give the topic, followed by the passage.

    >>> indexed_text(["Printers", "Paper"], "Open tray 2.")
    'Printers\\nPaper\\nOpen tray 2.'
    """
    return "\n".join([*heading_path, text])


def passage_spans(text: str, size: int, overlap: int, headings: Sequence[HeadingLike] = ()) -> list[Span]:
    tables = list(find_tables(text))
    untrimmed_spans: list[Span] = []
    for start, end in section_spans(len(text), [heading.offset for heading in headings], size):
        if end - start <= size:
            untrimmed_spans.append(Span(start, end))
            continue
        title_length = end_of_titles(text, start, end, headings) - start
        # A title stays with the text below it, even if that is longer than a passage.
        if title_length > size // 2 or title_length + overlap >= size:
            title_length = 0
        parts = split_section(text, start + title_length, end, size - title_length, overlap, tables)
        untrimmed_spans += [parts[0]._replace(start=start), *parts[1:]] if parts else [Span(start, end)]
    spans: list[Span] = []
    for span in (strip_span(text, span) for span in untrimmed_spans):
        # After trimming, a passage may lie entirely within its neighbor; it is then omitted.
        if span.start >= span.end or (spans and span.end <= spans[-1].end):
            continue
        if spans and span.start == spans[-1].start:
            spans.pop()
        spans.append(span)
    if len(spans) > MAX_PASSAGES:
        raise TooManyPassages(
            f"The text would be split into more than {MAX_PASSAGES:,} passages. Send it as several documents."
        )
    return spans


def section_spans(length: int, heading_offsets: Sequence[int], size: int) -> list[tuple[int, int]]:
    """Returns the spans of the sections. Neighbors are joined while they fit into one passage.

    No passage therefore begins with the end of one section and continues with the next.

    >>> section_spans(100, [0, 30, 45, 90], 50)
    [(0, 45), (45, 90), (90, 100)]
    """
    starts = sorted({0, *(offset for offset in heading_offsets if offset < length)})
    spans: list[tuple[int, int]] = []
    for start, end in pairwise([*starts, length]):
        if spans and (end - spans[-1][0] <= size or start - spans[-1][0] < size // SHORT_SECTION_DIVISOR):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans


def end_of_titles(text: str, start: int, end: int, headings: Sequence[HeadingLike]) -> int:
    """Returns the offset after the titles at the beginning of a section."""
    position = start
    first, last = bisect_left(headings, start, key=heading_offset), bisect_left(headings, end, key=heading_offset)
    for heading in headings[first:last]:
        title = heading.path[-1] if heading.path else ""
        title_start = text.find(title, heading.offset, heading.offset + len(title) + MAX_MARKUP_LENGTH) if title else -1
        if title_start < 0 or text[position : heading.offset].strip():
            break
        position = title_start + len(title)
        while position < end and text[position] in TITLE_MARKUP:
            position += 1
    return position


def find_heading_path(text: str, start: int, end: int, headings: Sequence[HeadingLike]) -> tuple[str, ...]:
    """Returns the headings that apply to the whole passage, ignoring titles without text below them."""
    first = bisect_right(headings, start, key=heading_offset)
    next_headings = headings[first : bisect_right(headings, end - 1, key=heading_offset)]
    paths = [tuple(headings[first - 1].path) if first else (), *[tuple(heading.path) for heading in next_headings]]
    borders = pairwise([start, *[heading.offset for heading in next_headings], end])
    paths_with_text = [
        path for path, (begin, stop) in zip(paths, borders, strict=True) if has_text(text[begin:stop], path)
    ]
    shared_levels = takewhile(lambda level: len(set(level)) == 1, zip(*paths_with_text, strict=False))
    return tuple(level[0] for level in shared_levels) if paths_with_text else paths[-1]


def has_text(section: str, path: tuple[str, ...]) -> bool:
    """Whether a section contains more than its title.

    >>> has_text("## *Signals* ##\\n\\n", ("Upgrade", "Signals")), has_text("Signals\\nHUP", ("Signals",))
    (False, True)
    >>> has_text("Text", ("",))
    True
    """
    before, _, after = section.partition((path and path[-1]) or "\0")
    return bool(before.strip(TITLE_MARKUP) or after.strip(TITLE_MARKUP))


def split_section(text: str, start: int, end: int, size: int, overlap: int, tables: Sequence[Table]) -> list[Span]:
    """Splits a section. A table that is longer than a passage is split separately, and its header is repeated."""
    spans: list[Span] = []
    for table in tables[bisect_left(tables, (start,)) : bisect_left(tables, (end,))]:
        table_end = min(table.end, end)
        # A short text before the table stays with it.
        table_start = start if table.start - start < size // SHORT_SECTION_DIVISOR else table.start
        row_size = size - (table.body_start - table_start)
        # A longer header would leave too little room for the rows.
        if table_end - table_start <= size or row_size < size // 2:
            continue
        spans += split_text(text, start, table_start, size, overlap)
        first, *others = split_text(text, table.body_start, table_end, row_size, min(overlap, row_size // 2))
        header = text[table.start : table.body_start]
        spans += [first._replace(start=table_start), *[span._replace(header=header) for span in others]]
        start = table_end
    return spans + split_text(text, start, end, size, overlap)


def split_text(text: str, start: int, end: int, size: int, overlap: int) -> list[Span]:
    if start >= end:
        return []
    splitter = splitter_class()(
        # The last separator always matches, so no part exceeds the size.
        separators=[*SEPARATORS, f"(?s:.{{1,{max(1, min(MAX_WORD_LENGTH, size // 4))}}})"],
        is_separator_regex=True,
        chunk_size=size,
        chunk_overlap=overlap,
    )
    splitter.position = start
    splitter.split_text(text[start:end])
    return [Span(*span) for span in splitter.spans]


class TooManyPassages(ValueError):
    """The text would be split into more passages than one document may have."""


def strip_span(text: str, span: Span) -> Span:
    """Trims the white space at both ends of a span.

    >>> strip_span("a  b c", Span(1, 5))
    Span(start=3, end=4, header='')
    """
    content = text[span.start : span.end]
    start, end = span.start + len(content) - len(content.lstrip()), span.start + len(content.rstrip())
    return span._replace(start=start, end=end)


@cache
def splitter_class() -> Any:
    """Returns a subclass of LangChain's splitter that merges the parts itself and tracks their offsets.

    To find offsets, the library searches the text for each passage (`add_start_index`). In repetitive text, it can find
    an earlier occurrence, so that some text is in no passage. Its merging also takes quadratic time for short words.
    The subclass splits texts at the same places.
    """
    # This import takes 0.4 s and 28 MB, so it is left to the processes that load documents.
    from langchain_text_splitters import RecursiveCharacterTextSplitter  # noqa: PLC0415

    class OffsetTrackingSplitter(RecursiveCharacterTextSplitter):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.spans: list[tuple[int, int]] = []
            self.position = 0

        def _merge_splits(self, splits: Iterable[str], separator: str) -> list[str]:
            """The library passes all parts in order and keeps separators, so their lengths give the offsets."""
            lengths = [len(part) for part in splits]
            self.position = merge_parts(lengths, self.position, self._chunk_size, self._chunk_overlap, self.spans)
            return []

    return OffsetTrackingSplitter


def merge_parts(lengths: Sequence[int], position: int, size: int, overlap: int, spans: list[tuple[int, int]]) -> int:
    """Joins neighboring parts into passages; each starts with the last parts of the previous one, up to `overlap`.

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
