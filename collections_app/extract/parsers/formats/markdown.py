"""Markdown: the unchanged text, and the offsets of its headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..common import decoding
from ..common.text_writer import TextWriter
from .plain import read

ATX = re.compile(r" {0,3}(#{1,6})[ \t]")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
# A line that begins so is no paragraph, so a line of dashes below it underlines nothing.
NO_PARAGRAPH = re.compile(r"\s*$| {4}|\t| {0,3}([#>|]|[-*+] |\d+[.)] |<)")
# No heading is longer, and patterns take their time with what is.
LONGEST_LOOKED_AT = 1000
MARKUP = re.compile(r"[*_`]+|!?\[([^\]\n]{0,300})\]\([^)\n]{0,2000}\)")


def parse(data: bytes, text: TextWriter, limits: dict[str, Any]) -> None:
    content = text.cleaned(read(data))
    text.add_as_it_is(content)
    for offset, level, title in headings(content):
        text.mark(offset, level, title)


def headings(content: str) -> Iterator[tuple[int, int, str]]:
    """Offset, level and title of each.

    >>> list(headings("# One\\n\\nTwo\\n---\\n```\\n# no\\n```\\n### *Three* ###"))
    [(0, 1, 'One'), (7, 2, 'Two'), (28, 3, 'Three')]
    """
    fence, before, offset = "", "", 0
    before_offset = 0
    is_front_matter = False
    for number, whole in enumerate(content.splitlines(keepends=True)):
        line = whole.rstrip("\r\n")[:LONGEST_LOOKED_AT]
        if is_front_matter or (number == 0 and line.rstrip() == "---"):
            is_front_matter = number == 0 or line.rstrip() not in ("---", "...")
            line = ""
        elif fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            line = ""
        elif opened := FENCE.match(line):
            fence, line = opened[1], ""
        elif (found := ATX.match(line)) and (title := shown(without_end(line[found.end() :]))):
            yield offset, len(found[1]), title
        elif (under := UNDERLINE.match(line)) and not NO_PARAGRAPH.match(before) and (title := shown(before)):
            yield before_offset, 1 if under[1].startswith("=") else 2, title
            line = ""
        before, before_offset = line, offset
        offset += len(whole)


def without_end(title: str) -> str:
    """
    >>> without_end("C# ##"), without_end("C#")
    ('C# ', 'C#')
    """
    title = title.rstrip()
    bare = title.rstrip("#")
    return bare if bare != title and bare.endswith((" ", "\t")) else title


def shown(title: str) -> str:
    """Without emphasis, and links as their words.

    >>> shown("The **big** [manual](http://example.com)")
    'The big manual'
    """
    return " ".join(MARKUP.sub(lambda found: found[1] or "", title).split())


def prepare() -> None:
    decoding.prepare()
