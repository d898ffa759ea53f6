"""/metrics for Prometheus: only for the role `monitoring`, because it names views and how often they are used."""

import time
from typing import Any

from django.http import HttpRequest, HttpResponse
from django_prometheus.conf import PROMETHEUS_LATENCY_BUCKETS
from django_prometheus.exports import ExportToDjangoView
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from rest_framework.request import Request
from rest_framework.views import APIView

from system.errors import AccessDenied

ROLE = "monitoring"

# The names are those of django-prometheus, so that dashboards for it work. Its middleware counts a dozen more things,
# which took an eighth of the time of a small request.
RESPONSES = Counter(
    "django_http_responses_total_by_status_view_method",
    "Responses by status, view, method.",
    ["status", "view", "method"],
)
LATENCY = Histogram(
    "django_http_requests_latency_seconds_by_view_method",
    "Response time by view, method.",
    ["view", "method"],
    buckets=PROMETHEUS_LATENCY_BUCKETS,
)
# Collectors of the apps read these metrics from the database at each scrape. All other metrics are counted by each
# process.
DATABASE_REGISTRY = CollectorRegistry()
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestMetrics:
    """Counts and times every request that is within the limits."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started_at = time.perf_counter()
        response: HttpResponse = self.get_response(request)
        match = request.resolver_match
        view = (match.view_name if match else None) or "<unnamed view>"
        # Each method that a caller invents would create a new series.
        method = request.method if request.method in METHODS else "<other>"
        RESPONSES.labels(str(response.status_code), view, method).inc()
        LATENCY.labels(view, method).observe(time.perf_counter() - started_at)
        return response


class Metrics(APIView):
    schema = None

    def get(self, request: Request) -> HttpResponse:
        caller: Any = request.user
        if not caller.has_role(ROLE):
            raise AccessDenied("Metrics require the role monitoring.")
        exported: HttpResponse = ExportToDjangoView(request)
        exported.content += generate_latest(DATABASE_REGISTRY)
        return exported
