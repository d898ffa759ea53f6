"""/metrics for Prometheus: for callers with the role `monitoring`, since it names addresses and their use."""

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

# Named as django-prometheus names them, so that dashboards made for it work. Its own middleware counts a dozen things
# more, which took an eighth of a small request.
RESPONSES = Counter(
    "django_http_responses_total_by_status_view_method",
    "Responses by status, view, method.",
    ["status", "view", "method"],
)
LATENCY = Histogram(
    "django_http_requests_latency_seconds_by_view_method",
    "Time of an answer by view, method.",
    ["view", "method"],
    buckets=PROMETHEUS_LATENCY_BUCKETS,
)
# What stands in the database is read from there when somebody asks, by collectors of the areas; beside it stands what
# each process counts by itself.
READ_WHEN_ASKED = CollectorRegistry()
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestMetrics:
    """Counts and times every request that passed the limits."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = time.perf_counter()
        response: HttpResponse = self.get_response(request)
        match = request.resolver_match
        view = (match.view_name if match else None) or "<unnamed view>"
        # A method of the caller's invention would make a new series each time.
        method = request.method if request.method in METHODS else "<other>"
        RESPONSES.labels(str(response.status_code), view, method).inc()
        LATENCY.labels(view, method).observe(time.perf_counter() - began)
        return response


class Metrics(APIView):
    schema = None

    def get(self, request: Request) -> HttpResponse:
        caller: Any = request.user
        if not caller.has_role(ROLE):
            raise AccessDenied("Reading metrics needs the role monitoring.")
        exported: HttpResponse = ExportToDjangoView(request)
        exported.content += generate_latest(READ_WHEN_ASKED)
        return exported
