"""Invalid ID tokens as functions, and the expected form of a refused sign-in."""

from collections.abc import Callable
from typing import Any

from sso.models import SignIn
from sso.refusals import Refusal
from tests.providers.hostile import HostileProvider
from tests.sso.sign_ins import Browser, refused

CANARY = "canary-of-a-claim"

Token = Callable[[HostileProvider, dict[str, Any]], str]
"""Makes a token of the claims that would be right."""


def changed(**claims: Any) -> Token:
    return lambda provider, right: provider.sign({**right, **claims})


def signed(**how: Any) -> Token:
    return lambda provider, right: provider.sign(right, **how)


def serve(provider: HostileProvider, token: Token) -> None:
    provider.id_token = lambda right: token(provider, {**right, "canary": CANARY})


def is_refused(browser: Browser, code: str) -> SignIn:
    """By its code, directly, with nobody signed in and nothing of the token anywhere."""
    response = browser.sign_in()
    entry = refused(response, code, Refusal[code.upper()].status)
    assert browser.login is None
    assert entry.user is None and CANARY not in entry.detail and CANARY.encode() not in response.content
    return entry
