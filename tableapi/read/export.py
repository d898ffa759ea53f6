"""Exports the whole result of a list to a file: parse → plan → compile → copy.

The file is complete before the first byte is sent. So an error is still a status, and a slow client holds neither a
connection nor a transaction.
"""

import csv
import io
import threading
from typing import IO

from django.db import transaction

from system import properties
from system.encoded_query import QueryError
from system.errors import BadRequest, TooLarge, TooManyRequests
from system.http.stored_file import StoredFile, new_file
from system.property_definitions import EXPORT_RECORDS
from tableapi.catalogue.definitions import Catalogue
from tableapi.database import statement_runner
from tableapi.query import read_plan
from tableapi.query.parameters import DisplayMode, ExportRequest, RawParameters, invalid_query, parse_export
from tableapi.sql.export import ValueWriter, export_sql

from .catalogue_retry import on_current_catalogue
from .context import Caller
from .pipeline import style_of

CSV, JSON_LINES = "text/csv", "application/x-ndjson"
MAX_EXPORT_S = 60
MAX_EXPORT_BYTES = 2 * 1024 * 1024 * 1024
# Exports at the same time, per web process: others use its threads too.
EXPORT_SLOTS = threading.BoundedSemaphore(1)


def export(caller: Caller, table_name: str, raw: RawParameters, media_type: str) -> StoredFile:
    maximum = properties.get(EXPORT_RECORDS)
    try:
        request = parse_export(raw, maximum)
        if media_type == CSV and request.output.display_mode is DisplayMode.BOTH:
            message = "CSV has one value in each cell. sysparm_display_value must be 0 or 1."
            raise BadRequest(message, code="invalid_parameter", field="sysparm_display_value")
        if not EXPORT_SLOTS.acquire(blocking=False):
            raise TooManyRequests("Another export is running. Try again when it has finished.")
        try:
            return _export(caller, table_name, request, media_type)
        finally:
            EXPORT_SLOTS.release()
    except QueryError as error:
        raise invalid_query(error) from None


@on_current_catalogue
def _export(
    catalogue: Catalogue, caller: Caller, table_name: str, request: ExportRequest, media_type: str
) -> StoredFile:
    context = caller.context(catalogue)
    view, table = context.view, context.view.open_table(table_name)
    output = request.output
    plan = read_plan.plan_read(view, table, query=request.query.shape.query, fields=output.fields, view=output.view)
    style = style_of(output)._replace(escapes_formulas=request.escapes_formulas)
    inputs = context.inputs(request.query.conditions, version=catalogue.version)
    writer = ValueWriter(inputs, statement_runner.quote_value)
    with new_file() as file:
        lines = _Lines(file, request)
        if media_type == CSV:
            file.write(_csv_line([field.key for field in plan.fields]))
        if view.can_read(table):
            sql = export_sql(writer, plan, style, request.limit, as_csv=media_type == CSV)
            with transaction.atomic():
                statement_runner.copy(sql, lines.write, MAX_EXPORT_S)
        if not lines.count:
            statement_runner.check_version(inputs)  # another version has no lines
    return StoredFile(file.name, media_type)


def _csv_line(cells: list[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()


class _Lines:
    """Writes lines up to the limit of the request."""

    def __init__(self, file: IO[bytes], request: ExportRequest) -> None:
        self.file = file
        self.request = request
        self.count = 0
        self.size = 0

    def write(self, line: bytes) -> None:
        self.count += 1
        self.size += len(line)
        if self.count <= self.request.limit:
            self.file.write(line)
        elif not self.request.is_limited:
            limit = f"{self.request.limit:,}"
            raise TooLarge(f"The result has more than {limit} records. Filter it, or set sysparm_limit.")
        if self.size > MAX_EXPORT_BYTES:
            raise TooLarge("The result is too large for one file. Filter it, or request fewer fields.")
