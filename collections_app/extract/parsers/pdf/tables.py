"""Finds tables by the positions of their cells.

    segments   parts of lines, in the order of the text                                    lines
    rows       segments that follow one another to the right; those below continue a cell  group_into_rows
    tables     neighboring rows whose cells are in the same columns                        find_tables

The order of the text matters: columns of prose follow one another from top to bottom, the cells of a row from left to
right. Ruling lines are ignored, since many tables have none.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from .lines import Line, Segment

MIN_ROWS = 3
# Two rows with this many cells are a table too.
MIN_CELLS_OF_TWO_ROWS = 3
# Relative to the type size: the distance of the lines of a cell, and what counts as the same height.
MAX_LINE_DISTANCE = 1.6
MAX_FIRST_LINE_DISTANCE = 1.3
MAX_ROW_DISTANCE = 4.0
SAME_HEIGHT = 0.5
# Columns with longer cells are columns of prose.
MAX_AVERAGE_CELL = 200
COLUMN_TOLERANCE = 2.0
LIST_MARKER = re.compile(r"[\W_]+|[\W_]*\w{1,3}[.):\]\u3001]")


@dataclass(slots=True)
class Cell:
    segments: list[Segment]
    left: float
    right: float
    top: float
    bottom: float

    @classmethod
    def of(cls, segment: Segment) -> "Cell":
        return cls([segment], segment.left, segment.right, segment.baseline, segment.baseline)

    def add(self, segment: Segment) -> None:
        self.segments.append(segment)
        self.left, self.right = min(self.left, segment.left), max(self.right, segment.right)
        self.bottom = min(self.bottom, segment.baseline)

    @property
    def text(self) -> str:
        return "\n".join(segment.text for segment in self.segments)


@dataclass(slots=True)
class Row:
    cells: list[Cell]
    size: float = 0.0

    @property
    def bottom(self) -> float:
        return min(cell.bottom for cell in self.cells)


@dataclass(slots=True)
class Table:
    """`columns` are the left and right borders of the columns. Cells may have several lines."""

    columns: list[tuple[float, float]]
    rows: Sequence[list[str]]

    def continues(self, other: "Table") -> bool:
        """Whether this table may be the next part of another, on the page before."""
        return len(self.columns) == len(other.columns) and all(
            left < other_right and other_left < right
            for (left, right), (other_left, other_right) in zip(self.columns, other.columns, strict=True)
        )


def split_into_blocks(lines: Sequence[Line]) -> Iterator[str | Table]:
    """Yields the tables among the lines, and the text between them."""
    if not any(len(line.segments) > 1 for line in lines):
        yield "\n".join(line.text for line in lines)
        return
    # The lines that a table does not contain completely remain text.
    start = 0
    for first, stop, table in find_tables(lines):
        if first > start:
            yield "\n".join(line.text for line in lines[start:first])
        yield table
        start = stop
    yield "\n".join(line.text for line in lines[start:])


def find_tables(lines: Sequence[Line]) -> Iterator[tuple[int, int, Table]]:
    """Yields each table with the index of its first line, and that after its last."""
    numbers = {id(segment): number for number, line in enumerate(lines) for segment in line.segments}
    for run in split_into_runs(group_into_rows(lines)):
        columns = find_columns(run)
        placed_rows = [(row, cells_in_columns(row, columns)) for row in run]
        for is_in_columns, group in groupby(placed_rows, key=lambda placed_row: bool(placed_row[1])):
            rows, cells = zip(*group, strict=True)
            if is_in_columns and is_plausible(table := Table(columns, cells)):
                indexes = [numbers[id(segment)] for row in rows for cell in row.cells for segment in cell.segments]
                yield min(indexes), max(indexes) + 1, table


def split_into_runs(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yields neighboring rows of several cells. There may be single cells between them, but not at the end."""
    run: list[Row] = []
    for row in [*rows, Row([])]:
        if run and (not row.cells or run[-1].bottom - row.cells[0].top > MAX_ROW_DISTANCE * row.size):
            yield run
            run = []
        if run or len(row.cells) > 1:
            run.append(row)
        if len(run) > 1 and len(run[-1].cells) == len(run[-2].cells) == 1:
            yield run[:-2]
            run = []


