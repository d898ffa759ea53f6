"""Validators of a connection's columns, beyond a field's own checks. The script is run by `sso.connections.saving`."""

import re
from collections.abc import Callable, Mapping

from sso.provider.discovery import WELL_KNOWN, policy
from system import encryption, outbound, properties

MAX_SECRET_LENGTH = 1000
SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*")
FULL_ADDRESS = re.compile(r"https?://[\x21\x22\x24-\x7e]+")


def url_idp(value: str) -> str:
    """Host and scheme in lowercase and no trailing slash, so that one provider has one pair."""
    try:
        url = str(outbound.check_url(value.strip(), policy()))
    except outbound.OutboundRefused as error:
        raise ValueError(error.message) from None
    return url if url.endswith(WELL_KNOWN) else url.rstrip("/")


USUAL = "Usually it is the address of this service followed by /sso/callback/."


def redirect_uri(value: str) -> str:
    """Kept byte for byte, as the provider compares it."""
    if not FULL_ADDRESS.fullmatch(value):
        raise ValueError(f"Enter a full address, with a scheme and without a fragment (#). {USUAL}")
    try:
        properties.check_own_url(value)
    except ValueError:
        raise ValueError(f"This is not an address of this service. {USUAL}") from None
    return value


def scope(value: str) -> str:
    if not SCOPE.fullmatch(value):
        raise ValueError("A scope must be a list of words separated by single spaces.")
    if "openid" not in value.split(" "):
        raise ValueError("The scope must include openid.")
    return value


def client_secret(value: str) -> str:
    try:
        secret = encryption.decrypt(value) if value else ""
    except encryption.DecryptionFailed:
        # Otherwise it would be stored in plain text.
        raise ValueError("The client secret is not encrypted with a key in SVC_SECRET_KEYS. Enter it again.") from None
    if len(secret) > MAX_SECRET_LENGTH or not secret.isprintable():
        raise ValueError(f"A client secret can have up to {MAX_SECRET_LENGTH} printable characters.")
    return value


def unified_line_ends(script: str) -> str:
    """Browsers send CRLF: that is not a change of the script."""
    return script.replace("\r\n", "\n")


CHECKS: Mapping[str, Callable[[str], str]] = {
    "url_idp": url_idp,
    "redirect_uri": redirect_uri,
    "scope": scope,
    "client_secret": client_secret,
    "script": unified_line_ends,
}
