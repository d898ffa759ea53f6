"""/metrics for Prometheus. Requires the role `monitoring`, because it shows which views are used and how often."""

from typing import Any

from django.http import HttpResponse
from django_prometheus.exports import ExportToDjangoView
from prometheus_client import CollectorRegistry, generate_latest
from rest_framework.request import Request
from rest_framework.views import APIView

from system.errors import AccessDenied
from system.monitoring import metric_files

MONITORING_ROLE = "monitoring"

# Collectors of the apps read these metrics from the database at each scrape. All other metrics are counted by each
# process.
DATABASE_REGISTRY = CollectorRegistry()


class Metrics(APIView):
    schema = None

    def get(self, request: Request) -> HttpResponse:
        caller: Any = request.user
        if not caller.has_role(MONITORING_ROLE):
            raise AccessDenied('The role "monitoring" is required to read metrics.')
        metric_files.writer.write()  # those of this process; other processes are a moment behind
        response: HttpResponse = ExportToDjangoView(request)
        response.content += generate_latest(DATABASE_REGISTRY)
        return response
