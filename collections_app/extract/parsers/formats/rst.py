"""reStructuredText: the unchanged text, and the offsets of its headings.

docutils was ruled out: it turns the directives and roles of Sphinx into error messages, and takes 5 s for a megabyte.
"""

import re
from collections.abc import Iterator
from typing import Any

from ..common.text_writer import TextWriter
from .plain import preload as preload
from .plain import write_with_headings

# A line of one repeated punctuation character.
ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,}+")
INLINE_MARKUP = re.compile(r":[\w:.+-]{1,100}:(?=`)|[`*|]+")
# Longer lines are not examined.
MAX_LINE_LENGTH = 1000


def parse(data: bytes, writer: TextWriter, limits: dict[str, Any]) -> None:
    write_with_headings(data, writer, find_headings)


def find_headings(content: str) -> Iterator[tuple[int, int, str]]:
    """Yields the offset, level and title of each heading. The order of the adornments gives their levels.

    >>> list(find_headings("===\\nTop\\n===\\n\\nPart\\n----\\n\\n*Sub*\\n~~~~~\\n\\nNext\\n----\\n\\n----\\n"))
    [(4, 1, 'Top'), (13, 2, 'Part'), (24, 3, 'Sub'), (37, 2, 'Next')]
    """
    adornments: list[tuple[str, bool]] = []
    above, title, title_offset, offset = "", "", 0, 0
    for full_line in content.splitlines(keepends=True):
        line = full_line[:MAX_LINE_LENGTH].rstrip()
        has_overline = above == line
        if ADORNMENT.fullmatch(line) and is_title(title, line) and (has_overline or not (above or title[0].isspace())):
            adornment = (line[0], has_overline)
            if adornment not in adornments:
                adornments.append(adornment)
            yield title_offset, adornments.index(adornment) + 1, plain_title(title)
            line = ""
        above, title, title_offset = title, line, offset
        offset += len(full_line)


def is_title(line: str, underline: str) -> bool:
    return 0 < len(line.strip()) <= len(underline) and not ADORNMENT.fullmatch(line)


def plain_title(title: str) -> str:
    """
    >>> plain_title("The :func:`open` *function*")
    'The open function'
    """
    return " ".join(INLINE_MARKUP.sub("", title).split())
