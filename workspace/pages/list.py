"""The list of a table's records."""

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from system.errors import ServiceError
from system.http.error_responses import to_service_error
from tableapi.query.parameters import parse_text
from workspace.lists.list_contents import count_records, read_contents, read_more, search_state
from workspace.lists.list_state import ListState, parse_state
from workspace.pages.base import WorkspacePage

# Errors that the person can mend by changing the list.
REFUSAL_STATUSES = (400, 422)


class ListPage(WorkspacePage):
    """`/tables/{table}/`. For htmx, only more rows (with a position) or the count (`?count=1`)."""

    def get(self, request: HttpRequest, table: str) -> HttpResponse:
        is_fragment = "HX-Request" in request.headers
        state, counts = ListState(table), bool(request.GET.get("count"))
        try:
            state = parse_state(table, request.GET)
            if "q" in request.GET:
                return redirect(self.read(table, search_state, state, parse_text(request.GET, "q")).url())
            if is_fragment and counts:
                return render(request, "workspace/list_count.html", {"total": self.read(table, count_records, state)})
            if is_fragment and state.position:
                return render(request, "workspace/list_rows.html", self.read(table, read_more, state))
            return render(request, "workspace/list.html", self.read(table, read_contents, state, counts=counts))
        except (ServiceError, OperationalError) as error:
            refusal = to_service_error(error, request.user)
            if refusal is None or refusal.status not in REFUSAL_STATUSES:
                raise
            return self.refuse(state, refusal, is_fragment=is_fragment)

    def refuse(self, state: ListState, error: ServiceError, *, is_fragment: bool) -> HttpResponse:
        """Show the error with the query, to be corrected."""
        if is_fragment:
            return render(self.request, "workspace/list_message.html", {"error": error}, status=error.status)
        _, table = self.open_table(state.table)
        values = {"state": state, "table": table, "error": error}
        return render(self.request, "workspace/list_refused.html", values, status=error.status)
