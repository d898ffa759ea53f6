"""Finds Markdown tables in a text, so that a long one can be split into passages that repeat its header."""

import re
from collections.abc import Iterator
from typing import NamedTuple

# Possessive quantifiers prevent backtracking, so the time is linear in the length.
TABLE = re.compile(r"^(\|.*\n\|[ :|-]*+\r?\n)(?:\|.*+\n?+)++", re.MULTILINE)
VISIBLE_CHARACTER = re.compile(r"[^\s|:-]")


class Table(NamedTuple):
    """Offsets in the text; the body follows the header and its line of dashes."""

    start: int
    body_start: int
    end: int


def find_tables(text: str) -> Iterator[Table]:
    r"""Yields the tables with a header that is not empty.

    >>> list(find_tables("Prices\n\n| Kind | Price |\n|---|---|\n| a | 1 |\n| b | 2 |\n\n| | |\n|---|---|\n| c | 3 |"))
    [Table(start=8, body_start=35, end=55)]
    """
    for match in TABLE.finditer(text):
        header = match[1].splitlines()
        if "-" in header[1] and VISIBLE_CHARACTER.search(header[0]):
            yield Table(match.start(), match.end(1), match.end())
