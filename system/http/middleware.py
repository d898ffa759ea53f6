"""The middleware of pages: each class runs one of the `steps` or extends a middleware of Django."""

import secrets
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.common import CommonMiddleware
from django_structlog.middlewares import RequestMiddleware

from system import errors
from system.http import error_responses, request_metrics, steps
from system.records import acting_user

Handler = Callable[[HttpRequest], HttpResponse]


class Middleware:
    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response


def refusal_response(step: Callable[..., None], request: HttpRequest, *arguments: Any) -> HttpResponse | None:
    """Run a step, and return the error response if it refuses the request."""
    try:
        step(request, *arguments)
    except errors.ServiceError as error:
        return error_responses.error_for_client(request, error)
    return None


class SecurityHeaders(Middleware):
    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        steps.add_security_headers(request, response)
        return response


def policy_with_nonce() -> tuple[str, str]:
    """The Content-Security-Policy of a page with one inline script, and the nonce of the script."""
    nonce = secrets.token_urlsafe(16)
    return steps.POLICY_TEMPLATE.format(script=f" 'nonce-{nonce}'", style=" 'unsafe-inline'"), nonce


class TrustedProxies(Middleware):
    def __call__(self, request: HttpRequest) -> HttpResponse:
        return refusal_response(steps.use_forwarded_headers, request) or self.get_response(request)


class RequestLog(RequestMiddleware):
    """Sets the request ID and logs the request. The base class logs exceptions (`got_request_exception`).

    The base class's `__call__` is replaced, because the signals that it sends have no receivers here.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = steps.set_request_id(request)
        try:
            response: Any = self.get_response(request)
            response["X-Request-ID"] = request_id
            steps.log_request(request, response.status_code)
            return response  # type: ignore[no-any-return]
        finally:
            structlog.contextvars.clear_contextvars()

    @classmethod
    def bind_user_id(cls, request: HttpRequest) -> None:
        structlog.contextvars.bind_contextvars(user_id=steps.loaded_user_id(request))

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        return steps.method_and_path(request)


class RequestLimits(Middleware):
    def __call__(self, request: HttpRequest) -> HttpResponse:
        return refusal_response(steps.check_request_head, request) or self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], positional: Any, named: Any
    ) -> HttpResponse | None:
        return refusal_response(steps.check_body_size, request, view)


class RequestMetrics(Middleware):
    """Counts the requests that are within the limits."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started_at = time.perf_counter()
        response = self.get_response(request)
        request_metrics.count_response(request, response.status_code, started_at)
        return response


class HostNames(CommonMiddleware):
    """Checks the host name and appends missing slashes. Probes are exempt, because they use the IP address."""

    PROBES = ("/healthz", "/readyz")

    def process_request(self, request: HttpRequest) -> HttpResponse | None:  # type: ignore[override]
        return None if request.path in self.PROBES else super().process_request(request)


class ActingUser(Middleware):
    """Sets the acting user to the signed-in user, and turns exceptions of views into responses."""

    # A limited user must still be able to sign out, and to revoke a key whose slow statements caused the limit.
    UNLIMITED_PATHS = ("/account/", "/logout/", "/admin/logout/", "/sso/")

    def __call__(self, request: HttpRequest) -> HttpResponse:
        try:
            user = self._session_user(request)
            with acting_user.acting_as(str(user.pk) if user else None), self._limit_requests(request, user):
                return self.get_response(request)
        except Exception as error:  # the session's user could not be read, or has to wait
            response = self.process_exception(request, error)
            if response is None:
                raise
            return response

    def _session_user(self, request: HttpRequest) -> Any:
        # /healthz must not need the database.
        if request.path.startswith(steps.UNLOGGED_PATHS) or settings.SESSION_COOKIE_NAME not in request.COOKIES:
            return None
        user = request.user
        return user if user.is_authenticated else None

    def _limit_requests(self, request: HttpRequest, user: Any) -> AbstractContextManager[None]:
        return nullcontext() if user is None or request.path.startswith(self.UNLIMITED_PATHS) else user.limit_requests()

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        service_error = error_responses.to_service_error(error, steps.loaded_user(request))
        return error_responses.error_for_client(request, service_error) if service_error else None
