"""Decides which certificates are trusted, and says in a sentence what is wrong with one that is not."""

import ssl
from functools import lru_cache
from pathlib import Path

import httpcore2

from .errors import OutboundFailed

_ASK_OPERATOR = "The operator can name a file with its authority in SVC_CA_BUNDLE."

# OpenSSL's verification codes, which its Python module gives no names.
_CERTIFICATE_FAULTS = {
    9: "is not valid yet.",
    10: "has expired.",
    18: f"is self-signed. {_ASK_OPERATOR}",
    19: f"comes from an authority that this server does not trust. {_ASK_OPERATOR}",
    20: f"comes from an authority that this server does not trust. {_ASK_OPERATOR}",
    21: f"comes from an authority that this server does not trust. {_ASK_OPERATOR}",
    26: "is not made for a web server.",
    62: "is made for another host name.",
    64: "is made for another address.",
    66: "has a key that is too short.",
    68: "is signed with a method that is too weak.",
}


def ssl_context(ca_bundle: Path | None) -> ssl.SSLContext:
    """The system's authorities and those of `ca_bundle`; verification cannot be switched off.

    Chosen: the bundle is added, so that an on-premise authority does not cut off the public providers.
    """
    try:
        # A renewed bundle counts from the next call on, without a restart.
        return _ssl_context(ca_bundle, ca_bundle.stat().st_mtime_ns if ca_bundle else 0)
    except OSError as error:
        raise OutboundFailed("ca_bundle", "The file named by SVC_CA_BUNDLE cannot be read as certificates.") from error


@lru_cache(maxsize=4)
def _ssl_context(ca_bundle: Path | None, _modified: int) -> ssl.SSLContext:
    context = httpcore2.default_ssl_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if ca_bundle:
        context.load_verify_locations(cafile=ca_bundle)
    return context


def describe(error: ssl.SSLError, host: str) -> str:
    """What an administrator is told about a failed handshake.

    >>> expired = ssl.SSLCertVerificationError()
    >>> expired.verify_code = 10
    >>> describe(expired, "idp.example.com")
    'The certificate of idp.example.com has expired.'
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        # `verify_message` is OpenSSL's own wording, never text from the certificate, but for the host we asked for.
        fault = _CERTIFICATE_FAULTS.get(error.verify_code) or f"is not accepted ({error.verify_message})."
        return f"The certificate of {host} {fault}"
    if error.reason == "WRONG_VERSION_NUMBER":
        return f"{host} answers without encryption there: the address may begin with http://, or have another port."
    reason = f" ({error.reason.replace('_', ' ').lower()})" if error.reason else ""
    return f"The encrypted connection to {host} could not be set up{reason}."
