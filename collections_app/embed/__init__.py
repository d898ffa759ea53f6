"""Turns texts into vectors: `spaces` chooses the provider, `local_model` and `openai_compatible` embed."""

from .errors import EmbeddingMisconfigured, EmbeddingRefused, EmbeddingUnavailable
from .spaces import (
    RETIRED_PROVIDER,
    Embedder,
    default_space,
    is_default,
    is_model_changed,
    reset_providers,
    retire_space,
)

__all__ = [
    "RETIRED_PROVIDER", "Embedder", "EmbeddingMisconfigured", "EmbeddingRefused", "EmbeddingUnavailable",
    "default_space", "is_default", "is_model_changed", "reset_providers", "retire_space",
]  # fmt: skip