def group_into_rows(lines: Sequence[Line]) -> list[Row]:
    rows: list[Row] = []
    for line in lines:
        if not line.segments or not line.size:
            rows.append(Row([]))
        for number, segment in enumerate(line.segments):
            row = rows[-1] if rows and rows[-1].cells else None
            previous = rows[-2] if len(rows) > 1 else None
            following = line.segments[number + 1] if number + 1 < len(line.segments) else None
            if row is None:
                rows.append(Row([Cell.of(segment)], line.size))
            elif continues_cell(row, previous, segment, following, line.size):
                row.cells[-1].add(segment)
            elif continues_row(row, previous, segment, line.size):
                row.cells.append(Cell.of(segment))
            else:
                rows.append(Row([Cell.of(segment)], line.size))
    return rows


def continues_cell(row: Row, previous: Row | None, segment: Segment, following: Segment | None, size: float) -> bool:
    """Whether a segment is the next line of the last cell of a row."""
    cell = row.cells[-1]
    is_same_column = segment.left < cell.right and cell.left < segment.right
    distance = (cell.bottom - segment.baseline) / size if size else 0.0
    if following is None:
        return is_same_column and SAME_HEIGHT < distance <= MAX_LINE_DISTANCE
    # A row may begin here instead, below a line of prose. The prose is wider, or there is a gap below it.
    is_in_table = len(row.cells) > 1 or (previous is not None and len(previous.cells) > 1)
    max_distance = MAX_LINE_DISTANCE if is_in_table else MAX_FIRST_LINE_DISTANCE
    return is_same_column and SAME_HEIGHT < distance <= max_distance and cell.right < following.left


def continues_row(row: Row, previous: Row | None, segment: Segment, size: float) -> bool:
    """Whether a segment is the first line of the next cell."""
    is_below_previous = previous is None or not previous.cells or segment.baseline < previous.bottom
    is_in_row = segment.baseline > row.bottom - SAME_HEIGHT * size
    return segment.left > row.cells[-1].right and is_in_row and is_below_previous


def find_columns(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """Returns the borders of the columns, from the rows with the most cells; none if these overlap."""
    count = max(len(row.cells) for row in rows)
    full_rows = [row for row in rows if len(row.cells) == count]
    columns = [
        (min(row.cells[number].left for row in full_rows), max(row.cells[number].right for row in full_rows))
        for number in range(count)
    ]
    are_separate = all(left[1] <= right[0] + COLUMN_TOLERANCE for left, right in pairwise(columns))
    return columns if count > 1 and len(full_rows) > 1 and are_separate else []


def cells_in_columns(row: Row, columns: Sequence[tuple[float, float]]) -> list[str]:
    """Returns the text in each column; an empty list unless each cell is in a column of its own."""
    texts = [""] * len(columns)
    for cell in row.cells:
        numbers = [number for number, (left, right) in enumerate(columns) if cell.left < right and left < cell.right]
        if len(numbers) != 1 or texts[numbers[0]]:
            return []
        texts[numbers[0]] = cell.text
    return texts


def is_plausible(table: Table) -> bool:
    """Whether this has enough rows, and is neither a list with its markers, nor columns of prose."""
    min_rows = 2 if len(table.columns) >= MIN_CELLS_OF_TWO_ROWS else MIN_ROWS
    is_list = len(table.columns) == 2 and all(LIST_MARKER.fullmatch(row[0]) for row in table.rows[1:])
    lengths = [sum(map(len, column)) for column in zip(*table.rows, strict=True)]
    return len(table.rows) >= min_rows and not is_list and min(lengths) <= MAX_AVERAGE_CELL * len(table.rows)
