"""Chooses the space of new collections, and embeds texts if the provider of a space still serves the same model."""

import os
import threading
import time
from collections.abc import Sequence
from typing import Any

import structlog
from django.conf import settings
from django.utils import timezone

from collections_app.models import EmbeddingSpace
from system import process_cache

from . import local_model
from .circuit_breaker import CircuitBreaker
from .errors import EmbeddingMisconfigured, EmbeddingRefused, EmbeddingUnavailable
from .local_model import LocalModel, LocalProvider
from .openai_compatible import OpenAIProvider, ProviderLimits, ProviderPool, read_dimensions
from .vector_checks import Vectors, cosine

logger = structlog.get_logger(__name__)

# Its vector is stored with the space. It has several languages, because a model may change in only one of them.
PROBE_TEXT = "The printer on the third floor is out of toner. Принтер не печатает. 打印机没有墨粉了。"
# A lower cosine means another model. Hardware and batches change a vector by less than a thousandth.
MIN_SAME_MODEL_COSINE = 0.99
PROBE_REFUSED_MESSAGE = (
    "The embedding provider refused a short test text. Check that the model is correct and supports "
    "SVC_EMBEDDING_DIMENSIONS."
)
# How long a process trusts that a model and its number of dimensions are unchanged.
MODEL_CHECK_INTERVAL_S = 300.0

# In a web process a caller waits for the response. The worker handles what takes longer.
REQUEST_TIMEOUTS_S = {"total_s": 15.0, "retry_s": 5.0}

RETIRED_PROVIDER = "retired"
MODEL_CHANGED = "model_changed"
WRONG_DIMENSIONS = "wrong_dimensions"


Provider = LocalProvider | OpenAIProvider


class _ProcessState:
    """The connections, breakers and check results of this process. A forked child starts without them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pool: ProviderPool | None = None
        self.breakers: dict[int | str, CircuitBreaker] = {}
        self.trusted_until: dict[int, float] = {}
        self.dimensions: dict[str, tuple[int, float]] = {}


_state = _ProcessState()


def _reset() -> None:
    global _state
    _state = _ProcessState()


os.register_at_fork(after_in_child=_reset)


def reset_providers() -> None:
    """Cancel running requests and discard all state; the next call reads the configuration again."""
    pool = _state.pool
    _reset()
    if pool:
        pool.close()


process_cache.register("embedding providers", reset_providers)


def default_space() -> EmbeddingSpace:
    provider, model, dimensions = _configured_model()
    sends_dimensions = provider == OpenAIProvider.provider and dimensions is not None
    return EmbeddingSpace.objects.get_or_create(
        provider=provider,
        model=model,
        dimensions=dimensions or _default_dimensions(model),
        defaults={"asks_dimensions": sends_dimensions},
    )[0]


def is_default(space: EmbeddingSpace) -> bool:
    """Whether new collections would get this space, as far as this is known without a request to the provider."""
    provider, model, dimensions = _configured_model()
    return (space.provider, space.model) == (provider, model) and dimensions in (None, space.dimensions)


def chooses_models() -> bool:
    """Whether each collection has one of the local models, because the settings name none."""
    options: dict[str, Any] = settings.EMBEDDING
    return (options["provider"], options["model"]) == (LocalProvider.provider, None)


def local_space(model: str) -> EmbeddingSpace:
    row = local_model.get_local_model(model)
    return EmbeddingSpace.objects.get_or_create(
        provider=LocalProvider.provider, model=row.name, dimensions=row.dimensions
    )[0]


def find_local_model(space: EmbeddingSpace) -> LocalModel | None:
    return local_model.LOCAL_MODELS.get(space.model) if space.provider == LocalProvider.provider else None


def is_slow(space: EmbeddingSpace) -> bool:
    model = find_local_model(space)
    return model is not None and model.is_slow


def _configured_model() -> tuple[str, str, int | None]:
    """Return provider, model and number of dimensions, which is None for the model's default."""
    options: dict[str, Any] = settings.EMBEDDING
    if options["provider"] == LocalProvider.provider:
        local = local_model.get_local_model(options["model"])
        return LocalProvider.provider, local.name, local.dimensions
    return OpenAIProvider.provider, options["model"], options["dimensions"]


def shared_breaker(key: int | str) -> CircuitBreaker:
    """Return the breaker of a space (by its id) or of another provider (by a name) in this process.

    Each space has its own, because a provider may refuse one model and serve another.
    """
    return _state.breakers.setdefault(key, CircuitBreaker())


def is_model_changed(space: EmbeddingSpace) -> bool:
    """Whether the model now returns different vectors, which cannot be compared with the stored ones."""
    _state.trusted_until.pop(space.pk, None)
    try:
        Embedder(space).embed_documents([PROBE_TEXT])
    except EmbeddingRefused as error:
        if error.code in (MODEL_CHANGED, WRONG_DIMENSIONS):
            return True
        raise
    return False


def retire_space(space: EmbeddingSpace) -> None:
    """Rename a space to free its name for a new one. Its collections use keyword search until they are re-embedded."""
    space.model = f"{space.model} until {timezone.now():%Y-%m-%d %H:%M:%S}"[:200]
    space.provider = RETIRED_PROVIDER
    space.save(update_fields=["provider", "model"])


