"""The steps that every request passes, in this order. A step that refuses a request raises an error."""

import ipaddress
import os
import random
import re
import time
import uuid
from collections import Counter as Counts
from functools import cache
from typing import Any
from urllib.parse import quote

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject
from django_prometheus.conf import PROMETHEUS_LATENCY_BUCKETS
from prometheus_client import Counter, Histogram

from system import errors
from system.background import hourly_counts

# The former name, so that filters of log lines still work.
logger = structlog.get_logger("system.http.middleware")

# Polled by machines, so they are not logged and have no session.
UNLOGGED_PATHS = ("/healthz", "/readyz", "/metrics", "/static/")
REQUEST_ID_PATTERN = re.compile(r"[A-Za-z0-9._-]{1,64}")
ID_GENERATOR = random.Random()  # noqa: S311  (request IDs are not secret)
os.register_at_fork(after_in_child=ID_GENERATOR.seed)
CONTENT_LENGTH_PATTERN = re.compile(r"[0-9]{0,15}")


def use_forwarded_headers(request: HttpRequest) -> None:
    """Use X-Forwarded-For and X-Forwarded-Proto of trusted proxies, and remove them from all requests."""
    forwarded_for = request.META.pop("HTTP_X_FORWARDED_FOR", "")
    protocol = request.META.pop("HTTP_X_FORWARDED_PROTO", "")
    if not (forwarded_for or protocol) or not _is_trusted_proxy(request.META.get("REMOTE_ADDR", "")):
        return
    if forwarded_for:
        request.META["REMOTE_ADDR"] = _client_address(forwarded_for)
    if protocol == "https":
        request.META["wsgi.url_scheme"] = "https"


def _client_address(forwarded_for: str) -> str:
    """The last address that was not added by a trusted proxy."""
    address = ""
    for part in reversed(forwarded_for.split(",")):
        address = part.strip()
        try:
            ipaddress.ip_address(address)
        except ValueError:
            raise errors.BadRequest("The X-Forwarded-For header is malformed.") from None
        if not _is_trusted_proxy(address):
            return address
    return address


def _is_trusted_proxy(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    # A server that also listens on IPv6 sees IPv4 peers as mapped addresses.
    parsed = getattr(parsed, "ipv4_mapped", None) or parsed
    return any(parsed in network for network in settings.TRUSTED_PROXIES)


def set_request_id(request: HttpRequest) -> str:
    """Set and return the ID of this request for its log lines, response and background tasks."""
    request_id: str = request.META.get("HTTP_X_REQUEST_ID", "")
    if not REQUEST_ID_PATTERN.fullmatch(request_id):
        # Not `uuid4`: while it reads from the system, another thread takes the interpreter lock.
        request_id = str(uuid.UUID(int=ID_GENERATOR.getrandbits(128), version=4))
    structlog.contextvars.bind_contextvars(request_id=request_id)
    return request_id


def log_request(request: HttpRequest, status: int) -> None:
    """Log one line without the query string, unless an exception of the request was already logged."""
    has_failed = request.__dict__.pop("_raised_exception", None) is not None
    if has_failed or (status < 500 and request.path.startswith(UNLOGGED_PATHS)):
        return
    log = logger.error if status >= 500 else logger.warning if status >= 400 else logger.info
    log("request_finished", code=status, request=method_and_path(request), user_id=loaded_user_id(request))


def method_and_path(request: HttpRequest) -> str:
    return f"{request.method} {quote(request.path)}"


def loaded_user(request: HttpRequest) -> Any:
    """The caller if already loaded. The database is not queried, because it may be unavailable."""
    user = request.__dict__.get("user")  # set by the credentials, or lazy for a session
    is_loaded = user is not None and not isinstance(user, SimpleLazyObject) and user.is_authenticated
    return user if is_loaded else getattr(request, "_cached_user", None)


def loaded_user_id(request: HttpRequest) -> str | None:
    return getattr(loaded_user(request), "pk", None)


def check_request_head(request: HttpRequest, max_query: int = settings.MAX_QUERY_STRING) -> None:
    """Refuse a request whose URL or headers are too long or malformed, before anything reads them."""
    if len(request.META.get("QUERY_STRING", "")) > max_query:
        raise errors.QueryTooLong()
    if len(request.path) > settings.MAX_QUERY_STRING:
        raise errors.QueryTooLong("The URL is too long.")
    if "\x00" in request.path:
        raise errors.NotFound()  # PostgreSQL cannot store this character, so nothing has such a name
    # A chunked body has no length, so Django would treat it as empty.
    if "HTTP_TRANSFER_ENCODING" in request.META and not request.META.get("CONTENT_LENGTH"):
        raise errors.LengthRequired()
    if not CONTENT_LENGTH_PATTERN.fullmatch(str(request.META.get("CONTENT_LENGTH") or "")):
        raise errors.BadRequest("The Content-Length header is malformed.")
    if "HTTP_CONTENT_ENCODING" in request.META:
        raise errors.UnsupportedMediaType("Send the body without Content-Encoding.")


def check_body_size(request: HttpRequest, view: Any) -> None:
    """Refuse a body that is too large. Views that accept larger bodies have an attribute `body_limit`."""
    length = int(request.META.get("CONTENT_LENGTH") or 0)
    if length:
        view_class = getattr(view, "view_class", getattr(view, "cls", view))
        if length > getattr(view_class, "body_limit", settings.DATA_UPLOAD_MAX_MEMORY_SIZE):
            raise errors.TooLarge()


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


@hourly_counts.TOTALS.register
def response_totals() -> Counts[str]:
    """The responses of this process since it started, without those to probes and Prometheus."""
    totals: Counts[str] = Counts()
    for sample in (sample for metric in RESPONSES.collect() for sample in metric.samples):
        if sample.name.endswith("_total") and not sample.labels["view"].startswith("system.monitoring."):
            kind = {"4": hourly_counts.REFUSALS, "5": hourly_counts.FAILURES}.get(sample.labels["status"][0])
            totals.update(dict.fromkeys(filter(None, (hourly_counts.REQUESTS, kind)), int(sample.value)))
    return totals


POLICY_TEMPLATE = (
    "default-src 'none'; script-src 'self'{script}; style-src 'self'{style}; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
PAGE_POLICY = POLICY_TEMPLATE.format(script="", style="")
# The admin theme uses Alpine, which evaluates attributes, and its widgets set style attributes.
ADMIN_POLICY = POLICY_TEMPLATE.format(script=" 'unsafe-eval'", style=" 'unsafe-inline'")
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not `no-referrer`: with it Chromium sends `Origin: null`, which fails the CSRF check.
    "Referrer-Policy": "strict-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
}


def add_security_headers(request: HttpRequest, response: HttpResponse) -> None:
    """Add the headers that every response has, including errors. A view can set its own policy."""
    is_admin, is_static = request.path.startswith("/admin/"), request.path.startswith(settings.STATIC_URL)
    # Setting headers one by one would check their characters again.
    headers: Any = response.headers
    headers._store = security_headers(settings.SECURE_HSTS_SECONDS, is_admin, is_static) | headers._store


@cache
def security_headers(hsts_s: int, is_admin: bool, is_static: bool) -> dict[str, tuple[str, str]]:
    """By name in lower case, as Django stores the headers of a response."""
    headers = {**SECURITY_HEADERS, "Content-Security-Policy": ADMIN_POLICY if is_admin else PAGE_POLICY}
    if hsts_s:
        headers["Strict-Transport-Security"] = f"max-age={hsts_s}"
    if not is_static:
        headers["Cache-Control"] = "no-store"
    return {name.lower(): (name, value) for name, value in headers.items()}
