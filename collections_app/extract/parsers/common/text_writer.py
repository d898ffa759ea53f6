"""Collects the text of a parser: cleaned, limited, with the offsets of pages and headings."""

from __future__ import annotations

import re
from typing import Any

from .failures import ParserRefused

PARAGRAPH = "\n\n"
LINE = "\n"
# Chosen: more would make the passages' own text the smaller part of what is indexed.
LONGEST_HEADING = 200
MOST_HEADINGS = 20_000

SURROGATE = re.compile("[\ud800-\udfff]")
# Characters that show nothing and that `strip` does not know.
INVISIBLE = re.compile("[\\s\u200b-\u200f\u2060\ufeff\u00ad]+")


class TextWriter:
    """Blocks with what stands between them."""

    def __init__(self, max_characters: int) -> None:
        self.max_characters = max_characters
        self.parts: list[str] = []
        self.length = 0
        self.page_starts: list[int] | None = None
        # Offset, level from 1 (outermost) on, title.
        self.headings: list[tuple[int, int, str]] = []
        self.warnings: list[str] = []
        self.pages_to_come = 0

    def add(self, block: str, gap: str = PARAGRAPH) -> None:
        """Write a block, `gap` after the one before it. White space alone is left out."""
        block = self.cleaned(block)
        if not INVISIBLE.fullmatch(block) and block:
            self.write(gap if self.length else "")
            self.place_pages()
            self.write(block)

    def add_as_it_is(self, text: str) -> None:
        self.write(self.cleaned(text))

    def page(self) -> None:
        """What follows stands on the next page."""
        if self.page_starts is None:
            self.page_starts = []
        self.pages_to_come += 1

    def heading(self, level: int, title: str, *, is_written: bool = True) -> None:
        shown = " ".join(self.cleaned(title).split())
        if not shown:
            return
        if is_written:
            self.write(PARAGRAPH if self.length else "")
            self.place_pages()
        self.mark(self.length if is_written or not self.length else self.length + len(PARAGRAPH), level, shown)
        if is_written:
            self.write(self.cleaned(title.strip()))

    def mark(self, offset: int, level: int, title: str) -> None:
        """What stands from this offset on is under this heading."""
        if len(self.headings) < MOST_HEADINGS:
            self.headings.append((offset, level, title[:LONGEST_HEADING]))
        else:
            self.warn(f"Only the first {MOST_HEADINGS} headings were kept as headings.")

    def warn(self, warning: str) -> None:
        if warning not in self.warnings:
            self.warnings.append(warning)

    def place_pages(self) -> None:
        if self.page_starts is not None:
            self.page_starts += [self.length] * self.pages_to_come
            self.pages_to_come = 0

    def write(self, text: str) -> None:
        self.length += len(text)
        if self.length > self.max_characters:
            raise ParserRefused("limit_characters", f"The file holds more than {self.max_characters} characters.")
        self.parts.append(text)

    def cleaned(self, text: str) -> str:
        """Without what PostgreSQL cannot store."""
        if "\0" in text:
            text = text.replace("\0", "")
            self.warn("NUL characters were removed.")
        if SURROGATE.search(text):
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        if SURROGATE.search(text):  # still, after halves that belong together were put together
            text = SURROGATE.sub("", text)
            self.warn("Halves of surrogate pairs were removed.")
        return text

    def answer(self) -> dict[str, Any]:
        """White space alone is no text."""
        self.place_pages()
        text = "".join(self.parts)
        if INVISIBLE.fullmatch(text):
            text = ""
        starts = self.page_starts if text or self.page_starts is None else [0] * len(self.page_starts)
        return {
            "text": text,
            "page_starts": starts,
            "headings": [each for each in self.headings if each[0] < len(text)],
            "warnings": self.warnings,
        }
