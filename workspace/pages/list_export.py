"""Downloads what a list shows as a file."""

from django.contrib import messages
from django.db import OperationalError
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect

from system.errors import InvalidParameter, NotFound, ServiceError
from system.http.error_responses import to_service_error
from tableapi.read import export
from workspace.lists import list_contents, rows
from workspace.lists.list_state import parse_state
from workspace.pages.base import WorkspacePage

# The value of `format` → media type and file extension.
FORMATS = {"csv": (export.CSV, "csv"), "jsonl": (export.JSON_LINES, "jsonl")}


class ExportView(WorkspacePage):
    """`/tables/{table}/export/?format=csv`: all records of the list, with its columns. Errors lead back to the list."""

    def get(self, request: HttpRequest, table: str) -> HttpResponseBase:
        state = parse_state(table, request.GET).first_page
        try:
            if request.GET.get("format") not in FORMATS:
                raise InvalidParameter(f"format must be one of {', '.join(FORMATS)}.", field="format")
            media_type, extension = FORMATS[request.GET["format"]]
            context, opened = self.open_table(table)
            paths = [column.path for column in list_contents.columns_of(context, opened, state)]
            raw = rows.output_parameters(state, paths, "1")
            if "sysparm_keep_formulas" in request.GET:
                raw.setlist("sysparm_keep_formulas", request.GET.getlist("sysparm_keep_formulas"))
            response = export.export(self.caller, table, raw, media_type)
        except (ServiceError, OperationalError) as error:
            refusal = to_service_error(error, request.user)
            if refusal is None or isinstance(refusal, NotFound):
                raise
            messages.error(request, refusal.message)
            return redirect(state.url())
        response["Content-Disposition"] = f'attachment; filename="{table}.{extension}"'
        return response
