"""The pages for errors that Django itself finds."""

from collections.abc import Callable
from typing import Any

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse

from system import errors
from system.http import error_responses

# As Django says it: with the page of another site, not with one of ours that is out of date.
FROM_ELSEWHERE = ("Origin checking failed", "Referer checking failed")


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if isinstance(exception, DisallowedHost):
        return error_responses.answer(
            request, errors.BadRequest("This service does not answer to that host name (ALLOWED_HOSTS).")
        )
    return error_responses.answer(request, errors.BadRequest("The request cannot be understood."))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A view to which others post by nature says in its own way, by `forged`, what is wrong with that."""
    is_from_elsewhere = reason.startswith(FROM_ELSEWHERE)
    view = getattr(request.resolver_match.func, "view_class", None) if request.resolver_match else None
    answer: Callable[[HttpRequest], HttpResponse] | None = getattr(view, "forged", None)
    if answer is not None and is_from_elsewhere:
        return answer(request)
    return error_responses.answer(
        request, errors.AccessDenied("This page was open too long or in another window. Go back, reload it, try again.")
    )


def denied(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_responses.answer(request, errors.AccessDenied())


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_responses.answer(request, errors.NotFound())


class ServerFault(errors.ServiceError):
    status = 500
    code = "internal"
    message = "Something went wrong on our side. It was logged with the request's id."


def fault(request: HttpRequest, *_: Any) -> HttpResponse:
    return error_responses.answer(request, ServerFault())
