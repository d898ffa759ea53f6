"""/metrics for Prometheus: for callers with the role `monitoring`, since it names addresses and their use."""

from typing import Any

from django.http import HttpResponse
from django_prometheus.exports import ExportToDjangoView
from rest_framework.request import Request
from rest_framework.views import APIView

from system.errors import AccessDenied

ROLE = "monitoring"


class Metrics(APIView):
    schema = None

    def get(self, request: Request) -> HttpResponse:
        caller: Any = request.user
        if not caller.has_role(ROLE):
            raise AccessDenied("Reading metrics needs the role monitoring.")
        exported: HttpResponse = ExportToDjangoView(request._request)
        return exported
