"""Finds the headings of a PDF file: those of its outline, or else lines in larger type."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from .lines import Document, Line, OutlineEntry, Page

# Chosen by trial: headings are at least this much larger than the text, and few lines long.
MIN_RELATIVE_SIZE = 1.15
MAX_HEADING_LINES = 4
MAX_HEADING_CHARACTERS = 200
MAX_LEVELS = 6
# If more of the text is in large type, its size does not mark headings.
MAX_LARGE_SHARE = 0.3
MIN_OUTLINE_ENTRIES = 2
NOT_ALPHANUMERIC = re.compile(r"[\W_]+")
# The letters and digits before a title: 12, a1, chapter3, iv.
SECTION_NUMBER = re.compile(r"\w{0,20}\d|[a-z]|[ivxl]{1,6}")
MAX_NUMBER_LENGTH = 20
# A title is compared with the lines that contain its first characters.
TITLE_START = 4
# Titles are looked for in the first lines of a page only, because a hostile file can have many of both.
MAX_SEARCHED_LINES = 300
WORD = re.compile(r"[^\W\d_]{2}")

# By the index of its first line: level, number of lines.
PageHeadings = dict[int, tuple[int, int]]


def body_size_of(pages: Sequence[Page]) -> float:
    """Returns the type size of most of the text, 0 if sizes are unknown."""
    characters: Counter[float] = Counter()
    for page in pages:
        for line in page.lines:
            characters[line.size] += len(line.text)
    del characters[0.0]
    return max(characters, key=characters.__getitem__, default=0.0)


def headings_by_size(pages: Sequence[Page], body_size: float) -> list[PageHeadings]:
    candidates = [list(large_lines(page, body_size)) for page in pages]
    large_length = sum(len(line.text) for blocks in candidates for _, lines in blocks for line in lines)
    if large_length > MAX_LARGE_SHARE * sum(len(line.text) for page in pages for line in page.lines):
        return [{} for _ in pages]
    sizes = sorted({lines[0].size for blocks in candidates for _, lines in blocks}, reverse=True)
    levels = {size: min(level, MAX_LEVELS) for level, size in enumerate(sizes, 1)}
    return [{first: (levels[lines[0].size], len(lines)) for first, lines in blocks} for blocks in candidates]


def large_lines(page: Page, body_size: float) -> Iterator[tuple[int, list[Line]]]:
    """Yields consecutive lines of the same large size, with the index of the first."""
    index = 0
    for size, group in groupby(page.lines, key=attrgetter("size")):
        lines = list(group)
        text = "".join(line.text for line in lines)
        is_large = body_size > 0 and size >= body_size * MIN_RELATIVE_SIZE
        is_short = len(lines) <= MAX_HEADING_LINES and len(text) <= MAX_HEADING_CHARACTERS
        if is_large and is_short and WORD.search(text):
            yield index, lines
        index += len(lines)


def headings_of_outline(document: Document) -> tuple[list[PageHeadings], list[list[OutlineEntry]]]:
    """Returns the headings whose lines are found on their pages, and for each page the other entries."""
    found: list[PageHeadings] = [{} for _ in document.pages]
    others: list[list[OutlineEntry]] = [[] for _ in document.pages]
    if len(document.outline) < MIN_OUTLINE_ENTRIES:
        return found, others
    texts: dict[int, list[str]] = {}
    for entry in document.outline:
        index = entry.page_number - 1
        if index not in texts:
            texts[index] = [plain(line.text) for line in document.pages[index].lines[:MAX_SEARCHED_LINES]]
        places = [place for place in find_title(texts[index], plain(entry.title)) if place[0] not in found[index]]
        if places:
            # A running head may have the same text as the heading below it, in smaller type.
            sizes = [document.pages[index].lines[first].size for first, _ in places]
            first, count = places[sizes.index(max(sizes))]
            found[index][first] = (entry.level, count)
        else:
            others[index].append(entry)
    return found, others


def find_title(lines: Sequence[str], title: str) -> Iterator[tuple[int, int]]:
    """Yields the index and number of lines with this title, which may have a printed number before it.

    >>> list(find_title(["text", "12along", "title", "end"], "alongtitle"))
    [(1, 2)]
    >>> list(find_title(["themethod", "imethod"], "method"))
    [(1, 1)]
    """
    for index, text in enumerate(lines):
        if not text or not title or title[:TITLE_START] not in text:
            continue
        for count in range(1, MAX_HEADING_LINES + 1):
            if text == title or (text.endswith(title) and SECTION_NUMBER.fullmatch(text.removesuffix(title))):
                yield index, count
                break
            if len(text) > len(title) + MAX_NUMBER_LENGTH or index + count >= len(lines):
                break
            text += lines[index + count]


def plain(text: str) -> str:
    return NOT_ALPHANUMERIC.sub("", text).casefold()
