"""Divides a text into sections at its headings, and finds the heading path of a passage."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise, takewhile
from operator import attrgetter
from typing import Protocol

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
