"""In charge of turning texts into vectors: `spaces` says by whom, `local` and `openai_compatible` do it."""

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
