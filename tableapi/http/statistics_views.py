"""The endpoint of statistics."""

from django.http import HttpResponse
from rest_framework.request import Request

from system.http.json_view import JsonView
from tableapi.statistics.pipeline import read_statistics

from .responses import enveloped
from .table_views import caller_of


class StatisticsView(JsonView):
    http_method_names = ["get", "head"]

    def get(self, request: Request, table: str) -> HttpResponse:
        result = read_statistics(caller_of(request), table, request.query_params)
        return enveloped([] if result.body is None else [result.body])
