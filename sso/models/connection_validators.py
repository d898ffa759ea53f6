"""What the columns of a connection may hold: one row for each column that is more than a field's own check.

The script is run for its check: `script_runs`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sso.provider.discovery import WELL_KNOWN, policy
from system import encryption, outbound, properties

LONGEST_SECRET = 1000
SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*")
FULL_ADDRESS = re.compile(r"https?://[\x21\x22\x24-\x7e]+")


def url_idp(given: str) -> str:
    """Host and scheme in one spelling and without a slash at the end, so that one provider is one pair."""
    try:
        found = str(outbound.check_url(given.strip(), policy()))
    except outbound.OutboundRefused as error:
        raise ValueError(error.message) from None
    return found if found.endswith(WELL_KNOWN) else found.rstrip("/")


USUAL = "usually it is this service's own with /sso/callback/ behind it."


def redirect_uri(given: str) -> str:
    """Kept byte for byte: the provider compares it so."""
    if not FULL_ADDRESS.fullmatch(given):
        raise ValueError(f"Enter a full address, with its scheme and nothing after a #; {USUAL}")
    try:
        properties.own_address(given)
    except ValueError:
        raise ValueError(f"This is no address of this service, to which people must come back; {USUAL}") from None
    return given


def scope(given: str) -> str:
    if not SCOPE.fullmatch(given):
        raise ValueError("A scope is words with single spaces between them, one of them openid.")
    if "openid" not in given.split(" "):
        raise ValueError("The scope must contain openid.")
    return given


def client_secret(stored: str) -> str:
    try:
        secret = encryption.decrypt(stored) if stored else ""
    except encryption.Undecipherable:
        # Otherwise it would stand in the database as it was given.
        raise ValueError("The client secret is not encrypted with a key of SVC_SECRET_KEYS. Enter it again.") from None
    if len(secret) > LONGEST_SECRET or not secret.isprintable():
        raise ValueError(f"A client secret has up to {LONGEST_SECRET} visible characters.")
    return stored


CHECKS: Mapping[str, Callable[[str], str]] = {
    "url_idp": url_idp,
    "redirect_uri": redirect_uri,
    "scope": scope,
    "client_secret": client_secret,
}
