"""Exports the whole result of a list to a file: parse → plan → compile → copy.

The file is completed before the first byte is sent, so that errors can still set the status, and slow clients hold
neither a database connection nor a transaction.
"""

import csv
import io
import threading
from collections.abc import Iterable
from typing import IO

from django.db import transaction

from system import properties
from system.errors import InvalidParameter, TooLarge, TooManyRequests
from system.http.stored_file import StoredFile, new_file
from system.property_definitions import EXPORT_RECORDS
from tableapi.catalogue.definitions import Catalogue
from tableapi.database import statement_runner
from tableapi.query import read_plan
from tableapi.query.parameters import DisplayMode, ExportRequest, RawParameters, parse_export
from tableapi.sql.export import ValueWriter, export_sql

from .catalogue_retry import on_current_catalogue
from .context import Caller, ReadContext
from .pipeline import style_of

CSV, JSON_LINES = "text/csv", "application/x-ndjson"
MAX_EXPORT_S = 60
MAX_EXPORT_BYTES = 2 * 1024 * 1024 * 1024
# Concurrent exports per web process, whose threads other requests need too.
EXPORT_SLOTS = threading.BoundedSemaphore(1)


@on_current_catalogue
def export(catalogue: Catalogue, caller: Caller, table_name: str, raw: RawParameters, media_type: str) -> StoredFile:
    request = parse_export(raw, properties.get(EXPORT_RECORDS))
    if media_type == CSV and request.output.display_mode is DisplayMode.BOTH:
        message = "CSV has one value in each cell. sysparm_display_value must be 0 or 1."
        raise InvalidParameter(message, field="sysparm_display_value")
    if not EXPORT_SLOTS.acquire(blocking=False):
        raise TooManyRequests("Another export is running. Try again when it has finished.")
    try:
        return _export(caller.context(catalogue), table_name, request, media_type)
    finally:
        EXPORT_SLOTS.release()


def _export(context: ReadContext, table_name: str, request: ExportRequest, media_type: str) -> StoredFile:
    view, table = context.view, context.view.open_table(table_name)
    output = request.output
    plan = read_plan.plan_read(view, table, query=request.query.shape.query, fields=output.fields, view=output.view)
    style = style_of(output)._replace(escapes_formulas=request.escapes_formulas)
    inputs = context.inputs(request.query.conditions, version=view.catalogue.version)
    writer = ValueWriter(inputs, statement_runner.quote_value)
    count = 0
    with new_file() as file:
        if media_type == CSV:
            file.write(_csv_line([field.key for field in plan.fields]))
        if view.can_read(table):
            sql = export_sql(writer, plan, style, request.limit, as_csv=media_type == CSV)
            with transaction.atomic(), statement_runner.copy_lines(sql, MAX_EXPORT_S) as lines:
                count = _write_lines(lines, file, request)
        if not count:
            statement_runner.check_version(inputs)  # under another version, there are no lines
    return StoredFile(file.name, media_type)


def _write_lines(lines: Iterable[bytes], file: IO[bytes], request: ExportRequest) -> int:
    """Write lines up to the limit of the request. Returns the number of lines read."""
    count, size = 0, 0
    for count, line in enumerate(lines, 1):
        size += len(line)
        if count <= request.limit:
            file.write(line)
        elif not request.is_limited:
            message = f"The result exceeds the export limit ({request.limit:,}). Filter it, or set sysparm_limit."
            raise TooLarge(message)
        if size > MAX_EXPORT_BYTES:
            raise TooLarge("The result is too large for one file. Filter it, or request fewer fields.")
    return count


def _csv_line(cells: list[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()
