"""Finds running heads and feet: lines that are repeated in the margins of pages, with counted page numbers."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from operator import attrgetter

from .lines import Line, Page

# Chosen: a head or foot has at most four lines. It is repeated on three pages, and some between may have another.
MAX_MARGIN_LINES = 4
# Relative to the height of the page.
MAX_MARGIN = 0.13
MIN_REPETITIONS = 3
MAX_PAGE_GAP = 4
# Lines with more numbers are rows of a table rather than heads.
MAX_NUMBERS = 4
POSITION_TOLERANCE = 4.0
AROUND_PAGE_NUMBER = " -\u2013\u2014|.[]()"
# Larger type belongs to titles, such as those of slides.
MAX_RELATIVE_SIZE = 1.15
NUMBER = re.compile(r"\d+|\b[ivxlc]+\b")
from_top = attrgetter("from_top")
ROMAN_DIGITS = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}


def remove_running_lines(pages: Sequence[Page], body_size: float) -> None:
    pages_by_key = defaultdict(list)
    candidates = [
        [(line, list(line_keys(line, number))) for line in margin_lines(page, body_size)]
        for number, page in enumerate(pages)
    ]
    for number, lines in enumerate(candidates):
        for key in {key for _, keys in lines for key in keys}:
            pages_by_key[key].append(number)
    repeated_keys = {key: set(repeated_pages(numbers)) for key, numbers in pages_by_key.items()}
    other_lines = []
    for number, (page, lines) in enumerate(zip(pages, candidates, strict=True)):
        removed_ids = {id(line) for line, keys in lines if any(number in repeated_keys[key] for key in keys)}
        removed_ids |= {id(line) for line, _ in lines if is_page_number(line, page)}
        other_lines.append([line for line in page.lines if id(line) not in removed_ids])
    # A file that has no other lines is, for example, a set of tickets. On scans, a library adds lines to all pages.
    has_other_text = any(line.text.strip() for page_lines in other_lines for line in page_lines)
    if has_other_text or any(page.has_image for page in pages):
        for page, page_lines in zip(pages, other_lines, strict=True):
            page.lines = page_lines


def is_page_number(line: Line, page: Page) -> bool:
    return len(page.lines) > 1 and line.text.strip(AROUND_PAGE_NUMBER) == page.label


def margin_lines(page: Page, body_size: float) -> list[Line]:
    lines = sorted((line for line in page.lines if line.text), key=from_top)
    lines = [
        line
        for line in lines
        if min(line.from_top, line.from_bottom) <= MAX_MARGIN * (line.from_top + line.from_bottom)
    ]
    outer_lines = [*lines[:MAX_MARGIN_LINES], *lines[MAX_MARGIN_LINES:][-MAX_MARGIN_LINES:]]
    return [line for line in outer_lines if line.size <= body_size * MAX_RELATIVE_SIZE]


def line_keys(line: Line, page_number: int) -> Iterator[tuple[object, ...]]:
    """Yields what the line has in common with the same head on other pages. Each number may be constant, or counted
    with the pages; otherwise rows of a long table would be taken for heads.

    >>> first, second = Line("Page 3 of 9"), Line("Page 4 of 9")
    >>> set(line_keys(first, 2)) & set(line_keys(second, 3))
    {('page # of #', 0, (('counted', 1), ('constant', 9)))}
    >>> set(line_keys(Line("12 Printers"), 2)) & set(line_keys(Line("Scanners 13"), 3))
    {('edge', 0, 10)}
    """
    text = " ".join(line.text.lower().split())
    numbers = [number_value(digits) for digits in NUMBER.findall(text)]
    if len(numbers) > MAX_NUMBERS:
        return
    form = NUMBER.sub("#", text)
    position = round(min(line.from_top, line.from_bottom) / POSITION_TOLERANCE)
    # The page number, beside the title of a chapter.
    if form.startswith("# ") or form == "#":
        yield "edge", position, numbers[0] - page_number
    if form.endswith(" #"):
        yield "edge", position, numbers[-1] - page_number
    if not numbers:
        yield form, position
        return
    for kinds in product(("constant", "counted"), repeat=len(numbers)):
        pairs = zip(kinds, numbers, strict=True)
        yield form, position, tuple((kind, n - page_number if kind == "counted" else n) for kind, n in pairs)


def number_value(digits: str) -> int:
    """
    >>> number_value("12"), number_value("xiv")
    (12, 14)
    """
    if digits.isdecimal():
        return int(digits[-9:])
    values = [ROMAN_DIGITS[digit] for digit in digits]
    return sum(
        -value if value < following else value for value, following in zip(values, [*values[1:], 0], strict=True)
    )


def repeated_pages(numbers: Sequence[int]) -> Iterator[int]:
    """Yields the pages in groups of at least three neighbors.

    >>> list(repeated_pages([0, 2, 4, 20, 21]))
    [0, 2, 4]
    """
    group: list[int] = []
    for number in numbers:
        if group and number - group[-1] > MAX_PAGE_GAP:
            yield from group if len(group) >= MIN_REPETITIONS else ()
            group = []
        group.append(number)
    yield from group if len(group) >= MIN_REPETITIONS else ()