class Embedder:
    """Embeds texts for one space, unless the provider's model has changed since the space was filled."""

    def __init__(self, space: EmbeddingSpace) -> None:
        self._space = space
        self._breaker = shared_breaker(space.pk)

    def embed_documents(self, texts: Sequence[str], *, timeout_s: float | None = None) -> Vectors:
        """Return a vector of length 1 for each text, in order. After a failure the provider is not called until the
        error's `retry_after_s` has passed."""
        if not texts:
            return []
        self._breaker.check_load_allowed()
        try:
            provider = _provider(self._space)
            deadline = None if timeout_s is None else time.monotonic() + timeout_s
            self._compare_probe(provider, timeout_s)
            remaining_s = None if deadline is None else max(0.01, deadline - time.monotonic())
            vectors = provider.embed_documents(texts, timeout_s=remaining_s)
        except (EmbeddingUnavailable, EmbeddingRefused) as error:
            if not error.is_about_texts:
                self._breaker.record_load_failure(error)
            raise
        self._breaker.record_load_success()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        provider = _provider(self._space)
        self._breaker.check_search_allowed()
        try:
            vector = provider.embed_query(text)
        except EmbeddingUnavailable:
            self._breaker.record_search_failure()
            raise
        except EmbeddingRefused:
            self._breaker.record_search_success()  # the provider responds, so searches need no pause
            raise
        self._breaker.record_search_success()
        return vector

    def _compare_probe(self, provider: Provider, timeout_s: float | None) -> None:
        if time.monotonic() < _state.trusted_until.get(self._space.pk, 0.0):
            return
        try:
            (vector,) = provider.embed_documents([PROBE_TEXT], timeout_s=timeout_s)
        except EmbeddingRefused as error:
            if error.is_about_texts:
                raise EmbeddingMisconfigured(PROBE_REFUSED_MESSAGE) from None
            raise
        # Only one of several concurrent first calls stores its vector.
        EmbeddingSpace.objects.filter(pk=self._space.pk, probe=None).update(probe=vector)
        stored_probe = EmbeddingSpace.objects.filter(pk=self._space.pk).values_list("probe", flat=True).first()
        if stored_probe is None:
            raise EmbeddingUnavailable("The embedding space was deleted.")
        if len(stored_probe) != len(vector) or cosine(stored_probe, vector) < MIN_SAME_MODEL_COSINE:
            raise EmbeddingRefused(
                MODEL_CHANGED,
                f"The embedding provider now returns different vectors for {self._space.model}, so the model has "
                "changed. Restore the previous model or run `manage.py collections model-changed`.",
            )
        _state.trusted_until[self._space.pk] = time.monotonic() + MODEL_CHECK_INTERVAL_S


def _provider(space: EmbeddingSpace) -> Provider:
    if model := find_local_model(space):
        return LocalProvider(model)
    has_provider = settings.EMBEDDING["base_url"] or settings.EMBEDDING["api_key"]
    if space.provider == OpenAIProvider.provider and has_provider:
        return OpenAIProvider(space, _provider_pool)
    raise EmbeddingMisconfigured(f"No provider is configured for the embedding space {space}.")


def _provider_pool() -> ProviderPool:
    options: dict[str, Any] = settings.EMBEDDING
    with _state.lock:
        if _state.pool is None:
            timeouts = REQUEST_TIMEOUTS_S if settings.PROCESS_TYPE == "web" else {}
            sizes = {"batch_size": options["batch"], "concurrency": options["concurrency"]}
            # Tests set shorter timeouts.
            overrides: dict[str, Any] = options.get("limits", {})
            _state.pool = ProviderPool(ProviderLimits(**{**sizes, **timeouts, **overrides}))
        return _state.pool


def _default_dimensions(model: str) -> int:
    """Return the number of dimensions from the provider or, if its request fails, from the last space of the model."""
    dimensions, deadline = _state.dimensions.get(model, (0, 0.0))
    if time.monotonic() < deadline:
        return dimensions
    spaces = EmbeddingSpace.objects.filter(provider=OpenAIProvider.provider, model=model)
    last_dimensions = spaces.order_by("-pk").values_list("dimensions", flat=True).first()
    try:
        pool = _provider_pool()
        dimensions = read_dimensions(model, pool, PROBE_TEXT)
        # A single wrong response would create a space that no later vector fits.
        if last_dimensions not in (None, dimensions) and read_dimensions(model, pool, PROBE_TEXT) != dimensions:
            logger.warning("embedding_dimensions_differ", model=model)
            return last_dimensions
    except (EmbeddingUnavailable, EmbeddingRefused) as error:
        logger.warning("embedding_dimensions_unknown", model=model, code=error.code, reason=error.message)
        if last_dimensions is not None:
            return last_dimensions
        # The provider is at fault, not a text of a caller, since none has been sent yet.
        if error.is_about_texts:
            raise EmbeddingMisconfigured(PROBE_REFUSED_MESSAGE) from None
        if isinstance(error, EmbeddingUnavailable):
            raise
        raise EmbeddingUnavailable(error.message) from None
    _state.dimensions[model] = (dimensions, time.monotonic() + MODEL_CHECK_INTERVAL_S)
    return dimensions
