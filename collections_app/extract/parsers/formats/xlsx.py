"""XLSX files: a table of the cell values of each sheet, with the name of the sheet as heading."""

import datetime
import warnings
from collections.abc import Iterator
from io import BytesIO
from itertools import count
from typing import Any

import openpyxl

from ..common import archive
from ..common.failures import damaged_error
from ..common.text_writer import CellCounter, TextWriter


def parse(data: bytes, writer: TextWriter, limits: dict[str, Any]) -> None:
    archive.check_archive(data, limits)
    warnings.simplefilter("ignore")  # unknown parts of a workbook
    workbook = openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=True, keep_links=False)
    counter = CellCounter(limits["max_cells"])
    for sheet in workbook.worksheets:
        writer.add_heading(1, sheet.title)
        # Otherwise the library trusts the size declared in the sheet. In one file it read only 4 of a million rows.
        sheet.reset_dimensions()
        writer.add_table(counter.check(readable_rows(sheet, writer)))
    if writer.warnings and not counter.cell_count:
        raise damaged_error()


def readable_rows(sheet: Any, writer: TextWriter) -> Iterator[list[str]]:
    """Yields the rows up to the first that cannot be read."""
    rows = sheet.iter_rows(values_only=True)
    for number in count(1):
        try:
            row = next(rows, None)
        except Exception:  # the library may raise anything
            writer.warn(f"The sheet {sheet.title} could not be read from row {number} on.")
            return
        if row is None:
            return
        yield [format_cell(value) for value in row]


def format_cell(value: Any) -> str:
    """
    >>> format_cell(2.0), format_cell(True), format_cell(datetime.datetime(2024, 5, 1)), format_cell(None)
    ('2', 'TRUE', '2024-05-01', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime.datetime):
        is_date = value.time() == datetime.time()
        return value.date().isoformat() if is_date else value.isoformat(" ", "seconds")
    return str(value)


def preload() -> None:
    """Reads a workbook, since the library imports some modules when it first reads one."""
    file = BytesIO()
    workbook = openpyxl.Workbook()
    workbook.active.append(["a", 1, datetime.date(2024, 5, 1)])
    workbook.save(file)
    for sheet in openpyxl.load_workbook(file, read_only=True, data_only=True).worksheets:
        list(sheet.iter_rows(values_only=True))
