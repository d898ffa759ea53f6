"""Writes rows of cells as lines that can be understood without the header row."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from .failures import UnreadableFile
from .text_writer import LINE_GAP, PARAGRAPH_GAP, TextWriter

# The maximum number of rows of a worksheet.
MAX_ROWS = 1_048_576


class TableWriter:
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
