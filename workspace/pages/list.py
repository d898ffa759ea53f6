"""The list of a table's records."""

from typing import Any

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from system.errors import NotFound, ServiceError
from system.http.error_responses import to_service_error
from tableapi.catalogue.definitions import Catalogue
from tableapi.query.parameters import parse_text
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller
from workspace.lists import list_contents, rows, search
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
                return redirect(search_state(self.caller, state, parse_text(request.GET, "q")).url())
            if is_fragment and counts:
                return render(request, "workspace/list_count.html", {"total": count_records(self.caller, state)})
            if is_fragment and state.position:
                return render(request, "workspace/list_rows.html", read_more(self.caller, state))
            return render(request, "workspace/list.html", read_page(self.caller, state, counts))
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


@on_current_catalogue
def read_page(catalogue: Catalogue, caller: Caller, state: ListState, counts: bool) -> dict[str, Any]:
    return list_contents.read_contents(caller.context(catalogue), state, counts=counts)


@on_current_catalogue
def read_more(catalogue: Catalogue, caller: Caller, state: ListState) -> dict[str, Any]:
    context = caller.context(catalogue)
    table = context.view.open_table(state.table)
    return list_contents.rows_context(context, table, state, list_contents.columns_of(context, table, state))


@on_current_catalogue
def count_records(catalogue: Catalogue, caller: Caller, state: ListState) -> int | None:
    context = caller.context(catalogue)
    return rows.read_rows(context, context.view.open_table(state.table), state.first_page, [], counts=True).total


@on_current_catalogue
def search_state(catalogue: Catalogue, caller: Caller, state: ListState, words: str) -> ListState:
    """The state of the list that is searched for these words."""
    view = caller.context(catalogue).view
    operator = search.search_operator(view, view.open_table(state.table))
    if operator is None:
        raise NotFound
    return state.with_query(search.with_search(operator, state.query, words.strip()))
