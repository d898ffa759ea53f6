"""Turns texts into vectors: `spaces` chooses the provider, `local_model` and `openai_compatible` embed."""

from .errors import EmbeddingMisconfigured, EmbeddingRefused, EmbeddingUnavailable
from .local_model import LOCAL_MODELS, get_local_model
from .spaces import (
    RETIRED_PROVIDER,
    Embedder,
    chooses_models,
    default_space,
    find_local_model,
    is_default,
    is_model_changed,
    is_slow,
    local_space,
    reset_providers,
    retire_space,
    shared_breaker,
)

__all__ = [
    "LOCAL_MODELS", "RETIRED_PROVIDER", "Embedder", "EmbeddingMisconfigured", "EmbeddingRefused",
    "EmbeddingUnavailable", "chooses_models", "default_space", "find_local_model", "get_local_model", "is_default",
    "is_model_changed", "is_slow", "local_space", "reset_providers", "retire_space", "shared_breaker",
]  # fmt: skip
