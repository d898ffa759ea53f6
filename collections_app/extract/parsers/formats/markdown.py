"""Markdown: the unchanged text, and the offsets of its headings."""

import re
from collections.abc import Iterator
from typing import Any

from ..common.text_writer import TextWriter
from .plain import prepare as prepare
from .plain import read

ATX = re.compile(r" {0,3}(#{1,6})[ \t]")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
# A line that begins like this is not a paragraph, so a line of dashes below it does not make it a heading.
NO_PARAGRAPH = re.compile(r"\s*$| {4}|\t| {0,3}([#>|]|[-*+] |\d+[.)] |<)")
# Longer lines are not headings, and the patterns would be slow.
MAX_EXAMINED = 1000
MARKUP = re.compile(r"[*_`]+|!?\[([^\]\n]{0,300})\]\([^)\n]{0,2000}\)")


def parse(data: bytes, text: TextWriter, limits: dict[str, Any]) -> None:
    content = text.cleaned(read(data))
    text.add_verbatim(content)
    for offset, level, title in headings(content):
        text.mark(offset, level, title)


def headings(content: str) -> Iterator[tuple[int, int, str]]:
    """The offset, level and title of each heading.

    >>> list(headings("# One\\n\\nTwo\\n---\\n```\\n# no\\n```\\n### *Three* ###"))
    [(0, 1, 'One'), (7, 2, 'Two'), (28, 3, 'Three')]
    """
    fence, before, offset = "", "", 0
    before_offset = 0
    is_front_matter = False
    for number, whole in enumerate(content.splitlines(keepends=True)):
        line = whole.rstrip("\r\n")[:MAX_EXAMINED]
        if is_front_matter or (number == 0 and line.rstrip() == "---"):
            is_front_matter = number == 0 or line.rstrip() not in ("---", "...")
            line = ""
        elif fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            line = ""
        elif opened := FENCE.match(line):
            fence, line = opened[1], ""
        elif (atx := ATX.match(line)) and (title := plain_title(without_closing(line[atx.end() :]))):
            yield offset, len(atx[1]), title
        elif (under := UNDERLINE.match(line)) and not NO_PARAGRAPH.match(before) and (title := plain_title(before)):
            yield before_offset, 1 if under[1].startswith("=") else 2, title
            line = ""
        before, before_offset = line, offset
        offset += len(whole)


def without_closing(title: str) -> str:
    """
    >>> without_closing("C# ##"), without_closing("C#")
    ('C# ', 'C#')
    """
    title = title.rstrip()
    bare = title.rstrip("#")
    return bare if bare != title and bare.endswith((" ", "\t")) else title


def plain_title(title: str) -> str:
    """The title without emphasis, and links as their text.

    >>> plain_title("The **big** [manual](http://example.com)")
    'The big manual'
    """
    return " ".join(MARKUP.sub(lambda match: match[1] or "", title).split())
