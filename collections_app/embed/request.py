"""One embedding request: where it goes and what it asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

LONGEST_DIMENSIONS = 3900
# A number as JSON, on a line of its own, indented.
BYTES_OF_A_NUMBER = 48
BYTES_OF_THE_REST = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where, and with which key."""

    base_url: str | None = field(repr=False)
    api_key: str | None = field(repr=False)
    ca_bundle: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRequest:
    """Texts for a model. `dimensions` must come back; they are sent along if `is_asked`: not every model takes them."""

    model: str
    texts: Sequence[str]
    dimensions: int | None = None
    is_asked: bool = False

    @property
    def most_bytes(self) -> int:
        numbers = len(self.texts) * (self.dimensions or LONGEST_DIMENSIONS)
        return numbers * BYTES_OF_A_NUMBER + BYTES_OF_THE_REST
