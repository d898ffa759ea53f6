"""DRF's authentication classes for Basic, Bearer and sessions, and Django's backend for the pages."""

import base64
from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.http import HttpRequest, QueryDict
from drf_spectacular import authentication as openapi
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from accounts.authentication import access_keys, passwords
from accounts.models import User
from system.errors import CHALLENGE, AccessDenied, TooManyRequests, Unauthenticated
from system.http import django_request
from system.records import acting_user

MAX_HEADER_LENGTH = 4096
READ_ONLY_MESSAGE = "This access key is read-only."


def read_credentials(request: Request, scheme: str) -> str | None:
    """Returns the credentials in the Authorization header, or None if it has another scheme."""
    header: str = request.META.get("HTTP_AUTHORIZATION", "")
    if len(header) > MAX_HEADER_LENGTH:
        raise AuthenticationFailed
    scheme_name, _, credentials = header.partition(" ")
    if scheme_name.lower() != scheme:
        return None
    if not credentials.isascii():
        raise AuthenticationFailed
    return credentials.strip()


def is_read(request: HttpRequest) -> bool:
    """Views that read by POST, because their parameters can be long, have an attribute `reads_by_post`.

    A batch writes, even if it has only reads.
    """
    view = getattr(request.resolver_match.func, "cls", None) if request.resolver_match else None
    return request.method in SAFE_METHODS or (request.method == "POST" and getattr(view, "reads_by_post", False))


class ChallengeAuthentication(BaseAuthentication):
    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE


class BasicAuthentication(ChallengeAuthentication):
    def authenticate(self, request: Request) -> tuple[User, str] | None:
        encoded = read_credentials(request, "basic")
        if encoded is None:
            return None
        try:
            pair = base64.b64decode(encoded, validate=True).decode("utf-8")
        except ValueError:
            raise AuthenticationFailed from None
        login, colon, password = pair.partition(":")
        if not colon:
            raise AuthenticationFailed
        try:
            user = passwords.verify_password(login, password, request.META.get("REMOTE_ADDR", ""))
        except Unauthenticated:
            raise AuthenticationFailed from None
        except TooManyRequests as error:
            raise Throttled(wait=error.retry_after_s) from None
        acting_user.set_current(user.pk)
        return user, "basic"


class BearerAuthentication(ChallengeAuthentication):
    def authenticate(self, request: Request) -> tuple[User, str] | None:
        secret = read_credentials(request, "bearer")
        if secret is None:
            # A header with another scheme must not count as missing credentials.
            if request.META.get("HTTP_AUTHORIZATION") and read_credentials(request, "basic") is None:
                raise AuthenticationFailed
            return None
        user = access_keys.find_owner(secret)
        if user is None:
            raise AuthenticationFailed
        if user.has_read_only_key and not is_read(django_request(request)):
            raise AccessDenied(READ_ONLY_MESSAGE, code="read_only_key")
        acting_user.set_current(user.pk, user.role_names)  # a scoped key grants fewer roles than its user has
        return user, "key"


class BrowserSessionAuthentication(ChallengeAuthentication, SessionAuthentication):
    """Session authentication with CSRF protection, only for endpoints that our pages use."""

    def enforce_csrf(self, request: Request) -> None:
        # The token is sent as a header. Looking for it in a form would read the body before authentication.
        csrf_request = django_request(request)
        csrf_request.POST = QueryDict()
        super().enforce_csrf(csrf_request)  # type: ignore[arg-type]  # it needs only what Django's request has


class PasswordBackend(ModelBackend):
    """Django's backend for the pages, with the same password check."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **_: Any
    ) -> User | None:
        address = request.META.get("REMOTE_ADDR", "") if request else ""
        try:
            return passwords.verify_password(username or "", password or "", address)
        except Unauthenticated:
            return None


class BasicScheme(openapi.BasicScheme):  # type: ignore[no-untyped-call]
    target_class: Any = BasicAuthentication
    name = "password"


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = BearerAuthentication
    name = "access_key"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "access key (sb_…)"}


class SessionScheme(openapi.SessionScheme):  # type: ignore[no-untyped-call]
    target_class: Any = BrowserSessionAuthentication
    name = "session"
