"""Downloads what a list shows as a file."""

from django.contrib import messages
from django.db import OperationalError
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect

from system.errors import InvalidParameter, NotFound, ServiceError
from system.http.error_responses import to_service_error
from tableapi.catalogue.definitions import Table
from tableapi.read import export
from tableapi.read.context import ReadContext
from tableapi.read.xlsx_writer import XLSX
from workspace.lists import list_contents, rows
from workspace.lists.list_state import ListState, parse_state
from workspace.pages.base import WorkspacePage

# The value of `format`, which is also the file extension.
FORMATS = {"csv": export.CSV, "jsonl": export.JSON_LINES, "xlsx": XLSX}


class ExportView(WorkspacePage):
    """`/tables/{table}/export/?format=csv`: all records of the list, with its columns. Errors lead back to the list."""

    def get(self, request: HttpRequest, table: str) -> HttpResponseBase:
        state = parse_state(table, request.GET).first_page
        try:
            if (extension := request.GET.get("format", "")) not in FORMATS:
                raise InvalidParameter(f"format must be one of {', '.join(FORMATS)}.", field="format")
            labels = self.read(table, read_labels, state)
            raw = rows.output_parameters(state, list(labels), "1")
            if "sysparm_keep_formulas" in request.GET:
                raw.setlist("sysparm_keep_formulas", request.GET.getlist("sysparm_keep_formulas"))
            response = export.export(self.caller, table, raw, FORMATS[extension], labels)
        except (ServiceError, OperationalError) as error:
            refusal = to_service_error(error, request.user)
            if refusal is None or isinstance(refusal, NotFound):
                raise
            messages.error(request, refusal.message)
            return redirect(state.url())
        response["Content-Disposition"] = f'attachment; filename="{table}.{extension}"'
        return response


def read_labels(context: ReadContext, table: Table, state: ListState) -> dict[str, str]:
    """The paths of the columns with their labels."""
    return {column.path: column.label for column in list_contents.columns_of(context, table, state)}
