"""Decides which certificates are trusted, and explains why one is not."""

import ssl
from functools import lru_cache
from pathlib import Path

import httpcore2

from .errors import OutboundFailed

_CA_BUNDLE_HINT = "The operator can add the certificate authority with SVC_CA_BUNDLE."

# OpenSSL's verification codes, which have no names in Python.
_CERTIFICATE_FAULTS = {
    9: "is not valid yet.",
    10: "has expired.",
    18: f"is self-signed. {_CA_BUNDLE_HINT}",
    **dict.fromkeys((19, 20, 21), f"was issued by an authority that this server does not trust. {_CA_BUNDLE_HINT}"),
    26: "was not issued for a web server.",
    62: "was issued for another host name.",
    64: "was issued for another IP address.",
    66: "has a key that is too short.",
    68: "is signed with an algorithm that is too weak.",
}


def ssl_context(ca_bundle: Path | None) -> ssl.SSLContext:
    """The system's authorities and those of `ca_bundle`; verification cannot be disabled.

    Chosen: the bundle is added, so that public providers still work with an on-premise authority.
    """
    try:
        # A changed bundle is used from the next call on, without a restart.
        return _ssl_context(ca_bundle, ca_bundle.stat().st_mtime_ns if ca_bundle else 0)
    except OSError as error:
        raise OutboundFailed("ca_bundle", "The certificates in the SVC_CA_BUNDLE file cannot be read.") from error


@lru_cache(maxsize=4)
def _ssl_context(ca_bundle: Path | None, _modified_ns: int) -> ssl.SSLContext:
    context = httpcore2.default_ssl_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if ca_bundle:
        context.load_verify_locations(cafile=ca_bundle)
    return context


def describe_tls_error(error: ssl.SSLError, host: str) -> str:
    """The message for an administrator about a failed handshake.

    >>> expired = ssl.SSLCertVerificationError()
    >>> expired.verify_code = 10
    >>> describe_tls_error(expired, "idp.example.com")
    'The certificate of idp.example.com has expired.'
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        # `verify_message` is OpenSSL's wording, without text from the certificate except the requested host.
        fault = _CERTIFICATE_FAULTS.get(error.verify_code) or f"was not accepted ({error.verify_message})."
        return f"The certificate of {host} {fault}"
    if error.reason == "WRONG_VERSION_NUMBER":
        return f"{host} responded without encryption. Check the scheme and port of the URL."
    reason = f" ({error.reason.replace('_', ' ').lower()})" if error.reason else ""
    return f"The TLS handshake with {host} failed{reason}."
