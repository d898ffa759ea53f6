"""The lines of a page, with their positions and type sizes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

# The characters that pdfium returns for a hyphen at the end of a line.
LINE_END_HYPHENS = "\x02\ufffe"


@dataclass(slots=True)
class Segment:
    """A part of a line between wide gaps, perhaps a cell of a table. Positions are in points, from the bottom left."""

    text: str
    left: float
    right: float
    baseline: float


@dataclass(slots=True)
class Line:
    """A line. `size` is its type size: 0 if it is unknown or the line is not horizontal."""

    text: str
    size: float = 0.0
    # Distances of the baseline from the edges of the page, in points.
    from_top: float = 0.0
    from_bottom: float = 0.0
    segments: Sequence[Segment] = ()


@dataclass(slots=True)
class Page:
    lines: list[Line]
    label: str = ""
    # An image covers a large part of the page.
    has_image: bool = False
    is_readable: bool = True


@dataclass(slots=True)
class OutlineEntry:
    level: int
    title: str
    page_number: int


@dataclass(slots=True)
class Document:
    pages: list[Page] = field(default_factory=list)
    outline: list[OutlineEntry] = field(default_factory=list)


def lines_without_positions(text: str) -> list[Line]:
    """Returns the lines of a text in reading order, as if they were on a page with even line spacing."""
    texts = text.split("\n")
    height = 12.0
    return [
        Line(line, from_top=number * height, from_bottom=(len(texts) - 1 - number) * height)
        for number, line in enumerate(texts)
    ]


def page_ranges(numbers: Iterable[int], max_ranges: int = 20) -> str:
    """Names pages in a message.

    >>> page_ranges([2]), page_ranges([2, 3, 4, 7]), page_ranges(range(1, 9, 2), max_ranges=2)
    ('page 2', 'pages 2-4, 7', 'pages 1, 3 and others')
    """
    numbers = sorted(numbers)
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    names = ", ".join("-".join(map(str, pages)) for pages in ranges[:max_ranges])
    return f"page{'s' if len(numbers) > 1 else ''} {names}{' and others' if len(ranges) > max_ranges else ''}"
