"""What the operator allows an outbound call, and the limits every call has."""

from dataclasses import dataclass, replace
from pathlib import Path

from .names import Resolve, system_resolve


@dataclass(frozen=True, kw_only=True)
class Policy:
    """`Policy()` is the policy of production; the operator's settings change the first three fields."""

    allow_http: bool = False
    """The development switch: http, any port, loopback addresses."""
    allow_private: bool = True
    """Specified for on-premise providers; the operator may switch private networks off."""
    ca_bundle: Path | None = None
    """A PEM file whose authorities are trusted besides those of the system."""

    connect_s: float = 3.0
    """For the name, TCP and TLS together."""
    total_s: float = 6.0
    """From the first lookup to the last byte of the answer."""
    max_body_bytes: int = 512 * 1024
    max_head_bytes: int = 32 * 1024
    resolve: Resolve = system_resolve

    def within(self, seconds: float) -> "Policy":
        """The same policy for a caller who has only so much time left for this and further calls.

        >>> Policy().within(2.5).total_s, Policy().within(60).total_s
        (2.5, 6.0)
        """
        return replace(self, total_s=min(self.total_s, seconds))
