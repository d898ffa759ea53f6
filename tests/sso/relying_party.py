"""Functions that create invalid ID tokens, and the check of a refused sign-in."""

from collections.abc import Callable
from typing import Any

from sso.models import SignIn
from sso.refusals import Refusal
from tests.providers.hostile import HostileProvider
from tests.sso.sign_ins import Browser, check_refusal

CANARY = "canary-of-a-claim"

TokenFunction = Callable[[HostileProvider, dict[str, Any]], str]
"""Creates a token from the valid claims."""


def with_changed_claims(**claims: Any) -> TokenFunction:
    return lambda provider, valid_claims: provider.sign({**valid_claims, **claims})


def signed_with(**options: Any) -> TokenFunction:
    return lambda provider, valid_claims: provider.sign(valid_claims, **options)


def serve_token(provider: HostileProvider, make_token: TokenFunction) -> None:
    provider.id_token = lambda valid_claims: make_token(provider, {**valid_claims, "canary": CANARY})


def check_sign_in_refused(browser: Browser, code: str) -> SignIn:
    """Checks that a sign-in is refused with this code, and that no part of the token is shown or stored."""
    response = browser.sign_in()
    entry = check_refusal(response, code, Refusal[code.upper()].status)
    assert browser.login is None
    assert entry.user is None and CANARY not in entry.detail and CANARY.encode() not in response.content
    return entry
