"""Markdown: the unchanged text, and the offsets of its headings."""

import re
from collections.abc import Iterator
from typing import Any

from ..common.text_writer import TextWriter
from .plain import preload as preload
from .plain import write_with_headings

ATX_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]")
CODE_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
HEADING_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
# A line that begins like this is not a paragraph, so a line of dashes below it does not make it a heading.
NOT_A_PARAGRAPH = re.compile(r"\s*$| {4}|\t| {0,3}([#>|]|[-*+] |\d+[.)] |<)")
# Longer lines are not headings, and the patterns would be slow.
MAX_EXAMINED_LENGTH = 1000
INLINE_MARKUP = re.compile(r"[*_`]+|!?\[([^\]\n]{0,300})\]\([^)\n]{0,2000}\)")


def parse(data: bytes, writer: TextWriter, limits: dict[str, Any]) -> None:
    write_with_headings(data, writer, find_headings)


def find_headings(content: str) -> Iterator[tuple[int, int, str]]:
    """Yields the offset, level and title of each heading.

    >>> list(find_headings("# One\\n\\nTwo\\n---\\n```\\n# no\\n```\\n### *Three* ###"))
    [(0, 1, 'One'), (7, 2, 'Two'), (28, 3, 'Three')]
    """
    fence, previous_line, offset = "", "", 0
    previous_offset = 0
    is_front_matter = False
    for number, full_line in enumerate(content.splitlines(keepends=True)):
        line = full_line.rstrip("\r\n")[:MAX_EXAMINED_LENGTH]
        if is_front_matter or (number == 0 and line.rstrip() == "---"):
            is_front_matter = number == 0 or line.rstrip() not in ("---", "...")
            line = ""
        elif fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            line = ""
        elif opening_fence := CODE_FENCE.match(line):
            fence, line = opening_fence[1], ""
        elif (atx := ATX_HEADING.match(line)) and (title := plain_title(strip_closing_marks(line[atx.end() :]))):
            yield offset, len(atx[1]), title
        elif (
            (underline := HEADING_UNDERLINE.match(line))
            and not NOT_A_PARAGRAPH.match(previous_line)
            and (title := plain_title(previous_line))
        ):
            yield previous_offset, 1 if underline[1].startswith("=") else 2, title
            line = ""
        previous_line, previous_offset = line, offset
        offset += len(full_line)


def strip_closing_marks(title: str) -> str:
    """
    >>> strip_closing_marks("C# ##"), strip_closing_marks("C#")
    ('C# ', 'C#')
    """
    title = title.rstrip()
    bare_title = title.rstrip("#")
    return bare_title if bare_title != title and bare_title.endswith((" ", "\t")) else title


def plain_title(title: str) -> str:
    """Removes emphasis from a title, and replaces links by their text.

    >>> plain_title("The **big** [manual](http://example.com)")
    'The big manual'
    """
    return " ".join(INLINE_MARKUP.sub(lambda match: match[1] or "", title).split())
