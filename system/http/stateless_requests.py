"""Calls the views of paths without sessions, which need no middleware of pages."""

import time
from collections.abc import Callable

from django.core.handlers.exception import response_for_exception
from django.http import HttpRequest, HttpResponse
from django.urls import get_resolver

from system.http import error_responses, steps
from system.records import acting_user


def response_with_metrics(request: HttpRequest, respond: Callable[[HttpRequest], HttpResponse]) -> HttpResponse:
    started_at = time.perf_counter()
    try:
        response = respond(request)
    except Exception as error:
        service_error = error_responses.to_service_error(error)
        if service_error is not None:
            response = error_responses.error_response(service_error, request.path)
        else:
            response = response_for_exception(request, error)  # wrong host names and internal errors
    if not response.has_header("Content-Length"):
        response["Content-Length"] = str(len(response.content))
    steps.count_response(request, response.status_code, started_at)
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
