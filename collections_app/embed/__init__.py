"""Turns texts into vectors: `spaces` chooses the provider, `local_model` and `openai_compatible` embed."""

from .errors import EmbeddingMisconfigured, EmbeddingRefused, EmbeddingUnavailable
from .spaces import RETIRED, Embedder, default_space, embedder, forget, is_changed, is_default, retire

__all__ = [
    "RETIRED",
    "Embedder",
    "EmbeddingMisconfigured",
    "EmbeddingRefused",
    "EmbeddingUnavailable",
    "default_space",
    "embedder",
    "forget",
    "is_changed",
    "is_default",
    "retire",
]
