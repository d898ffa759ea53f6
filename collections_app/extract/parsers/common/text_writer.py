"""Collects the text that a parser extracts, within limits, and the offsets of its pages and headings."""

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

from .failures import UnreadableFile

PARAGRAPH_GAP = "\n\n"
LINE_GAP = "\n"
# Chosen: with longer headings, the passage itself would be the smaller part of the indexed text.
MAX_HEADING_LENGTH = 200
MAX_HEADINGS = 20_000
# The maximum number of rows of a worksheet.
MAX_ROWS = 1_048_576

SURROGATES = re.compile("[\ud800-\udfff]")
# Invisible characters, some of which `strip` does not remove.
INVISIBLE_CHARACTERS = re.compile("[\\s\u200b-\u200f\u2060\ufeff\u00ad]+")


class TextWriter:
    def __init__(self, max_characters: int) -> None:
        self.max_characters = max_characters
        self.parts: list[str] = []
        self.length = 0
        self.page_starts: list[int] | None = None
        # Offset, level (1 is the outermost), title.
        self.headings: list[tuple[int, int, str]] = []
        self.warnings: list[str] = []
        self.pending_page_count = 0

    def add(self, block: str, gap: str = PARAGRAPH_GAP) -> None:
        """Write a block after `gap`, unless it has no visible characters."""
        block = self.clean_text(block)
        if not INVISIBLE_CHARACTERS.fullmatch(block) and block:
            self.write(gap if self.length else "")
            self.record_page_starts()
            self.write(block)

    def add_table(self, rows: Iterable[Iterable[str]]) -> None:
        """Write each row as a line, its cells separated by bars; skip rows without text."""
        gap = PARAGRAPH_GAP
        for row in rows:
            cells = [" ".join(cell.split()) for cell in row]
            if any(cells):
                self.add(" | ".join(cells), gap)
                gap = LINE_GAP

    def add_verbatim(self, text: str) -> None:
        self.write(self.clean_text(text))

    def begin_page(self) -> None:
        if self.page_starts is None:
            self.page_starts = []
        self.pending_page_count += 1

    def add_heading(self, level: int, title: str) -> None:
        title = self.clean_text(title).strip()
        if title:
            self.write(PARAGRAPH_GAP if self.length else "")
            self.record_page_starts()
            self.record_heading(self.length, level, " ".join(title.split()))
            self.write(title)

    def record_heading(self, offset: int, level: int, title: str) -> None:
        if len(self.headings) < MAX_HEADINGS:
            self.headings.append((offset, level, title[:MAX_HEADING_LENGTH]))
        else:
            self.warn(f"Only the first {MAX_HEADINGS:,} headings were recognized.")

    def warn(self, warning: str) -> None:
        if warning not in self.warnings:
            self.warnings.append(warning)

    def record_page_starts(self) -> None:
        if self.page_starts is not None:
            self.page_starts += [self.length] * self.pending_page_count
            self.pending_page_count = 0

    def write(self, text: str) -> None:
        self.length += len(text)
        if self.length > self.max_characters:
            raise UnreadableFile(
                "limit_characters", f"The file contains more than {self.max_characters:,} characters of text."
            )
        self.parts.append(text)

    def clean_text(self, text: str) -> str:
        """Return the text without characters that PostgreSQL cannot store."""
        if "\0" in text:
            text = text.replace("\0", "")
            self.warn("NUL characters were removed.")
        if SURROGATES.search(text):
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        if SURROGATES.search(text):  # unpaired surrogates, after the pairs were joined
            text = SURROGATES.sub("", text)
            self.warn("Unpaired surrogates were removed.")
        return text

    def result(self) -> dict[str, Any]:
        """Return the result that the child process sends. White space alone counts as no text."""
        self.record_page_starts()
        text = "".join(self.parts)
        if INVISIBLE_CHARACTERS.fullmatch(text):
            text = ""
        starts = self.page_starts if text or self.page_starts is None else [0] * len(self.page_starts)
        return {
            "text": text,
            "page_starts": starts,
            "headings": [heading for heading in self.headings if heading[0] < len(text)],
            "warnings": self.warnings,
        }


class TableWriter:
    """Writes rows of cells as lines that can be understood without the header row."""

    def __init__(self, writer: TextWriter, max_cells: int) -> None:
        self.writer = writer
        self.max_cells = max_cells
        self.cell_count = 0

    def add(self, rows: Iterable[Sequence[str]]) -> None:
        """Writes one table. Its first row gives the column names if it looks like a header."""
        column_names: list[str] | None = None
        gap = PARAGRAPH_GAP
        for row_number, row in enumerate(rows):
            self.count_cells(row, row_number)
            cells = [" ".join(cell.split()) for cell in row]
            if not any(cells):
                continue
            if column_names is None:
                column_names = cells if is_header(cells) else []
                self.writer.add(" | ".join(cells), gap)
            else:
                self.writer.add(format_row(column_names, cells), gap)
            gap = LINE_GAP

    def count_cells(self, row: Sequence[str], row_number: int) -> None:
        self.cell_count += sum(1 for cell in row if cell)
        if self.cell_count > self.max_cells:
            raise UnreadableFile("limit_cells", f"The file has more than {self.max_cells} cells.")
        if row_number >= MAX_ROWS:
            raise UnreadableFile("limit_cells", f"The file has more than {MAX_ROWS} rows.")


def is_header(cells: Sequence[str]) -> bool:
    """Whether a row looks like a header: several different cells without numbers.

    >>> is_header(["Name", "Age"]), is_header(["Ann", "42"]), is_header(["Name", "Name"]), is_header(["A title", ""])
    (True, False, False, False)
    """
    values = [cell for cell in cells if cell]
    return len(values) > 1 and len(set(values)) == len(values) and not any(is_number(cell) for cell in values)


def is_number(cell: str) -> bool:
    """
    >>> is_number("-1,234.50"), is_number("2024-05-01"), is_number("Room 7")
    (True, True, False)
    """
    return any(character.isdigit() for character in cell) and not any(character.isalpha() for character in cell)


def format_row(column_names: Sequence[str], cells: Sequence[str]) -> str:
    """
    >>> format_row(["Name", "Age"], ["Ann", "42", "tall"]), format_row([], ["Ann", "", "42"])
    ('Name: Ann; Age: 42; tall', 'Ann | 42')
    """
    if not column_names:
        return " | ".join(cell for cell in cells if cell)
    named_cells = zip_longest(column_names, cells, fillvalue="")
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in named_cells if cell)
