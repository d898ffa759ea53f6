"""The list of a table's records, as a page and as a file."""

from django.contrib import messages
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render

from system.errors import InvalidParameter, ServiceError
from system.http.error_responses import to_service_error
from tableapi.query.parameters import parse_text
from tableapi.read import export
from tableapi.read.xlsx_writer import XLSX
from workspace.forms.parameters import output_parameters
from workspace.lists import list_contents
from workspace.lists.list_state import ListState, parse_state
from workspace.pages.base import WorkspacePage

# Errors that the person can correct by changing the list.
REFUSAL_STATUSES = (400, 422)
# The value of `format`, which is also the file extension.
EXPORT_FORMATS = {"csv": export.CSV, "jsonl": export.JSON_LINES, "xlsx": XLSX}


class ListPage(WorkspacePage):
    """`/tables/{table}/`. For htmx, only more rows (with a position) or the count (`?count=1`)."""

    def get(self, request: HttpRequest, table: str) -> HttpResponse:
        state, is_fragment, counts = ListState(table), "HX-Request" in request.headers, bool(request.GET.get("count"))
        try:
            state = parse_state(table, request.GET)
            if "q" in request.GET:
                words = parse_text(request.GET, "q")
                return redirect(self.read(table, list_contents.search_state, state, words).url)
            if is_fragment and counts:
                total = self.read(table, list_contents.count_records, state)
                return render(request, "workspace/list_count.html", {"total": total})
            if is_fragment and state.position:
                return render(request, "workspace/list_rows.html", self.read(table, list_contents.read_more, state))
            contents = self.read(table, list_contents.read_contents, state, counts=counts)
            return render(request, "workspace/list.html", contents)
        except (ServiceError, OperationalError) as error:
            refusal = to_service_error(error, request.user)
            if refusal is None or refusal.status not in REFUSAL_STATUSES:
                raise
            if is_fragment:
                return render(request, "workspace/list_message.html", {"error": refusal}, status=refusal.status)
            # The query can be corrected.
            values = {"state": state, "table": self.open_table(table)[1], "error": refusal}
            return render(request, "workspace/list_refused.html", values, status=refusal.status)


class ExportView(WorkspacePage):
    """`/tables/{table}/export/?format=csv`: all records of the list, with its columns. Errors lead back to the list."""

    def get(self, request: HttpRequest, table: str) -> HttpResponseBase:
        state = parse_state(table, request.GET).first_page()
        try:
            if (extension := request.GET.get("format", "")) not in EXPORT_FORMATS:
                raise InvalidParameter(f"format must be one of {', '.join(EXPORT_FORMATS)}.", field="format")
            labels = {column.path: column.label for column in self.read(table, list_contents.columns_of, state)}
            keep = parse_text(request.GET, "sysparm_keep_formulas")
            raw = output_parameters(
                labels, sysparm_query=state.query, sysparm_display_value=1, sysparm_keep_formulas=keep
            )
            response = export.export(self.caller, table, raw, EXPORT_FORMATS[extension], labels)
        except (ServiceError, OperationalError) as error:
            refusal = to_service_error(error, request.user)
            if refusal is None or refusal.status == 404:
                raise
            messages.error(request, refusal.message)
            return redirect(state.url)
        response["Content-Disposition"] = f'attachment; filename="{table}.{extension}"'
        return response
