"""Validates a URL as an administrator entered it, before its host name is resolved."""

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from .addresses import forbidden_kind
from .errors import OutboundRefused
from .names import Address
from .policy import Policy

MAX_URL_LENGTH = 2000
_PORTS = {"https": 443, "http": 80}
# RFC 3986, appendix B. `urllib.parse.urlsplit` is ruled out: it drops tabs and newlines silently and, depending on the
# release, takes "[::1]evil.example" for ::1.
_URL_PATTERN = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?")
_CHARACTERS_PATTERN = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*")
_AUTHORITY_PATTERN = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?")
_LABEL_PATTERN = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST_NAME_PATTERN = re.compile(rf"(?=.{{1,253}}\Z){_LABEL_PATTERN}(?:\.{_LABEL_PATTERN})*")
# Hosts that a resolver may treat as a number. As in browsers, the last label decides.
_NUMBER_PATTERN = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")


@dataclass(frozen=True)
class CheckedUrl:
    """The parts of a URL; `str()` writes scheme and host in lower case and omits the default port."""

    scheme: str
    host: str
    port: int
    path: str
    query: str | None
    address: Address | None
    """Set if the host is a literal IP address, which needs no lookup."""

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def target(self) -> str:
        return (self.path or "/") + ("" if self.query is None else f"?{self.query}")

    def __str__(self) -> str:
        query = "" if self.query is None else f"?{self.query}"
        return f"{self.scheme}://{self.authority}{self.path}{query}"


def check_url(text: str, policy: Policy, *, allow_query: bool = False) -> CheckedUrl:
    """Split a URL that may be called, or raise `OutboundRefused`. Names are checked again after they are resolved.

    >>> str(check_url("https://IdP.example.com:443/realms/a", Policy()))
    'https://idp.example.com/realms/a'
    >>> check_url("https://127.1/", Policy())
    Traceback (most recent call last):
    system.outbound.errors.OutboundRefused: Enter a host name, an IPv4 address (192.0.2.1) or an IPv6 address ([::1]).
    """
    if len(text) > MAX_URL_LENGTH:
        raise OutboundRefused("too_long", f"The URL is longer than {MAX_URL_LENGTH} characters.")
    parts = _URL_PATTERN.fullmatch(text)
    if parts is None or not _CHARACTERS_PATTERN.fullmatch(text):
        raise OutboundRefused(
            "characters",
            "The URL contains a character that is not allowed. Write international domain names in Punycode (xn--…).",
        )
    scheme, authority, path, query, fragment = parts.groups()
    scheme = _check_scheme(scheme, policy)
    if fragment is not None:
        raise OutboundRefused("fragment", "The URL must not have a fragment (#).")
    if query is not None and not allow_query:
        raise OutboundRefused("query", "The URL must not have a query (?).")
    host, port = _check_authority(authority or "", scheme, policy)
    address = _check_host(host, policy)
    return CheckedUrl(scheme, str(address or host), port, path, query, address)


def _check_scheme(scheme: str | None, policy: Policy) -> str:
    scheme_name = (scheme or "").lower()
    # With http, `channel` accepts only addresses in the listed networks.
    allows_http = policy.allow_http or bool(policy.private_networks)
    if scheme_name != "https" and not (scheme_name == "http" and allows_http):
        prefix = "https:// or http://" if allows_http else "https://"
        raise OutboundRefused("scheme", f"The URL must begin with {prefix}.")
    return scheme_name


def _check_authority(authority: str, scheme: str, policy: Policy) -> tuple[str, int]:
    if "@" in authority:
        raise OutboundRefused("userinfo", "The URL must not contain a user name or password.")
    parts = _AUTHORITY_PATTERN.fullmatch(authority)
    if parts is None:
        raise OutboundRefused("host", "The host or port of the URL is malformed.")
    host, port_digits = parts.groups()
    port = _PORTS[scheme] if port_digits is None else int(port_digits)
    allows_any_port = policy.allow_http or policy.allow_any_port
    if not 0 < port < 65536 or (port != 443 and not allows_any_port):
        allowed_ports = "a port from 1 to 65535" if allows_any_port else "port 443"
        raise OutboundRefused("port", f"The URL must use {allowed_ports}.")
    return host.lower(), port


def _check_host(host: str, policy: Policy) -> Address | None:
    """The literal address, or None if `host` is a name."""
    try:
        address = _parse_literal(host)
    except AddressValueError:
        raise OutboundRefused(
            "host", "Enter a host name, an IPv4 address (192.0.2.1) or an IPv6 address ([::1])."
        ) from None
    if address is None and not _HOST_NAME_PATTERN.fullmatch(host):
        raise OutboundRefused("host", "The host name is empty or malformed.")
    if address is not None and (kind := forbidden_kind(address, policy)):
        raise OutboundRefused("address", f"{address} is not allowed. Calls to {kind} addresses are refused.")
    if (host == "localhost" or host.endswith(".localhost")) and not policy.allow_http:
        raise OutboundRefused("address", f"{host} is not allowed. Calls to loopback addresses are refused.")
    return address


def _parse_literal(host: str) -> Address | None:
    if host.startswith("["):
        address = IPv6Address(host[1:-1])
        if address.scope_id is not None:
            raise AddressValueError
        return address
    return IPv4Address(host) if _NUMBER_PATTERN.fullmatch(host) else None
