"""The operator's policy for outbound calls, and the limits of every call."""

from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from .names import Resolver, system_resolve


@dataclass(frozen=True, kw_only=True)
class Policy:
    """`Policy()` is the policy for production; settings change the first fields."""

    allow_http: bool = False
    """The development switch: http, any port, loopback addresses."""
    allow_private: bool = True
    """For on-premise providers; the operator can forbid private networks."""
    private_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    """Private and loopback networks that may be called in any case, also with http."""
    allow_any_port: bool = False
    """Otherwise only port 443."""
    ca_bundle: Path | None = None
    """A PEM file of authorities that are trusted in addition to those of the system."""

    connect_s: float = 3.0
    """Covers DNS lookup, TCP connection and TLS handshake together."""
    total_s: float = 6.0
    """From the first lookup to the last byte of the response."""
    max_body_bytes: int = 512 * 1024
    cuts_body: bool = False
    """Cut a longer body instead of refusing the response."""
    max_head_bytes: int = 32 * 1024
    resolve: Resolver = system_resolve

    def limited_to(self, seconds: float) -> "Policy":
        """The same policy with at most this total time, for callers with a deadline for several calls.

        >>> Policy().limited_to(2.5).total_s, Policy().limited_to(60).total_s
        (2.5, 6.0)
        """
        return replace(self, total_s=min(self.total_s, seconds))
