"""Counts and times requests for /metrics."""

import time
from functools import cache
from typing import Any

from django.http import HttpRequest
from django_prometheus.conf import PROMETHEUS_LATENCY_BUCKETS
from prometheus_client import Counter, Histogram

# The names are those of django-prometheus, so that dashboards for it work. Its middleware counts a dozen more things,
# which took an eighth of the time of a small request.
RESPONSES = Counter(
    "django_http_responses_total_by_status_view_method",
    "Number of HTTP responses by status, view and method.",
    ["status", "view", "method"],
)
LATENCY = Histogram(
    "django_http_requests_latency_seconds_by_view_method",
    "HTTP response time in seconds by view and method.",
    ["view", "method"],
    buckets=PROMETHEUS_LATENCY_BUCKETS,
)
KNOWN_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@cache
def metrics_for(status: int, view: str, method: str) -> tuple[Any, Any]:
    """Cached without a limit, because clients cannot choose any of the three values."""
    return RESPONSES.labels(str(status), view, method), LATENCY.labels(view, method)


def count_response(request: HttpRequest, status: int, started_at: float) -> None:
    match = request.resolver_match
    view = (match.view_name if match else None) or "<unnamed view>"
    # Each method that a client invents would create a new time series.
    method = request.method if request.method in KNOWN_METHODS else "<other>"
    counter, latency = metrics_for(status, view, method)
    counter.inc()
    latency.observe(time.perf_counter() - started_at)
