"""In charge of what a sign-in asks the provider: the code's tokens and the user's data."""

import base64
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from sso.models import OidcSetting
from sso.provider.discovery import Endpoints, policy
from sso.refusals import SignInRefused
from system import encryption, outbound
from system.outbound import Answer, OutboundError
from system.outbound.deadline import Deadline

CLIENT_ERRORS = ("invalid_client", "unauthorized_client")
# It would go on at another time.
AWAY = ("server_error", "temporarily_unavailable")
WORD = re.compile(r"[a-z_]{1,64}")
SENDABLE = re.compile(r"[\x21-\x7e]{1,16384}")


@dataclass(frozen=True)
class Tokens:
    """What a code was redeemed for."""

    id_token: str = field(repr=False)
    access_token: str | None = field(repr=False)


@dataclass(frozen=True)
class Redemption:
    """A code with what proves that it is ours."""

    code: str = field(repr=False)
    verifier: str = field(repr=False)
    redirect_uri: str


def redeem(setting: OidcSetting, known: Endpoints, redemption: Redemption, deadline: Deadline) -> Tokens:
    """The tokens of a code."""
    answer = ask_for_tokens(setting, known, redemption, deadline)
    if answer.status != 200:
        raise rejected(answer)
    found = answered_object(answer, "token_answer")
    id_token, access_token = found.get("id_token"), found.get("access_token")
    if not isinstance(id_token, str):
        raise SignInRefused("token_answer", "The token endpoint gave no ID token.")
    if access_token is not None and not (isinstance(access_token, str) and SENDABLE.fullmatch(access_token)):
        raise SignInRefused("token_answer", "The access token is no text that can be sent.")
    if str(found.get("token_type", "Bearer")).lower() != "bearer":
        raise SignInRefused("token_answer", "The access token is not of type Bearer.")
    return Tokens(id_token, access_token)


def ask_for_tokens(setting: OidcSetting, known: Endpoints, redemption: Redemption, deadline: Deadline) -> Answer:
    form = {
        "grant_type": "authorization_code",
        "code": redemption.code,
        "redirect_uri": redemption.redirect_uri,
        "code_verifier": redemption.verifier,
    }
    headers: dict[str, str] = {}
    secret = client_secret(setting)
    if not known.token:
        raise SignInRefused("provider_unresolved", "The provider has no token endpoint.")
    if secret and takes_basic(known):
        headers["Authorization"] = basic(setting.client_id, secret)
    else:
        form |= {"client_id": setting.client_id} | ({"client_secret": secret} if secret else {})
    with calling(deadline, too_large="token_answer"):
        within = policy().within(deadline.left())
        return outbound.post_form(known.token, form, within, headers=headers, allow_query=True)


def authorization_address(known: Endpoints, asked: Mapping[str, str]) -> str:
    """Where a browser goes to be asked who it is."""
    return f"{known.authorization}{'&' if urlsplit(known.authorization).query else '?'}{urlencode(asked)}"


def client_secret(setting: OidcSetting) -> str:
    """With PKCE we are a public client, whatever secret is stored."""
    if setting.authorization_type != setting.AuthorizationType.CODE:
        return ""
    try:
        return setting.secret
    except encryption.Undecipherable as error:
        raise SignInRefused("not_available", str(error)) from None


def takes_basic(known: Endpoints) -> bool:
    """HTTP Basic unless the provider only takes the secret in the form."""
    methods = known.token_auth_methods
    return "client_secret_basic" in methods or "client_secret_post" not in methods


def basic(client_id: str, secret: str) -> str:
    """Both are form-encoded first (RFC 6749, 2.3.1).

    >>> basic("a b", "c:d")
    'Basic YSUyMGI6YyUzQWQ='
    """
    pair = f"{quote(client_id, safe='')}:{quote(secret, safe='')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def userinfo(known: Endpoints, access_token: str | None, deadline: Deadline) -> Mapping[str, Any]:
    """What the provider says about the user beside the ID token; nothing where it has no such endpoint."""
    if not known.userinfo:
        return {}
    if not access_token:
        raise SignInRefused("token_answer", "The token endpoint gave no access token to ask for the user's data with.")
    with calling(deadline, too_large="userinfo_answer"):
        within = policy().within(deadline.left())
        header = {"Authorization": f"Bearer {access_token}"}
        answer = outbound.get(known.userinfo, within, headers=header, allow_query=True)
    if answer.status != 200:
        if answer.status >= 500 or answer.status == 429:
            raise SignInRefused("provider_unavailable", f"The userinfo endpoint answered {answer.status}.")
        raise SignInRefused("userinfo_answer", f"The userinfo endpoint answered {answer.status}.")
    return answered_object(answer, "userinfo_answer")


@contextmanager
def calling(deadline: Deadline, *, too_large: str) -> Iterator[None]:
    """What goes wrong on the way is the provider's absence, a broken answer too; one that is too large is an answer."""
    try:
        yield
    except TimeoutError:
        detail = f"The provider did not answer everything within {deadline.seconds:g} s."
        raise SignInRefused("provider_unavailable", detail) from None
    except OutboundError as error:
        raise SignInRefused(too_large if error.code == "too_large" else "provider_unavailable", error.message) from None


def rejected(answer: Answer) -> SignInRefused:
    """Why the token endpoint gives no tokens."""
    if answer.status >= 500 or answer.status == 429:
        return SignInRefused("provider_unavailable", f"The token endpoint answered {answer.status}.")
    word = error_of(answer)
    code = "client_rejected" if word in CLIENT_ERRORS else "code_rejected"
    return SignInRefused(code, f"The token endpoint answered {answer.status}, {word or 'no reason'}.")


def error_of(answer: Answer) -> str:
    """Of the token endpoint's own words only the code of the standard is kept."""
    try:
        said = answer.json()
    except OutboundError:
        return ""
    error = said.get("error") if isinstance(said, dict) else None
    return error if isinstance(error, str) and WORD.fullmatch(error) else ""


def answered_object(answer: Answer, code: str) -> Mapping[str, Any]:
    try:
        found = answer.json()
    except OutboundError as error:
        raise SignInRefused(code, error.message) from None
    if not isinstance(found, dict):
        raise SignInRefused(code, "The answer is no JSON object.")
    return found
