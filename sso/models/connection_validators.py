"""Validators for a connection's columns, besides the field validators. `sso.connections.saving` checks the script."""

import re
from collections.abc import Callable, Mapping

from sso.provider.discovery import WELL_KNOWN_PATH, provider_policy
from system import encryption, outbound, properties

MAX_SECRET_LENGTH = 1000
SCOPE_PATTERN = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*")
ABSOLUTE_URL_PATTERN = re.compile(r"https?://[\x21\x22\x24-\x7e]+")


def normalize_url_idp(value: str) -> str:
    """Lowercase scheme and host and remove a trailing slash, so that a provider has one pair."""
    try:
        url = str(outbound.check_url(value.strip(), provider_policy()))
    except outbound.OutboundRefused as error:
        raise ValueError(error.message) from None
    return url if url.endswith(WELL_KNOWN_PATH) else url.rstrip("/")


REDIRECT_URI_HINT = "The Redirect URI is usually the URL of this service followed by /sso/callback/."


def check_redirect_uri(value: str) -> str:
    """Return the value unchanged, because providers compare it byte for byte."""
    if not ABSOLUTE_URL_PATTERN.fullmatch(value):
        raise ValueError(f"Enter an absolute URL without a fragment (#). {REDIRECT_URI_HINT}")
    try:
        properties.check_own_url(value)
    except ValueError:
        raise ValueError(f"The URL does not belong to this service. {REDIRECT_URI_HINT}") from None
    return value


def check_scope(value: str) -> str:
    if not SCOPE_PATTERN.fullmatch(value):
        raise ValueError("A scope must be a list of words separated by single spaces.")
    if "openid" not in value.split(" "):
        raise ValueError("The scope must include openid.")
    return value


def check_client_secret(value: str) -> str:
    try:
        secret = encryption.decrypt(value) if value else ""
    except encryption.DecryptionFailed:
        # Otherwise it would be stored in plain text.
        raise ValueError("The client secret is not encrypted with a key in SVC_SECRET_KEYS. Enter it again.") from None
    if len(secret) > MAX_SECRET_LENGTH or not secret.isprintable():
        raise ValueError(f"A client secret must consist of at most {MAX_SECRET_LENGTH} printable characters.")
    return value


def normalize_newlines(script: str) -> str:
    """Remove the CR that browsers add to line breaks, so that they do not count as a change."""
    return script.replace("\r\n", "\n")


COLUMN_CHECKS: Mapping[str, Callable[[str], str]] = {
    "url_idp": normalize_url_idp,
    "redirect_uri": check_redirect_uri,
    "scope": check_scope,
    "client_secret": check_client_secret,
    "script": normalize_newlines,
}
