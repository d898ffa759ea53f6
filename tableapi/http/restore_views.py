"""The endpoint that restores a deleted record."""

from django.http import HttpResponse
from rest_framework.request import Request

from system.http.json_view import JsonView
from tableapi.attached import restore

from .responses import entry_response
from .table_views import caller_of


class RestoreView(JsonView):
    http_method_names = ["post"]

    def post(self, request: Request, entry: str) -> HttpResponse:
        return entry_response(restore.restore(caller_of(request), entry), 201)
