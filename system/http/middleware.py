"""The middleware: the steps of every request, and the product's own middleware of pages."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.common import CommonMiddleware
from django.utils import timezone
from django_structlog.middlewares import RequestMiddleware

from system import errors
from system.http import error_responses, stateless_requests, steps
from system.records import acting_user


class RequestSteps(RequestMiddleware):
    """The first middleware: runs the steps of every request. All others handle only pages.

    The base class logs exceptions (`got_request_exception`). Its `__call__` is replaced, because the signals that it
    sends have no receivers here.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        try:
            steps.use_forwarded_headers(request)
            response = self._response_with_log(request)
        except errors.ServiceError as error:
            response = error_responses.error_for_client(request, error)
        steps.add_security_headers(request, response)
        return response

    def _response_with_log(self, request: HttpRequest) -> HttpResponse:
        request_id = steps.set_request_id(request)
        try:
            try:
                steps.check_request_head(request)
                if request.path_info.startswith(settings.STATELESS_PATHS):
                    response = stateless_requests.response_with_metrics(request, stateless_requests.view_response)
                else:
                    response = self._page_with_metrics(request)
            except errors.ServiceError as error:
                response = error_responses.error_for_client(request, error)
            response["X-Request-ID"] = request_id
            steps.log_request(request, response.status_code)
            return response
        finally:
            structlog.contextvars.clear_contextvars()

    def _page_with_metrics(self, request: HttpRequest) -> HttpResponse:
        started_at = time.perf_counter()
        response: Any = self.get_response(request)
        steps.count_response(request, response.status_code, started_at)
        return response  # type: ignore[no-any-return]

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], positional: Any, named: Any
    ) -> HttpResponse | None:
        try:
            steps.check_body_size(request, view)
        except errors.ServiceError as error:
            return error_responses.error_for_client(request, error)
        return None

    @classmethod
    def bind_user_id(cls, request: HttpRequest) -> None:
        structlog.contextvars.bind_contextvars(user_id=steps.loaded_user_id(request))

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        return steps.method_and_path(request)


class HostNames(CommonMiddleware):
    """Checks the host name and appends missing slashes. Probes are exempt, because they use the IP address."""

    PROBES = ("/healthz", "/readyz")

    def process_request(self, request: HttpRequest) -> HttpResponse | None:  # type: ignore[override]
        return None if request.path in self.PROBES else super().process_request(request)


class ActingUser:
    """Sets the acting user and the time zone to those of the session, and turns exceptions of views into responses."""

    # A limited user must still be able to sign out, and to revoke a key whose slow statements caused the limit.
    UNLIMITED_PATHS = ("/account/", "/logout/", "/admin/logout/", "/sso/")

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        try:
            user = self._session_user(request)
            is_limited = user is not None and not request.path.startswith(self.UNLIMITED_PATHS)
            limit = user.limit_requests() if is_limited else nullcontext()
            # The documents of the API have times in UTC.
            zone = None if user is None or request.path.startswith("/api/") else user.zone
            with acting_user.acting_as(str(user.pk) if user else None), timezone.override(zone), limit:
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

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        service_error = error_responses.to_service_error(error, steps.loaded_user(request))
        return error_responses.error_for_client(request, service_error) if service_error else None
