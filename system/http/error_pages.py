"""The pages for errors that Django itself raises."""

from collections.abc import Callable
from typing import Any

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse

from system import errors
from system.http.error_responses import error_for_client

# Django's reasons begin with these if the form was sent by another site, and not by an outdated page of this service.
OTHER_ORIGIN_REASONS = ("Origin checking failed", "Referer checking failed")
OTHER_SITE_MESSAGE = "The service cannot verify that this form was sent by one of its own pages. Open the page again."


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    is_wrong_host = isinstance(exception, DisallowedHost)
    message = "The host name of the request is not in ALLOWED_HOSTS." if is_wrong_host else "The request is malformed."
    return error_for_client(request, errors.BadRequest(message))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Views that accept forms from other sites can define `refuse_forged_form` to respond to forged ones."""
    is_other_origin = reason.startswith(OTHER_ORIGIN_REASONS)
    view = getattr(request.resolver_match.func, "view_class", None) if request.resolver_match else None
    refuse_forged_form: Callable[[HttpRequest], HttpResponse] | None = getattr(view, "refuse_forged_form", None)
    if refuse_forged_form is not None and is_other_origin:
        return refuse_forged_form(request)
    message = "This page is out of date. Go back, reload it and try again."
    return error_for_client(request, errors.AccessDenied(OTHER_SITE_MESSAGE if is_other_origin else message))


def access_denied(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_for_client(request, errors.AccessDenied())


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_for_client(request, errors.NotFound())


class InternalServerError(errors.ServiceError):
    status = 500
    code = "internal"
    message = "An internal error occurred. It was logged with the ID of this request."


def server_error(request: HttpRequest, *_: Any) -> HttpResponse:
    return error_for_client(request, InternalServerError())
