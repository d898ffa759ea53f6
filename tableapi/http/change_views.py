"""The endpoints of the change log: the history of a record, the change feed of a table."""

from django.http import HttpResponse
from rest_framework.request import Request

from system.http.json_view import JsonView
from tableapi.changes.feed import CURSOR_PARAMETER, read_feed
from tableapi.changes.history import read_history

from .responses import enveloped, page_response, set_ignored_fields, set_next_page
from .table_views import caller_of


class HistoryView(JsonView):
    http_method_names = ["get", "head"]

    def get(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        return page_response(request, read_history(caller_of(request), table, sys_id, request.query_params))


class ChangeFeedView(JsonView):
    http_method_names = ["get", "head"]

    def get(self, request: Request, table: str) -> HttpResponse:
        page = read_feed(caller_of(request), table, request.query_params)
        response = enveloped(page.blocks, cursor=page.cursor)
        set_ignored_fields(response, page.ignored)
        set_next_page(request, response, {CURSOR_PARAMETER: page.cursor} if page.goes_on else {})
        return response
