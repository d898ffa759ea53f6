"""An embedding request and its endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

MAX_DIMENSIONS = 3900
# A number in indented JSON, on its own line.
BYTES_PER_NUMBER = 48
OTHER_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderEndpoint:
    """The address of a provider, and the key for it."""

    base_url: str | None = field(repr=False)
    api_key: str | None = field(repr=False)
    ca_bundle: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRequest:
    """Texts for a model. The response must have `dimensions`. Their number is sent only if `sends_dimensions`, because
    not every model supports it."""

    model: str
    texts: Sequence[str]
    dimensions: int | None = None
    sends_dimensions: bool = False

    @property
    def max_response_bytes(self) -> int:
        count = len(self.texts) * (self.dimensions or MAX_DIMENSIONS)
        return count * BYTES_PER_NUMBER + OTHER_BYTES
