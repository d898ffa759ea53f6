"""The middleware of every request: security headers, trusted proxies, request log, limits, acting user."""

import ipaddress
import re
import secrets
import uuid
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import quote

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.common import CommonMiddleware
from django.utils.functional import SimpleLazyObject
from django_structlog.middlewares import RequestMiddleware

from system import errors
from system.http import error_responses
from system.records import acting_user

logger = structlog.get_logger(__name__)

Handler = Callable[[HttpRequest], HttpResponse]

STRICT = (
    "default-src 'none'; script-src 'self'{script}; style-src 'self'{style}; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
POLICY = STRICT.format(script="", style="")
# The admin theme's Alpine evaluates its attributes, and its widgets set style attributes.
ADMIN_POLICY = STRICT.format(script=" 'unsafe-eval'", style=" 'unsafe-inline'")

# Polled by machines, so they are not logged and have no session.
QUIET = ("/healthz", "/readyz", "/metrics", "/static/")

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "strict-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
}


class SecurityHeaders:
    """Adds these headers to every response, including errors; a view can set its own policy."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        for name, value in HEADERS.items():
            response.setdefault(name, value)
        is_admin = request.path.startswith("/admin/")
        response.setdefault("Content-Security-Policy", ADMIN_POLICY if is_admin else POLICY)
        if settings.SECURE_HSTS_SECONDS:
            response.setdefault("Strict-Transport-Security", f"max-age={settings.SECURE_HSTS_SECONDS}")
        if not request.path.startswith(settings.STATIC_URL):
            response.setdefault("Cache-Control", "no-store")
        return response


def policy_with_nonce() -> tuple[str, str]:
    """A policy for a page with one inline script, and the nonce that the script must carry."""
    nonce = secrets.token_urlsafe(16)
    return STRICT.format(script=f" 'nonce-{nonce}'", style=" 'unsafe-inline'"), nonce


class TrustedProxies:
    """Uses X-Forwarded-For and X-Forwarded-Proto of trusted proxies, and removes them from all other requests."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        forwarded_for = request.META.pop("HTTP_X_FORWARDED_FOR", "")
        protocol = request.META.pop("HTTP_X_FORWARDED_PROTO", "")
        peer = request.META.get("REMOTE_ADDR", "")
        if forwarded_for and self._is_trusted(peer):
            caller = self._caller(forwarded_for)
            if caller is None:
                return error_responses.answer(request, errors.BadRequest("The header X-Forwarded-For is malformed."))
            request.META["REMOTE_ADDR"] = caller
        if protocol == "https" and self._is_trusted(peer):
            request.META["wsgi.url_scheme"] = "https"
        return self.get_response(request)

    def _caller(self, forwarded_for: str) -> str | None:
        """The last address that was not added by a trusted proxy; None if the header is malformed."""
        caller = None
        for part in reversed(forwarded_for.split(",")):
            caller = part.strip()
            try:
                ipaddress.ip_address(caller)
            except ValueError:
                return None
            if not self._is_trusted(caller):
                return caller
        return caller

    def _is_trusted(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        # A server that also listens on IPv6 sees IPv4 peers as mapped addresses.
        parsed = getattr(parsed, "ipv4_mapped", None) or parsed
        return any(parsed in network for network in settings.TRUSTED_PROXIES)


class RequestLog(RequestMiddleware):
    """Logs one line per request, with an ID that the response and background tasks also carry; never the query string.

    The base class logs exceptions. Its own start and end are skipped, because nothing listens to their signals.
    """

    WELL_FORMED_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

    def __call__(self, request: HttpRequest) -> HttpResponse:
        header = request.META.get("HTTP_X_REQUEST_ID", "")
        request_id = header if self.WELL_FORMED_ID.fullmatch(header) else str(uuid.uuid4())
        structlog.contextvars.bind_contextvars(request_id=request_id)
        try:
            response = cast(HttpResponse, self.get_response(request))
            response["X-Request-ID"] = request_id
            self.log(request, response.status_code)
            return response
        finally:
            structlog.contextvars.clear_contextvars()

    def log(self, request: HttpRequest, status: int) -> None:
        """Log the request, unless its exception has been logged already."""
        has_failed = request.__dict__.pop("_raised_exception", None) is not None
        if has_failed or (status < 500 and request.path.startswith(QUIET)):
            return
        log = logger.error if status >= 500 else logger.warning if status >= 400 else logger.info
        log("request_finished", code=status, request=self.format_request(request), user_id=self.user_id(request))

    @staticmethod
    def user_id(request: HttpRequest) -> str | None:
        """The caller, if already loaded, because the database may be unavailable."""
        user = getattr(request, "_cached_user", None) or request.__dict__.get("user")
        return getattr(user, "pk", None) if not isinstance(user, SimpleLazyObject) else None

    @classmethod
    def bind_user_id(cls, request: HttpRequest) -> None:
        structlog.contextvars.bind_contextvars(user_id=cls.user_id(request))

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        return f"{request.method} {quote(request.path)}"


class RequestLimits:
    """Refuses requests that are too large before anything reads them."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        refusal = self._refusal(request)
        return error_responses.answer(request, refusal) if refusal else self.get_response(request)

    def _refusal(self, request: HttpRequest) -> errors.ServiceError | None:
        if len(request.META.get("QUERY_STRING", "")) > settings.MAX_QUERY_STRING:
            return errors.QueryTooLong()
        if "\x00" in request.path:
            return errors.NotFound()  # PostgreSQL cannot store this character, so nothing has such a name
        # The server read the body in chunks; without a length Django would treat it as empty.
        if "HTTP_TRANSFER_ENCODING" in request.META and not request.META.get("CONTENT_LENGTH"):
            return errors.LengthRequired()
        if not re.fullmatch(r"[0-9]{0,15}", str(request.META.get("CONTENT_LENGTH") or "")):
            return errors.BadRequest("The header Content-Length is malformed.")
        if "HTTP_CONTENT_ENCODING" in request.META:
            return errors.UnsupportedMedia("Send the body without Content-Encoding.")
        return None

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], positional: Any, named: Any
    ) -> HttpResponse | None:
        """A view that accepts larger bodies has an attribute `body_limit`."""
        view_class = getattr(view, "view_class", getattr(view, "cls", view))
        limit = getattr(view_class, "body_limit", settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        length = int(request.META.get("CONTENT_LENGTH") or 0)
        return error_responses.answer(request, errors.TooLarge()) if length > limit else None


class HostNames(CommonMiddleware):
    """Refuses host names that are not allowed. Probes are exempt, because they use the IP address."""

    PROBES = ("/healthz", "/readyz")

    def process_request(self, request: HttpRequest) -> HttpResponse | None:  # type: ignore[override]
        return None if request.path in self.PROBES else super().process_request(request)


class CurrentActor:
    """Sets the acting user to the signed-in user, and turns exceptions of views into responses."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        try:
            with acting_user.acting_as(self._signed_in(request)):
                return self.get_response(request)
        except Exception as error:  # the session's user could not be read
            return self._answer_or_raise(request, error)

    def _signed_in(self, request: HttpRequest) -> str | None:
        # Programs authenticate with each request, and /healthz must not need the database.
        is_program = request.path.startswith((*settings.PROGRAM_PATHS, *QUIET))
        if is_program or settings.SESSION_COOKIE_NAME not in request.COOKIES:
            return None
        user = request.user
        return str(user.pk) if user.is_authenticated else None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        service_error = error_responses.to_service_error(error)
        return error_responses.answer(request, service_error) if service_error else None

    def _answer_or_raise(self, request: HttpRequest, error: Exception) -> HttpResponse:
        service_error = error_responses.to_service_error(error)
        if service_error is None:
            raise error
        return error_responses.answer(request, service_error)
