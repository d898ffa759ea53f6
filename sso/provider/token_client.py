"""Requests to the provider during a sign-in: tokens for a code, and the user's data."""

import base64
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from sso.provider.discovery import Endpoints, provider_policy
from sso.refusals import Refusal, SignInRefused
from system import encryption, outbound
from system.outbound import OutboundError, OutboundResponse, Policy
from system.outbound.deadline import Deadline

if TYPE_CHECKING:
    from sso.models import OidcSetting

CLIENT_ERRORS = ("invalid_client", "unauthorized_client")
# Errors that a retry may resolve.
TEMPORARY_ERRORS = ("server_error", "temporarily_unavailable")
ERROR_CODE_PATTERN = re.compile(r"[a-z_]{1,64}")
TOKEN_PATTERN = re.compile(r"[\x21-\x7e]{1,16384}")


def redeem_code(endpoints: Endpoints, payload: Mapping[str, str], deadline: Deadline) -> dict[str, str | None]:
    """Exchange a code for `id_token` and, if there is one, `access_token`.

    `payload` is the form of a token request, including client ID and secret.
    """
    response = request_tokens(endpoints, payload, deadline)
    if response.status != 200:
        raise token_refusal(response)
    document = parse_json_object(response, Refusal.TOKEN_ANSWER)
    id_token, access_token = document.get("id_token"), document.get("access_token")
    if not isinstance(id_token, str):
        raise SignInRefused(Refusal.TOKEN_ANSWER, "The token endpoint returned no ID token.")
    if access_token is not None and not (isinstance(access_token, str) and TOKEN_PATTERN.fullmatch(access_token)):
        raise SignInRefused(
            Refusal.TOKEN_ANSWER,
            "The access token must consist of 1 to 16,384 printable ASCII characters without spaces.",
        )
    if str(document.get("token_type", "Bearer")).lower() != "bearer":
        raise SignInRefused(Refusal.TOKEN_ANSWER, "The access token is not of type Bearer.")
    return {"id_token": id_token, "access_token": access_token}


def request_tokens(endpoints: Endpoints, payload: Mapping[str, str], deadline: Deadline) -> OutboundResponse:
    if not endpoints.token_endpoint:
        raise SignInRefused(Refusal.PROVIDER_UNRESOLVED, "The provider has no token endpoint.")
    form = {name: value for name, value in payload.items() if value}
    headers: dict[str, str] = {}
    methods = endpoints.token_auth_methods
    # HTTP Basic, unless the provider accepts the secret only in the form.
    if "client_secret" in form and ("client_secret_basic" in methods or "client_secret_post" not in methods):
        headers["Authorization"] = basic_header(form.pop("client_id"), form.pop("client_secret"))
    with provider_call(deadline, too_large_refusal=Refusal.TOKEN_ANSWER) as policy:
        return outbound.post_form(endpoints.token_endpoint, form, policy, headers=headers)


def authorization_url(endpoints: Endpoints, parameters: Mapping[str, str]) -> str:
    """The URL to which the browser is redirected to sign in."""
    separator = "&" if urlsplit(endpoints.authorization_endpoint).query else "?"
    return f"{endpoints.authorization_endpoint}{separator}{urlencode(parameters)}"


def client_secret(setting: "OidcSetting") -> str:
    """Return the client secret; empty for PKCE, a public client, and for the fragment flow, which exchanges no code."""
    is_code_flow = setting.response_type == setting.ResponseType.CODE
    if not is_code_flow or setting.authorization_type != setting.AuthorizationType.CODE:
        return ""
    try:
        return setting.decrypted_client_secret
    except encryption.DecryptionFailed as error:
        raise SignInRefused(Refusal.NOT_AVAILABLE, str(error)) from None


def basic_header(client_id: str, secret: str) -> str:
    """Client ID and secret are form-encoded first (RFC 6749, section 2.3.1).

    >>> basic_header("a b", "c:d")
    'Basic YSUyMGI6YyUzQWQ='
    """
    pair = f"{quote(client_id, safe='')}:{quote(secret, safe='')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def fetch_userinfo(endpoints: Endpoints, access_token: str | None, deadline: Deadline) -> Mapping[str, Any]:
    """Fetch the user's claims from the userinfo endpoint; empty if the provider does not have one."""
    if not endpoints.userinfo_endpoint:
        return {}
    if not access_token:
        raise SignInRefused(Refusal.TOKEN_ANSWER, "The token endpoint returned no access token for userinfo.")
    headers = {"Authorization": f"Bearer {access_token}"}
    with provider_call(deadline, too_large_refusal=Refusal.USERINFO_ANSWER) as policy:
        response = outbound.get(endpoints.userinfo_endpoint, policy, headers=headers)
    if response.status != 200:
        if response.status >= 500 or response.status == 429:
            raise SignInRefused(Refusal.PROVIDER_UNAVAILABLE, f"The userinfo endpoint returned HTTP {response.status}.")
        raise SignInRefused(Refusal.USERINFO_ANSWER, f"The userinfo endpoint returned HTTP {response.status}.")
    return parse_json_object(response, Refusal.USERINFO_ANSWER)


@contextmanager
def provider_call(deadline: Deadline, *, too_large_refusal: Refusal) -> Iterator[Policy]:
    """The policy of a call. Refuses with `too_large_refusal` or, if the call fails, as PROVIDER_UNAVAILABLE."""
    try:
        yield provider_policy().limited_to(deadline.remaining_s())
    except TimeoutError:
        detail = f"The provider did not respond within {deadline.seconds:g} s."
        raise SignInRefused(Refusal.PROVIDER_UNAVAILABLE, detail) from None
    except OutboundError as error:
        refusal = too_large_refusal if error.code == "too_large" else Refusal.PROVIDER_UNAVAILABLE
        raise SignInRefused(refusal, error.message) from None


def token_refusal(response: OutboundResponse) -> SignInRefused:
    """Why the token endpoint returned no tokens."""
    if response.status >= 500 or response.status == 429:
        return SignInRefused(Refusal.PROVIDER_UNAVAILABLE, f"The token endpoint returned HTTP {response.status}.")
    error = error_code(response)
    refusal = Refusal.CLIENT_REJECTED if error in CLIENT_ERRORS else Refusal.CODE_REJECTED
    return SignInRefused(refusal, f"The token endpoint returned HTTP {response.status} ({error or 'no error code'}).")


def error_code(response: OutboundResponse) -> str:
    """The token endpoint's error code; its description is never used."""
    try:
        document = response.json()
    except OutboundError:
        return ""
    error = document.get("error") if isinstance(document, dict) else None
    return error if isinstance(error, str) and ERROR_CODE_PATTERN.fullmatch(error) else ""


def parse_json_object(response: OutboundResponse, refusal: Refusal) -> Mapping[str, Any]:
    try:
        document = response.json()
    except OutboundError as error:
        raise SignInRefused(refusal, error.message) from None
    if not isinstance(document, dict):
        raise SignInRefused(refusal, "The response is not a JSON object.")
    return document
