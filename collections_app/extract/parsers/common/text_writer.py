"""Collects the text that a parser extracts, within limits, and the offsets of its pages and headings."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, takewhile
from typing import Any

from .failures import UnreadableFile, too_much_text_error

PARAGRAPH_GAP = "\n\n"
LINE_GAP = "\n"
# Chosen: with longer headings, the passage itself would be the smaller part of the indexed text.
MAX_HEADING_LENGTH = 200
MAX_HEADINGS = 20_000
# The maximum number of rows of a worksheet.
MAX_ROWS = 1_048_576
YEAR = re.compile(r"(19|20)\d\d")

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
        # As printed, if they are not the numbers of the pages from 1.
        self.page_labels: list[str] | None = None
        # Numbers of pages that are images without text.
        self.scanned_pages: list[int] = []
        self.warnings: list[str] = []
        self.pending_page_count = 0

    def add(self, block: str, gap: str = PARAGRAPH_GAP) -> None:
        """Write a block after `gap`, unless it has no visible characters."""
        block = self.clean_text(block)
        if not INVISIBLE_CHARACTERS.fullmatch(block) and block:
            self.write(gap if self.length else "")
            self.record_page_starts()
            self.write(block)

    def add_table(self, rows: Iterable[Sequence[str]], *, has_header: bool | None = None) -> None:
        """Write a Markdown table, without empty rows and columns. By default, its first row is the header if it looks
        like one; a table without a header has an empty one. Titles above a table become paragraphs, and a single row or
        column becomes lines."""
        visible_rows = [row for row in rows if any(map(str.strip, row))]
        title_count = sum(1 for _ in takewhile(is_title, visible_rows))
        body = visible_rows[title_count:]
        columns = sorted({index for row in body for index, cell in enumerate(row) if cell.strip()})
        if len(columns) < 2 or len(body) < 2:
            self.add_lines(" | ".join(filter(None, map(clean_cell, row))) for row in visible_rows)
            return
        self.add_lines(" ".join(map(clean_cell, row)) for row in visible_rows[:title_count])
        table_rows = ([clean_cell(row[index]) for index in columns if index < len(row)] for row in body)
        if has_header is None:
            has_header = is_header([clean_cell(cell) for cell in body[0]])
        header = next(table_rows) if has_header else []
        header += [""] * (len(columns) - len(header))
        self.add_lines(chain([table_line(header), "|" + "---|" * len(columns)], map(table_line, table_rows)))

    def add_lines(self, lines: Iterable[str]) -> None:
        gap = PARAGRAPH_GAP
        for line in lines:
            self.add(line, gap)
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
            raise too_much_text_error(self.max_characters)
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
            "page_labels": self.page_labels,
            "scanned_pages": self.scanned_pages,
            "warnings": self.warnings,
        }


class CellCounter:
    """Limits the cells and rows of the tables of a file while they are read."""

    def __init__(self, max_cells: int) -> None:
        self.max_cells = max_cells
        self.cell_count = 0

    def check(self, rows: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
        for row_number, row in enumerate(rows):
            self.cell_count += sum(1 for cell in row if cell)
            if self.cell_count > self.max_cells:
                raise UnreadableFile("limit_cells", f"The file has more than {self.max_cells} cells.")
            if row_number >= MAX_ROWS:
                raise UnreadableFile("limit_cells", f"The file has more than {MAX_ROWS} rows.")
            yield row


def clean_cell(cell: str) -> str:
    return " ".join(cell.split())


def table_line(cells: Sequence[str]) -> str:
    """
    >>> table_line(["a|b", "", "c"]), table_line(["", ""])
    ('| a\\\\|b |  | c |', '|  |  |')
    """
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def is_title(row: Sequence[str]) -> bool:
    """Whether only the first cell has text."""
    return bool(row[0].strip()) and not any(cell.strip() for cell in row[1:])


def is_header(cells: Sequence[str]) -> bool:
    """Whether a row looks like a header: several different short cells without numbers, apart from years.

    >>> is_header(["Name", "Age"]), is_header(["Ann", "42"]), is_header(["Name", "Name"]), is_header(["A title", ""])
    (True, False, False, False)
    >>> is_header(["", "2023", "2024"]), is_header(["Ann", "1999"])
    (True, False)
    """
    values = [cell for cell in cells if cell]
    numbers = [cell for cell in values if is_number(cell)]
    are_years = len(numbers) > 1 and all(map(YEAR.fullmatch, numbers))
    is_short = all(len(cell) <= MAX_HEADING_LENGTH for cell in values)
    return len(values) > 1 and len(set(values)) == len(values) and is_short and (not numbers or are_years)


def is_number(cell: str) -> bool:
    """
    >>> is_number("-1,234.50"), is_number("2024-05-01"), is_number("Room 7")
    (True, True, False)
    """
    return any(character.isdigit() for character in cell) and not any(character.isalpha() for character in cell)
