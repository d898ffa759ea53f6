"""Reads the output of the parser process, none of which is trusted."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from .parsers.common.failures import DAMAGED
from .results import Extracted, Heading, Unreadable


def read(output: bytes, max_characters: int) -> Extracted:
    """The extracted text, or Unreadable with what the child says, or because it says nothing that makes sense."""
    try:
        answer = json.loads(output)
        if "failed" in answer:
            raise Unreadable(str(answer["failed"])[:40], str(answer["message"])[:300])
        return extracted(answer, max_characters)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Unreadable("damaged", DAMAGED) from None


def extracted(answer: dict[str, Any], max_characters: int) -> Extracted:
    text = answer["text"]
    if not isinstance(text, str) or len(text) > max_characters:
        raise ValueError("no text")
    starts = answer["page_starts"]
    return Extracted(
        text=text,
        page_starts=None if starts is None else ascending(starts, len(text)),
        headings=headings(answer["headings"], len(text)),
        warnings=tuple(str(each)[:300] for each in answer["warnings"][:100]),
    )


def ascending(offsets: Iterable[Any], end: int) -> tuple[int, ...]:
    """The offsets themselves, or ValueError when they do not follow one another within the text."""
    found = tuple(offsets)
    if any(type(each) is not int for each in found) or sorted(found) != list(found):
        raise ValueError("offsets")
    if found and not 0 <= found[0] <= found[-1] <= end:
        raise ValueError("offsets")
    return found


def headings(found: Iterable[tuple[int, int, str]], end: int) -> tuple[Heading, ...]:
    """Each with those it stands under: the nearest before it of a level further out, and theirs.

    >>> [each.path for each in headings([(0, 1, "A"), (5, 3, "B"), (7, 2, "C"), (9, 1, "D")], 10)]
    [('A',), ('A', 'B'), ('A', 'C'), ('D',)]
    """
    made: list[Heading] = []
    open_ones: list[tuple[int, str]] = []
    for offset, level, title in found:
        while open_ones and open_ones[-1][0] >= level:
            open_ones.pop()
        open_ones.append((level, str(title)))
        made.append(Heading(offset=offset, path=tuple(each for _, each in open_ones)))
    ascending((each.offset for each in made), end)
    return tuple(made)
