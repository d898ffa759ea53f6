"""Tokens of OAuth, as clients of ServiceNow request them: `POST /oauth_token.do` with an access key as the client."""

import base64
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.http import HttpResponse, JsonResponse
from rest_framework.parsers import FormParser
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.authentication import access_keys, passwords
from accounts.models import AccessKey
from system import properties
from system.errors import BadRequest, NotFound, ServiceError, Unauthenticated, UnsupportedMediaType
from system.http import django_request
from system.http.request_body import is_utf8_of
from system.property_definitions import SERVICENOW_ENABLED

PATH = "/oauth_token.do"
INVALID_CLIENT, INVALID_GRANT = "invalid_client", "invalid_grant"
NO_FORM = "The Content-Type header must be application/x-www-form-urlencoded."
ERROR_CODES = (INVALID_CLIENT, INVALID_GRANT, "unsupported_grant_type")


class TokenFormParser(FormParser):
    @classmethod
    def accepts(cls, content_type: str | None) -> bool:
        return is_utf8_of(cls.media_type, content_type)


class TokenView(APIView):
    http_method_names = ["post"]
    authentication_classes = ()
    permission_classes = (AllowAny,)
    parser_classes = (TokenFormParser,)
    schema = None

    def post(self, request: Request) -> HttpResponse:
        if not properties.get(SERVICENOW_ENABLED):
            raise NotFound
        refuse_plain_http(request)
        data: Any = request.data
        form = {name: str(value) for name, value in data.items()}
        key = authenticate_client(request, form)
        check_grant(request, form, key)
        access_token, refresh_token = access_keys.create_tokens(key)
        body = {
            "access_token": access_token,
            "refresh_token": refresh_token,
            "scope": "useraccount",
            "token_type": "Bearer",
            "expires_in": int(access_keys.TOKEN_LIFETIME.total_seconds()),
        }
        return JsonResponse(body, headers={"Cache-Control": "no-store"})


def refuse_plain_http(request: Request) -> None:
    http_request = django_request(request)
    is_local = ip_address(request.META.get("REMOTE_ADDR") or "::").is_loopback
    if not (http_request.is_secure() or settings.DEBUG or is_local):
        raise BadRequest("Tokens can be requested only over https.")


def authenticate_client(request: Request, form: dict[str, str]) -> AccessKey:
    """Return the key of the client, from the form or from a Basic header."""
    client_id, secret = form.get("client_id", ""), form.get("client_secret", "")
    scheme, _, credentials = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            client_id, _, secret = base64.b64decode(credentials, validate=True).decode().partition(":")
        except ValueError:
            client_id = secret = ""
    key = access_keys.find_named_key(client_id, secret)
    if key is None:
        message = "Send the id of an access key as client_id, and the key as client_secret."
        raise Unauthenticated(message, code=INVALID_CLIENT)
    return key


def check_grant(request: Request, form: dict[str, str], key: AccessKey) -> None:
    match form.get("grant_type"):
        case "client_credentials":
            return
        case "password":
            login, password = form.get("username", ""), form.get("password", "")
            try:
                user = passwords.verify_password(login, password, request.META.get("REMOTE_ADDR", ""))
            except Unauthenticated:
                user = None
            if user is None or user.pk != key.user.pk:
                message = "The login and password are not those of the owner of the key."
                raise BadRequest(message, code=INVALID_GRANT)
        case "refresh_token":
            if not access_keys.use_refresh_token(key, form.get("refresh_token", "")):
                message = "The refresh token is unknown, expired or used, or it belongs to another key."
                raise BadRequest(message, code=INVALID_GRANT)
        case _:
            message = "The grant_type must be client_credentials, password or refresh_token."
            raise BadRequest(message, code="unsupported_grant_type")


def error_body(error: ServiceError) -> dict[str, Any]:
    code = error.code if error.code in ERROR_CODES else "invalid_request"
    message = NO_FORM if isinstance(error, UnsupportedMediaType) else error.message
    return {"error": code, "error_description": message}
