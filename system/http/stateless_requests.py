"""Serves paths without sessions: runs the steps of every request, then the view, but no middleware of pages."""

import time
from collections.abc import Callable

import structlog
from django.conf import settings
from django.core.handlers.exception import response_for_exception
from django.http import HttpRequest, HttpResponse
from django.urls import get_resolver

from system import errors
from system.http import error_responses, request_metrics, steps
from system.http.middleware import Middleware
from system.records import acting_user


class StatelessRequests(Middleware):
    """The first middleware. All others handle only pages."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(settings.STATELESS_PATHS):
            return self.get_response(request)
        try:
            steps.use_forwarded_headers(request)
            response = response_with_log(request)
        except errors.ServiceError as error:
            response = error_responses.error_response(error)
        steps.add_security_headers(request, response)
        return response


def response_with_log(request: HttpRequest) -> HttpResponse:
    request_id = steps.set_request_id(request)
    try:
        try:
            steps.check_request_head(request)
            response = response_with_metrics(request)
        except errors.ServiceError as error:
            response = error_responses.error_response(error)
        response["X-Request-ID"] = request_id
        steps.log_request(request, response.status_code)
        return response
    finally:
        structlog.contextvars.clear_contextvars()


def response_with_metrics(
    request: HttpRequest, respond: Callable[[HttpRequest], HttpResponse] | None = None
) -> HttpResponse:
    started_at = time.perf_counter()
    try:
        response = (respond or view_response)(request)
    except Exception as error:
        service_error = error_responses.to_service_error(error)
        if service_error is not None:
            response = error_responses.error_response(service_error)
        else:
            response = response_for_exception(request, error)  # wrong host names and internal errors
    if not response.has_header("Content-Length"):
        response["Content-Length"] = str(len(response.content))
    request_metrics.count_response(request, response.status_code, started_at)
    return response


def view_response(request: HttpRequest) -> HttpResponse:
    request.get_host()  # refuses names that are not allowed
    # The view sets the acting user when it reads the credentials.
    with acting_user.acting_as(None):
        return call_view(request)


def call_view(request: HttpRequest) -> HttpResponse:
    request.resolver_match = match = get_resolver().resolve(request.path_info)
    steps.check_body_size(request, match.func)
    response: HttpResponse = match.func(request, *match.args, **match.kwargs)
    render = getattr(response, "render", None)
    return render() if render else response
