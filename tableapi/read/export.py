"""Exports the whole result of a list to a file: parse → plan → compile → copy.

The file is completed before the first byte is sent, so that errors can still set the status, and slow clients hold
neither a database connection nor a transaction.
"""

import codecs
import csv
import io
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO

from django.db import transaction

from system import properties
from system.encoded_query import ComparisonKind
from system.errors import InvalidParameter, TooLarge, TooManyRequests
from system.http.stored_file import StoredFile, new_file
from system.property_definitions import EXPORT_RECORDS
from tableapi.catalogue.definitions import Catalogue, Table
from tableapi.database import statement_runner
from tableapi.query import read_plan
from tableapi.query.parameters import DisplayMode, ExportRequest, RawParameters, parse_export
from tableapi.query.read_plan import OutputField, ReadPlan
from tableapi.sql.export import TIME_KINDS, ValueWriter, export_sql
from tableapi.sql.output_fields import OutputStyle

from . import xlsx_writer
from .catalogue_retry import on_current_catalogue
from .context import Caller, ReadContext
from .pipeline import style_of
from .xlsx_writer import XLSX

CSV, JSON_LINES = "text/csv", "application/x-ndjson"
MEDIA_TYPES = (CSV, JSON_LINES, XLSX)
MAX_EXPORT_S = 60
MAX_EXPORT_BYTES = 2 * 1024 * 1024 * 1024
# Concurrent exports per web process, whose threads other requests need too.
EXPORT_SLOTS = threading.BoundedSemaphore(1)
CELL_WRITERS: Mapping[ComparisonKind, Callable[[str], str]] = {
    ComparisonKind.INTEGER: xlsx_writer.number_cell,
    ComparisonKind.DECIMAL: xlsx_writer.number_cell,
    ComparisonKind.DATE: xlsx_writer.date_cell,
    ComparisonKind.DATETIME: xlsx_writer.time_cell,
}


@on_current_catalogue
def export(
    catalogue: Catalogue,
    caller: Caller,
    table_name: str,
    raw: RawParameters,
    media_type: str,
    labels: Mapping[str, str] | None = None,
) -> StoredFile:
    """`labels` are the headers of the columns, if not their names: for a person, whose spreadsheet reads a CSV file as
    UTF-8 only after a byte order mark."""
    request = parse_export(raw, properties.get(EXPORT_RECORDS))
    if media_type != JSON_LINES and request.output.display_mode is DisplayMode.BOTH:
        message = "A cell has one value. sysparm_display_value must be 0 or 1."
        raise InvalidParameter(message, field="sysparm_display_value")
    if not EXPORT_SLOTS.acquire(blocking=False):
        raise TooManyRequests("Another export is running. Try again when it has finished.")
    try:
        return _export(caller.context(catalogue), table_name, request, media_type, labels)
    finally:
        EXPORT_SLOTS.release()


def _export(
    context: ReadContext, table_name: str, request: ExportRequest, media_type: str, labels: Mapping[str, str] | None
) -> StoredFile:
    view, table = context.view, context.view.open_table(table_name)
    output = request.output
    plan = read_plan.plan_read(view, table, query=request.query.shape.query, fields=output.fields, view=output.view)
    style = style_of(output)._replace(escapes_formulas=request.escapes_formulas, has_typed_times=media_type == XLSX)
    inputs = context.inputs(request.query.conditions, version=view.catalogue.version)
    builder = ValueWriter(inputs, statement_runner.quote_value)
    count = 0
    headers = [(labels or {}).get(field.key, field.key) for field in plan.fields]
    mark = b"" if labels is None else codecs.BOM_UTF8
    with new_file() as file, _line_writer(file, media_type, table, plan, style, headers, mark) as write_line:
        if view.can_read(table):
            sql = export_sql(builder, plan, style, request.limit, as_csv=media_type != JSON_LINES)
            with transaction.atomic(), statement_runner.copy_lines(sql, MAX_EXPORT_S) as lines:
                count = _write_lines(lines, write_line, request)
        if not count:
            statement_runner.check_version(inputs)  # under another version, there are no lines
    return StoredFile(file.name, media_type)


# Writes one line of COPY and returns the size of what it wrote.
LineWriter = Callable[[bytes], int]


@contextmanager
def _line_writer(
    file: IO[bytes], media_type: str, table: Table, plan: ReadPlan, style: OutputStyle, headers: list[str], mark: bytes
) -> Iterator[LineWriter]:
    if media_type == XLSX:
        with xlsx_writer.open_sheet(file, table.label) as write_cells:
            write_cells([xlsx_writer.header_cell(header) for header in headers])
            cell_writers = [_cell_writer(field, style) for field in plan.fields]

            def write_row(line: bytes) -> int:
                values = next(csv.reader([str(line, "utf-8")])) or [""]  # one empty cell is an empty line
                return write_cells([write(value) for write, value in zip(cell_writers, values, strict=True)])

            yield write_row
        return
    if media_type == CSV:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(headers)
        file.write(mark + text.getvalue().encode())
    yield file.write


def _cell_writer(field: OutputField, style: OutputStyle) -> Callable[[str], str]:
    """Dates and times are cells of their type, and numbers except as display values."""
    column = field.path.column
    has_display_text = style.mode is DisplayMode.DISPLAY and column.column_type.display_format
    if column.choices or (has_display_text and column.compare_as not in TIME_KINDS):
        return xlsx_writer.text_cell
    return CELL_WRITERS.get(column.compare_as, xlsx_writer.text_cell)


def _write_lines(lines: Iterable[bytes], write_line: LineWriter, request: ExportRequest) -> int:
    """Write lines up to the limit of the request. Returns the number of lines read."""
    count, size = 0, 0
    for count, line in enumerate(lines, 1):
        if count <= request.limit:
            size += write_line(line)
        elif not request.is_limited:
            message = f"The result exceeds the export limit ({request.limit:,}). Filter it, or set sysparm_limit."
            raise TooLarge(message)
        if size > MAX_EXPORT_BYTES:
            raise TooLarge("The result is too large for one file. Filter it, or request fewer fields.")
    return count
