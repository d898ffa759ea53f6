"""Reads the output of the parser process, none of which is trusted."""

import json
from collections.abc import Iterable
from typing import Any

from .parsers.common.failures import DAMAGED
from .results import Extracted, Heading, Unreadable


def read(output: bytes, max_characters: int) -> Extracted:
    """Returns the extracted text; raises Unreadable with the child's message, or if its output is not valid."""
    try:
        result = json.loads(output)
        if "failed" in result:
            raise Unreadable(str(result["failed"])[:40], str(result["message"])[:300])
        return extracted(result, max_characters)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Unreadable("damaged", DAMAGED) from None


def extracted(result: dict[str, Any], max_characters: int) -> Extracted:
    text = result["text"]
    if not isinstance(text, str) or len(text) > max_characters:
        raise ValueError("no text")
    starts = result["page_starts"]
    return Extracted(
        text=text,
        page_starts=None if starts is None else ascending(starts, len(text)),
        headings=headings(result["headings"], len(text)),
        warnings=tuple(str(warning)[:300] for warning in result["warnings"][:100]),
    )


def ascending(offsets: Iterable[Any], end: int) -> tuple[int, ...]:
    """Returns the offsets; raises ValueError if they are not ascending positions of the text."""
    checked = tuple(offsets)
    if any(type(offset) is not int for offset in checked) or sorted(checked) != list(checked):
        raise ValueError("offsets")
    if checked and not 0 <= checked[0] <= checked[-1] <= end:
        raise ValueError("offsets")
    return checked


def headings(rows: Iterable[tuple[int, int, str]], end: int) -> tuple[Heading, ...]:
    """Adds to each heading the path of headings above it.

    >>> [heading.path for heading in headings([(0, 1, "A"), (5, 3, "B"), (7, 2, "C"), (9, 1, "D")], 10)]
    [('A',), ('A', 'B'), ('A', 'C'), ('D',)]
    """
    result: list[Heading] = []
    path: list[tuple[int, str]] = []
    for offset, level, title in rows:
        while path and path[-1][0] >= level:
            path.pop()
        path.append((level, str(title)))
        result.append(Heading(offset=offset, path=tuple(title for _, title in path)))
    ascending((heading.offset for heading in result), end)
    return tuple(result)
