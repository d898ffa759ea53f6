"""Collects the text of a parser: cleaned, limited, with the offsets of pages and headings."""

import re
from collections.abc import Iterable
from typing import Any

from .failures import ParserRefused

PARAGRAPH = "\n\n"
LINE = "\n"
# Chosen: with longer headings, the passage itself would be the smaller part of the indexed text.
MAX_HEADING_LENGTH = 200
MAX_HEADINGS = 20_000

SURROGATE = re.compile("[\ud800-\udfff]")
# Invisible characters, some of which `strip` does not remove.
INVISIBLE = re.compile("[\\s\u200b-\u200f\u2060\ufeff\u00ad]+")


class TextWriter:
    """Collects blocks of text and the gaps between them."""

    def __init__(self, max_characters: int) -> None:
        self.max_characters = max_characters
        self.parts: list[str] = []
        self.length = 0
        self.page_starts: list[int] | None = None
        # Offset, level (1 is the outermost), title.
        self.headings: list[tuple[int, int, str]] = []
        self.warnings: list[str] = []
        self.pending_pages = 0

    def add(self, block: str, gap: str = PARAGRAPH) -> None:
        """Write a block after `gap`. White space alone is left out."""
        block = self.cleaned(block)
        if not INVISIBLE.fullmatch(block) and block:
            self.write(gap if self.length else "")
            self.place_pages()
            self.write(block)

    def add_table(self, rows: Iterable[Iterable[str]]) -> None:
        """Write each row as a line, its cells separated by bars; rows without text are left out."""
        gap = PARAGRAPH
        for row in rows:
            cells = [" ".join(cell.split()) for cell in row]
            if any(cells):
                self.add(" | ".join(cells), gap)
                gap = LINE

    def add_verbatim(self, text: str) -> None:
        self.write(self.cleaned(text))

    def page(self) -> None:
        if self.page_starts is None:
            self.page_starts = []
        self.pending_pages += 1

    def heading(self, level: int, title: str, *, is_written: bool = True) -> None:
        plain_title = " ".join(self.cleaned(title).split())
        if not plain_title:
            return
        if is_written:
            self.write(PARAGRAPH if self.length else "")
            self.place_pages()
        self.mark(self.length if is_written or not self.length else self.length + len(PARAGRAPH), level, plain_title)
        if is_written:
            self.write(self.cleaned(title.strip()))

    def mark(self, offset: int, level: int, title: str) -> None:
        if len(self.headings) < MAX_HEADINGS:
            self.headings.append((offset, level, title[:MAX_HEADING_LENGTH]))
        else:
            self.warn(f"Only the first {MAX_HEADINGS} headings were kept as headings.")

    def warn(self, warning: str) -> None:
        if warning not in self.warnings:
            self.warnings.append(warning)

    def place_pages(self) -> None:
        if self.page_starts is not None:
            self.page_starts += [self.length] * self.pending_pages
            self.pending_pages = 0

    def write(self, text: str) -> None:
        self.length += len(text)
        if self.length > self.max_characters:
            raise ParserRefused("limit_characters", f"The file holds more than {self.max_characters} characters.")
        self.parts.append(text)

    def cleaned(self, text: str) -> str:
        """The text without characters that PostgreSQL cannot store."""
        if "\0" in text:
            text = text.replace("\0", "")
            self.warn("NUL characters were removed.")
        if SURROGATE.search(text):
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        if SURROGATE.search(text):  # unpaired surrogates, after the pairs were joined
            text = SURROGATE.sub("", text)
            self.warn("Unpaired surrogates were removed.")
        return text

    def answer(self) -> dict[str, Any]:
        """The result, as the child process sends it. White space alone counts as no text."""
        self.place_pages()
        text = "".join(self.parts)
        if INVISIBLE.fullmatch(text):
            text = ""
        starts = self.page_starts if text or self.page_starts is None else [0] * len(self.page_starts)
        return {
            "text": text,
            "page_starts": starts,
            "headings": [heading for heading in self.headings if heading[0] < len(text)],
            "warnings": self.warnings,
        }
