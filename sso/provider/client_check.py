"""Checks whether a provider accepts this service, without a sign-in: sends an invalid code to its token endpoint and a
`prompt=none` request to its authorization endpoint."""

import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from mozilla_django_oidc.utils import generate_code_challenge

from sso.provider import token_client
from sso.provider.discovery import Endpoints, provider_policy
from sso.refusals import SignInRefused
from system import outbound
from system.outbound import OutboundError
from system.outbound.deadline import Deadline

if TYPE_CHECKING:
    from sso.models import OidcSetting

# Errors of a provider that accepts the client and Redirect URI, but needs interaction with the user.
INTERACTION_ERRORS = frozenset(
    {"login_required", "interaction_required", "consent_required", "account_selection_required"}
)

CLIENT_REJECTED = (
    "The provider rejected the client ID or client secret ({error}). Check both in the provider's client settings."
)
PUBLIC_CLIENT_REJECTED = (
    "The provider rejected the client ID ({error}). Check the client ID, and make the client public at the provider. "
    "If the client must stay confidential, choose Authorization Code Flow and enter the client secret."
)
REDIRECT_URI_REJECTED = (
    "The provider rejected the sign-in request (HTTP 400). Register exactly this Redirect URI at the provider. "
    "Check the client ID."
)
REQUEST_REJECTED = (
    "The provider rejected the sign-in request ({error}). Check that its client settings allow the Scope, Response "
    "type and Authorization type."
)
SECRET_NOT_SENT = "The stored client secret was not sent because the provider changed. Enter the secret to test it."
CHECK_INCONCLUSIVE = "{subject} could not be checked with this provider. To test it, sign in."


class _InconclusiveResponse(Exception):
    """The response does not show whether the provider accepts this service."""


def check_client(
    setting: "OidcSetting", endpoints: Endpoints, deadline: Deadline, *, may_send_secret: bool
) -> tuple[list[str], list[str]]:
    """What the provider rejects, and what could not be checked."""
    problems: list[str] = []
    unchecked_notes: list[str] = []
    is_code_flow = setting.response_type == setting.ResponseType.CODE
    if is_code_flow and setting.authorization_type == setting.AuthorizationType.CODE and not may_send_secret:
        unchecked_notes.append(SECRET_NOT_SENT)
    elif is_code_flow:
        _collect(problems, unchecked_notes, "The client ID or secret", _client_problems(setting, endpoints, deadline))
    _collect(problems, unchecked_notes, "The Redirect URI", _redirect_uri_problems(setting, endpoints, deadline))
    return problems, unchecked_notes


def _collect(problems: list[str], unchecked_notes: list[str], subject: str, new_problems: Iterator[str]) -> None:
    try:
        problems.extend(new_problems)
    except _InconclusiveResponse:
        unchecked_notes.append(CHECK_INCONCLUSIVE.format(subject=subject))


def _client_problems(setting: "OidcSetting", endpoints: Endpoints, deadline: Deadline) -> Iterator[str]:
    """A token endpoint checks the client before the code (RFC 6749, section 5.2)."""
    try:
        payload = {
            "client_id": setting.client_id,
            "client_secret": token_client.client_secret(setting),
            "grant_type": "authorization_code",
            "code": secrets.token_urlsafe(32),
            "redirect_uri": setting.redirect_uri,
            "code_verifier": secrets.token_urlsafe(32),
        }
        error = token_client.error_code(token_client.request_tokens(endpoints, payload, deadline))
    except SignInRefused as refusal:
        yield f"The token endpoint cannot be used. {refusal.detail}"
        return
    if error in token_client.CLIENT_ERRORS:
        is_public = setting.authorization_type == setting.AuthorizationType.PKCE
        yield (PUBLIC_CLIENT_REJECTED if is_public else CLIENT_REJECTED).format(error=error)
    elif error != "invalid_grant":
        raise _InconclusiveResponse


def _redirect_uri_problems(setting: "OidcSetting", endpoints: Endpoints, deadline: Deadline) -> Iterator[str]:
    """Providers redirect only to registered URIs, even with an error."""
    parameters = {
        "response_type": setting.response_type,
        "client_id": setting.client_id,
        "redirect_uri": setting.redirect_uri,
        "scope": setting.scope,
        "state": secrets.token_urlsafe(16),
        "nonce": secrets.token_urlsafe(16),
        "prompt": "none",
    }
    if setting.response_type == setting.ResponseType.CODE:
        challenge = generate_code_challenge(secrets.token_urlsafe(32), "S256")
        parameters |= {"code_challenge": challenge, "code_challenge_method": "S256"}
    try:
        url = token_client.authorization_url(endpoints, parameters)
        status = outbound.get(url, provider_policy().limited_to(deadline.remaining_s())).status
    except OutboundError as error:
        code = _error_in_redirect(error.redirect_target, setting.redirect_uri)
        if code not in INTERACTION_ERRORS:
            yield REQUEST_REJECTED.format(error=code)
    except TimeoutError:
        raise _InconclusiveResponse from None
    else:
        if status != 400:  # a sign-in page, or a firewall that blocks automated requests
            raise _InconclusiveResponse
        yield REDIRECT_URI_REJECTED


def _error_in_redirect(location: str, redirect_uri: str) -> str:
    if not location.startswith(redirect_uri):
        raise _InconclusiveResponse
    parts = urlsplit(location)
    error = {**parse_qs(parts.query), **parse_qs(parts.fragment)}.get("error", [""])[0]
    if not token_client.ERROR_CODE_PATTERN.fullmatch(error) or error in token_client.TEMPORARY_ERRORS:
        raise _InconclusiveResponse
    return error
