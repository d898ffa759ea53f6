"""Headings as places to cut at, and the headings of a passage."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Protocol

# What is shorter than a fifth of a passage is no passage of its own before a long section: a title with nothing below
# it, or one line that leads over.
SHORT = 5
# What Markdown puts around a title.
MARKS = " \t\n#=-*_`~"
MOST_MARKS = 20


class HeadingLike(Protocol):
    @property
    def offset(self) -> int: ...
    @property
    def path(self) -> tuple[str, ...]: ...


def sections(length: int, heading_offsets: Sequence[int], size: int) -> list[tuple[int, int]]:
    """Where to cut first: neighbours are put together while they fit in a passage, and one that is longer stands by
    itself, so that no passage begins with the end of one section and goes on with the next.

    >>> sections(100, [0, 30, 45, 90], 50)
    [(0, 45), (45, 90), (90, 100)]
    """
    starts = sorted({0, *(each for each in heading_offsets if each < length)})
    found: list[tuple[int, int]] = []
    for start, end in pairwise([*starts, length]):
        if found and (end - found[-1][0] <= size or start - found[-1][0] < size // SHORT):
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def below_titles(text: str, start: int, end: int, headings: Sequence[HeadingLike], offsets: Sequence[int]) -> int:
    """Where a section goes on below the titles that it begins with."""
    below = start
    for number in range(bisect_left(offsets, start), bisect_left(offsets, end)):
        title = headings[number].path[-1] if headings[number].path else ""
        begins = text.find(title, offsets[number], offsets[number] + len(title) + MOST_MARKS) if title else -1
        if begins < 0 or text[below : offsets[number]].strip():
            break
        below = begins + len(title)
        while below < end and text[below] in MARKS:
            below += 1
    return below


def path_of(
    text: str, start: int, end: int, headings: Sequence[HeadingLike], offsets: Sequence[int]
) -> tuple[str, ...]:
    """The headings that all of a passage stands under; a title with nothing below it does not count.

    `offsets` are those of the headings: a text has many passages.
    """
    first, last = bisect_right(offsets, start) - 1, bisect_right(offsets, end - 1) - 1
    paths = [tuple(headings[number].path) if number >= 0 else () for number in range(first, last + 1)]
    borders = pairwise([start, *offsets[first + 1 : last + 1], end])
    told = [path for path, (begin, stop) in zip(paths, borders, strict=True) if says_something(text[begin:stop], path)]
    shared = takewhile(lambda level: len(set(level)) == 1, zip(*told, strict=False))
    return tuple(level[0] for level in shared) if told else paths[-1]


def says_something(section: str, path: tuple[str, ...]) -> bool:
    """
    >>> says_something("## *Signals* ##\\n\\n", ("Upgrade", "Signals")), says_something("Signals\\nHUP", ("Signals",))
    (False, True)
    >>> says_something("Text", ("",))
    True
    """
    before, _, after = section.partition((path and path[-1]) or "\0")
    return bool(before.strip(MARKS) or after.strip(MARKS))
