"""Writes rows to an XLSX file as a stream. openpyxl was measured to take eleven times as long."""

import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from itertools import count
from typing import IO
from xml.sax.saxutils import escape, quoteattr

from system.errors import TooLarge

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
# The limits of the format.
MAX_ROWS = 1_048_576
MAX_CELL_LENGTH = 32_767
MAX_SHEET_NAME_LENGTH = 31
MAX_SAFE_DIGITS = 15
# Day 0 of the format. It has a 29 February 1900, so earlier days are off by one.
EPOCH = datetime(1899, 12, 30)
FIRST_EXACT_DAY = 61
UNUSABLE_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
UNUSABLE_IN_SHEET_NAME = re.compile(r"[\[\]:*?/\\]")
NUMBER = re.compile(rf"-?[0-9]{{1,{MAX_SAFE_DIGITS}}}(\.[0-9]+)?")

XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
CONTENT_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
# Styles of cells: 0 for text and numbers, 1 for dates, 2 for times, 3 for the header.
STYLES = (
    f'<styleSheet xmlns="{MAIN}"><numFmts count="2"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/>'
    '<numFmt numFmtId="165" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/></numFmts>'
    '<fonts count="2"><font/><font><b/></font></fonts><fills count="2"><fill><patternFill patternType="none"/></fill>'
    '<fill><patternFill patternType="gray125"/></fill></fills><borders count="1"><border/></borders>'
    '<cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="4"><xf/><xf numFmtId="164" applyNumberFormat="1"/>'
    '<xf numFmtId="165" applyNumberFormat="1"/><xf fontId="1" applyFont="1"/></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)
PARTS = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{CONTENT_TYPE}.sheet.main+xml"/>'
    f'<Override PartName="/xl/styles.xml" ContentType="{CONTENT_TYPE}.styles+xml"/>'
    f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{CONTENT_TYPE}.worksheet+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{RELATIONS}">'
    f'<Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{RELATIONS}">'
    f'<Relationship Id="r1" Type="{OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>'
    f'<Relationship Id="r2" Type="{OFFICE}/styles" Target="styles.xml"/></Relationships>',
    "xl/styles.xml": STYLES,
}


@contextmanager
def open_sheet(file: IO[bytes], sheet_name: str) -> Iterator[Callable[[Sequence[str]], int]]:
    """Start a file with one sheet. Yields a function that writes a row of cells and returns the size of their XML."""
    name = UNUSABLE_IN_SHEET_NAME.sub(" ", UNUSABLE_IN_XML.sub("", sheet_name))[:MAX_SHEET_NAME_LENGTH].strip(" '")
    workbook = (
        f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
        f'<sheet name={quoteattr(name or "Records")} sheetId="1" r:id="r1"/></sheets></workbook>'
    )
    row_numbers = count(1)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path, part in {**PARTS, "xl/workbook.xml": workbook}.items():
            archive.writestr(path, f"{XML_DECLARATION}{part}")
        with archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as sheet:

            def write_row(cells: Sequence[str]) -> int:
                if next(row_numbers) > MAX_ROWS:
                    raise TooLarge(f"An XLSX file has at most {MAX_ROWS:,} rows. Filter the list, or export it as CSV.")
                return sheet.write(f"<row>{''.join(cells)}</row>".encode())

            sheet.write(f'{XML_DECLARATION}<worksheet xmlns="{MAIN}"><sheetData>'.encode())
            yield write_row
            sheet.write(b"</sheetData></worksheet>")


def header_cell(text: str) -> str:
    return text_cell(text).replace("<c ", '<c s="3" ', 1)


def text_cell(text: str) -> str:
    """
    >>> text_cell("a<b"), text_cell("")
    ('<c t="inlineStr"><is><t xml:space="preserve">a&lt;b</t></is></c>', '<c/>')
    """
    if not text:
        return "<c/>"
    if len(text) > MAX_CELL_LENGTH:
        raise TooLarge(f"An XLSX cell has at most {MAX_CELL_LENGTH:,} characters. Export the list as CSV.")
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(UNUSABLE_IN_XML.sub("", text))}</t></is></c>'


def number_cell(text: str) -> str:
    """A number, or text if a spreadsheet would round it.

    >>> number_cell("-1.50"), number_cell("12345678901234567")[:20]
    ('<c><v>-1.50</v></c>', '<c t="inlineStr"><is')
    """
    return f"<c><v>{text}</v></c>" if NUMBER.fullmatch(text) else text_cell(text)


def date_cell(text: str) -> str:
    """
    >>> date_cell("2024-05-09"), date_cell("0001-01-01")[:12]
    ('<c s="1"><v>45421</v></c>', '<c t="inline')
    """
    day = date.fromisoformat(text).toordinal() - EPOCH.toordinal() if re.fullmatch("[0-9-]{10}", text) else 0
    return f'<c s="1"><v>{day}</v></c>' if day >= FIRST_EXACT_DAY else text_cell(text)


def time_cell(text: str) -> str:
    """
    >>> time_cell("2024-05-09 12:00:00")
    '<c s="2"><v>45421.5</v></c>'
    """
    if not re.fullmatch("[0-9]{4}-[0-9-]{5} [0-9:]{8}", text):
        return text_cell(text)
    days = (datetime.fromisoformat(text) - EPOCH).total_seconds() / 86_400
    return f'<c s="2"><v>{days!r}</v></c>' if days >= FIRST_EXACT_DAY else text_cell(text)
