"""In charge of turning texts into vectors: `spaces` says by whom, `local` and `openai_compatible` do it."""

from .errors import EmbeddingMisconfigured, EmbeddingRefused, EmbeddingUnavailable
from .spaces import Embedder, default_space, embedder, forget, retire_changed

__all__ = [
    "Embedder",
    "EmbeddingMisconfigured",
    "EmbeddingRefused",
    "EmbeddingUnavailable",
    "default_space",
    "embedder",
    "forget",
    "retire_changed",
]
