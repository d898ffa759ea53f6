"""Turns errors into responses: JSON with `{status, error_type, errors}`, or a page."""

import errno
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import structlog
from django.conf import settings
from django.core.exceptions import (
    DisallowedHost,
    PermissionDenied,
    RequestDataTooBig,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.db import DatabaseError, DataError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.template.loader import render_to_string
from rest_framework import exceptions as drf
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request

from system import errors
from system.error_details import is_statement_timeout, sqlstate_of
from system.errors import CHALLENGE, ServiceError
from system.http import django_request
from system.http.request_body import BodyTooSlow, TooManySlowBodies
from system.http.steps import loaded_user

logger = structlog.get_logger(__name__)

RETRY_AFTER_S = 2
DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)
# Django's reasons begin with these if the form was sent by another site, and not by an outdated page of this service.
OTHER_ORIGIN_REASONS = ("Origin checking failed", "Referer checking failed")
# The body of an error for clients of another API, by the beginning of its paths; a text is HTML.
FOREIGN_ERROR_BODIES: dict[str, Callable[[ServiceError], dict[str, Any] | str]] = {}
OTHER_SITE_MESSAGE = "The service cannot verify that this form was sent by one of its own pages. Open the page again."


class JsonOnlyNegotiation(BaseContentNegotiation):
    """Always responds with JSON and ignores the Accept header."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return next((parser for parser in parsers if parser.accepts(request.content_type)), None)

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


def own_origin(request: HttpRequest) -> str:
    """The origin of this service: SVC_BASE_URL, otherwise scheme and host of the request."""
    return settings.BASE_URL or f"{request.scheme}://{request.get_host()}"


def own_url(request: HttpRequest, path: str) -> str:
    """The full URL of a path of this service: below SVC_BASE_URL, otherwise on the host of the request."""
    return f"{settings.BASE_URL}{path}" if settings.BASE_URL else request.build_absolute_uri(path)


def error_response(error: ServiceError, path: str = "") -> HttpResponse:
    """The error response of every JSON endpoint."""
    body_of = next((body for prefix, body in FOREIGN_ERROR_BODIES.items() if path.startswith(prefix)), _error_body)
    body = body_of(error)
    content, content_type = (body, "text/html") if isinstance(body, str) else (json.dumps(body), "application/json")
    response = HttpResponse(content, content_type=content_type, status=error.status)
    if error.status == 401:
        response["WWW-Authenticate"] = CHALLENGE
    if error.retry_after_s is not None or error.status in (429, 503):
        response["Retry-After"] = str(error.retry_after_s or RETRY_AFTER_S)
    response["Cache-Control"] = "no-store"
    return response


def _error_body(error: ServiceError) -> dict[str, Any]:
    return {"status": "ERROR", "error_type": "SERVER", "errors": error.as_items()}


def error_for_client(request: HttpRequest, error: ServiceError) -> HttpResponse:
    """The error response for this caller: JSON for programs, otherwise a page."""
    is_endpoint = request.path.startswith((*settings.STATELESS_PATHS, "/api/"))
    if is_endpoint or "text/html" not in request.headers.get("Accept", ""):
        return error_response(error, request.path)
    response = HttpResponse(_error_page(request, error), status=error.status)
    response["Cache-Control"] = "no-store"
    if error.status in (429, 503):
        response["Retry-After"] = str(error.retry_after_s or RETRY_AFTER_S)
    return response


def _error_page(request: HttpRequest, error: ServiceError) -> str:
    """Has the navigation of a signed-in user. Does not load the user, because the database may be unavailable."""
    user = loaded_user(request)
    is_signed_in = bool(user and user.is_authenticated)
    context = {"status": error.status, "message": error.message, "is_signed_in": is_signed_in}
    if is_signed_in and error.status < 500:
        with suppress(DatabaseError):
            return render_to_string("pages/error.html", {**context, "user": user}, request)
    return render_to_string("pages/error.html", context)


def from_drf(error: drf.APIException) -> ServiceError:
    if isinstance(error, drf.Throttled):
        return errors.TooManyRequests(retry_after_s=int(getattr(error, "wait", None) or RETRY_AFTER_S))
    if isinstance(error, drf.UnsupportedMediaType):
        return errors.UnsupportedMediaType()
    if isinstance(error, drf.ValidationError):
        # The first error of each field of a serializer.
        return errors.combine_errors(list(_field_errors(error.detail)))
    service_error = ServiceError(str(error.detail), code=str(error.get_codes()))
    service_error.status = error.status_code  # type: ignore[misc]  # 405 and 400
    return service_error


def _field_errors(detail: Any, field: str | None = None) -> Iterator[errors.InvalidInput]:
    if isinstance(detail, dict) and detail:
        for name, details in detail.items():
            yield from _field_errors(details, f"{field}.{name}" if field else name)
    elif isinstance(detail, list) and detail:
        yield from _field_errors(detail[0], field)
    else:
        code = "mandatory" if getattr(detail, "code", "") in ("required", "null", "blank") else "invalid_value"
        yield errors.InvalidInput(str(detail), code=code, field=field)


def to_service_error(error: Exception, caller: Any = None) -> ServiceError | None:
    """The error to return to the caller; None if it is an internal error.

    A statement timeout counts as the caller's only after the caller was authenticated.
    """
    match error:
        case ServiceError():
            return error
        case drf.NotAuthenticated() | drf.AuthenticationFailed():
            return errors.Unauthenticated()
        case drf.NotFound() | Http404():
            return errors.NotFound()
        case drf.PermissionDenied() | PermissionDenied():
            return errors.AccessDenied()
        case drf.APIException():
            return from_drf(error)
        case TooManySlowBodies() | UnreadablePostError(__cause__=TooManySlowBodies()):
            return errors.Unavailable()
        case DataError():
            return errors.BadRequest("A value cannot be stored or compared.")
        case BodyTooSlow() | UnreadablePostError():
            return errors.TimedOut()
        case TooManyFieldsSent():
            return errors.TooLarge("The query string or the form has too many parameters.")
        case RequestDataTooBig() | TooManyFilesSent():
            return errors.TooLarge()
        case OperationalError() if is_statement_timeout(error) and caller is not None and caller.is_authenticated:
            logger.warning("query_too_slow")
            caller.count_slow_statement()
            return errors.QueryTooSlow()
        case OperationalError() | InterfaceError():
            # Unreachable, out of connections, or a lock timeout: all are temporary.
            kind = type(error.__cause__ or error).__name__
            logger.warning("database_unavailable", kind=kind, sqlstate=sqlstate_of(error))
            return errors.Unavailable()
        case OSError() if error.errno in DISK_FULL_ERRNOS:
            logger.error("disk_full", path=error.filename)
            return errors.Unavailable()
    return None


def exception_handler(error: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """DRF's EXCEPTION_HANDLER."""
    service_error = to_service_error(error, loaded_user(django_request(context["request"])))
    if service_error is None:
        return None
    response = error_response(service_error, context["request"].path)
    if isinstance(error, drf.MethodNotAllowed):
        response["Allow"] = ", ".join(context["view"].allowed_methods)
    return response


# The handlers of errors that Django itself raises.


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
