"""Chooses the embedder of a space: the configured provider for new collections, the old one while possible."""

import os
import threading
import time
from collections.abc import Sequence
from typing import Any, Protocol

import structlog
from django.conf import settings
from django.utils import timezone

from collections_app.models import EmbeddingSpace
from system import process_cache

from . import local_model
from .circuit_breaker import CircuitBreaker
from .errors import EmbeddingMisconfigured, EmbeddingRefused, EmbeddingUnavailable
from .local_model import LocalProvider
from .openai_compatible import (
    TOO_MANY_DIMENSIONS,
    OpenAICompatible,
    ProviderConnection,
    ProviderLimits,
    read_dimensions,
)
from .request import ProviderEndpoint
from .vector_checks import Vectors, cosine

logger = structlog.get_logger(__name__)

# Its vector is stored with the space. In several languages, since a model may change in one of them only.
PROBE = "The printer on the third floor is out of toner. Принтер не печатает. 打印机没有墨粉了。"
# A lower cosine means another model. Hardware and batches change a vector by less than a thousandth.
MIN_SAME_MODEL_COSINE = 0.99
PROBE_REFUSED_MESSAGE = (
    "The embedding provider refused a short test text. Check that the model is correct and supports "
    "SVC_EMBEDDING_DIMENSIONS."
)
# How long a process trusts that a model and its number of dimensions are unchanged.
MODEL_TRUST_S = 300.0

# In a web process somebody waits for the response. The worker does what takes longer.
REQUEST_TIMEOUTS_S = {"total_s": 15.0, "retry_s": 5.0}

RETIRED_PROVIDER = "retired"
MODEL_CHANGED = "model_changed"
WRONG_DIMENSIONS = "wrong_dimensions"


class Provider(Protocol):
    """Embeds texts with one model; there is one class for each kind of provider."""

    def embed_documents(self, texts: Sequence[str], *, within_s: float | None = None) -> Vectors:
        """One vector of length 1 for each text, in order. Raises EmbeddingUnavailable or EmbeddingRefused."""

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query, within two seconds."""


class _ProcessState:
    """The connections, breakers and knowledge of this process. A forked child starts without them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.connection: ProviderConnection | None = None
        self.breakers: dict[int, CircuitBreaker] = {}
        self.unchanged_until: dict[int, float] = {}
        self.dimensions: dict[str, tuple[int, float]] = {}


_state = _ProcessState()


def _reset() -> None:
    global _state
    _state = _ProcessState()


os.register_at_fork(after_in_child=_reset)


def reset_providers() -> None:
    """Read the configuration again; running requests are cancelled."""
    connection = _state.connection
    _reset()
    if connection:
        connection.close()


process_cache.register("embedding providers", reset_providers)


def default_space() -> EmbeddingSpace:
    """The space that the operator chose for new collections."""
    provider, model, dimensions = _configured_model()
    asks_dimensions = provider == OpenAICompatible.provider and dimensions is not None
    return EmbeddingSpace.objects.get_or_create(
        provider=provider,
        model=model,
        dimensions=dimensions or _native_dimensions(model),
        defaults={"asks_dimensions": asks_dimensions},
    )[0]


def is_default(space: EmbeddingSpace) -> bool:
    """Whether new collections would get this space, as far as that is known without a request to the provider."""
    provider, model, dimensions = _configured_model()
    return (space.provider, space.model) == (provider, model) and dimensions in (None, space.dimensions)


def _configured_model() -> tuple[str, str, int | None]:
    """Provider, model and number of dimensions; None if the model decides how many there are."""
    configured: dict[str, Any] = settings.EMBEDDING
    if configured["provider"] == LocalProvider.provider:
        row = local_model.local_model(configured["model"])
        return LocalProvider.provider, row.name, row.dimensions
    return OpenAICompatible.provider, configured["model"], configured["dimensions"]


def circuit_breaker(space_id: int) -> CircuitBreaker:
    """One for each space, because a provider may refuse one model and serve another."""
    return _state.breakers.setdefault(space_id, CircuitBreaker())


def is_model_changed(space: EmbeddingSpace) -> bool:
    """Whether the model returns other vectors than before, so that new vectors cannot be compared with stored ones."""
    _state.unchanged_until.pop(space.pk, None)
    try:
        Embedder(space).embed_documents([PROBE])
    except EmbeddingRefused as error:
        if error.code in (MODEL_CHANGED, WRONG_DIMENSIONS):
            return True
        raise
    return False


def retire_space(space: EmbeddingSpace) -> None:
    """Free the name for a new space. Collections stay in this one, searched by keywords, until they are re-embedded."""
    space.model = f"{space.model} until {timezone.now():%Y-%m-%d %H:%M:%S}"[:200]
    space.provider = RETIRED_PROVIDER
    space.save(update_fields=["provider", "model"])


class Embedder:
    """Embeds for one space. Refuses if the provider's model is no longer the one that filled the space."""

    def __init__(self, space: EmbeddingSpace) -> None:
        self._space = space
        self._breaker = circuit_breaker(space.pk)

    def embed_documents(self, texts: Sequence[str], *, within_s: float | None = None) -> Vectors:
        """A vector of length 1 for each text, in order. After a failure the provider is not called for a while, and
        the error's `retry_after_s` says for how long."""
        if not texts:
            return []
        self._breaker.before_load()
        try:
            vectors = self._embed(texts, within_s)
        except (EmbeddingUnavailable, EmbeddingRefused) as error:
            if not error.is_of_the_texts:
                self._breaker.load_failed(error)
            raise
        self._breaker.load_succeeded()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        provider = _provider(self._space)
        self._breaker.before_search()
        try:
            vector = provider.embed_query(text)
        except EmbeddingUnavailable:
            self._breaker.search_failed()
            raise
        except EmbeddingRefused:
            self._breaker.search_succeeded()  # the provider responds, which is what matters here
            raise
        self._breaker.search_succeeded()
        return vector

    def _embed(self, texts: Sequence[str], within_s: float | None) -> Vectors:
        provider = _provider(self._space)
        deadline = None if within_s is None else time.monotonic() + within_s
        self._compare_probe(provider, within_s)
        remaining_s = None if deadline is None else max(0.01, deadline - time.monotonic())
        return provider.embed_documents(texts, within_s=remaining_s)

    def _compare_probe(self, provider: Provider, within_s: float | None) -> None:
        if time.monotonic() < _state.unchanged_until.get(self._space.pk, 0.0):
            return
        try:
            (vector,) = provider.embed_documents([PROBE], within_s=within_s)
        except EmbeddingRefused as error:
            if error.is_of_the_texts:
                raise EmbeddingMisconfigured(PROBE_REFUSED_MESSAGE) from None
            raise
        # Of several concurrent first calls, one stores its vector.
        EmbeddingSpace.objects.filter(pk=self._space.pk, probe=None).update(probe=vector)
        stored = EmbeddingSpace.objects.filter(pk=self._space.pk).values_list("probe", flat=True).first()
        if stored is None:
            raise EmbeddingUnavailable("The embedding space was deleted.")
        if len(stored) != len(vector) or cosine(stored, vector) < MIN_SAME_MODEL_COSINE:
            raise EmbeddingRefused(
                MODEL_CHANGED,
                f"The embedding provider now returns different vectors for {self._space.model}, so the model has "
                "changed. Restore the previous model or run `manage.py collections model-changed`.",
            )
        _state.unchanged_until[self._space.pk] = time.monotonic() + MODEL_TRUST_S


def _provider(space: EmbeddingSpace) -> Provider:
    if space.provider == LocalProvider.provider and space.model in local_model.LOCAL_MODELS:
        return LocalProvider(local_model.LOCAL_MODELS[space.model])
    has_provider = settings.EMBEDDING["base_url"] or settings.EMBEDDING["api_key"]
    if space.provider == OpenAICompatible.provider and has_provider:
        return OpenAICompatible(
            model=space.model,
            dimensions=space.dimensions,
            sends_dimensions=space.asks_dimensions,
            provider=_provider_connection,
        )
    raise EmbeddingMisconfigured(f"No provider is configured for the embedding space {space}.")


def _provider_connection() -> ProviderConnection:
    configured: dict[str, Any] = settings.EMBEDDING
    with _state.lock:
        if _state.connection is None:
            endpoint = ProviderEndpoint(
                base_url=configured["base_url"], api_key=configured["api_key"], ca_bundle=configured["ca_bundle"]
            )
            timeouts = REQUEST_TIMEOUTS_S if settings.PROCESS_TYPE == "web" else {}
            sizes = {"batch": configured["batch"], "concurrency": configured["concurrency"]}
            # Tests set shorter timeouts.
            overrides: dict[str, Any] = configured.get("limits", {})
            limits = ProviderLimits(**{**sizes, **timeouts, **overrides})
            _state.connection = ProviderConnection(endpoint, limits)
        return _state.connection


def _native_dimensions(model: str) -> int:
    """The dimensions that the provider returns. If it is unavailable or at fault, those of the model's last space."""
    dimensions, deadline = _state.dimensions.get(model, (0, 0.0))
    if time.monotonic() < deadline:
        return dimensions
    spaces = EmbeddingSpace.objects.filter(provider=OpenAICompatible.provider, model=model)
    last = spaces.order_by("-pk").values_list("dimensions", flat=True).first()
    try:
        dimensions = read_dimensions(model, _provider_connection(), PROBE)
        # A single wrong response would create a space that no later vector fits.
        if last not in (None, dimensions) and read_dimensions(model, _provider_connection(), PROBE) != dimensions:
            logger.warning("embedding_dimensions_differ", model=model, kept=last)
            return last
    except (EmbeddingUnavailable, EmbeddingRefused) as error:
        logger.warning("embedding_dimensions_unknown", model=model, code=error.code, reason=error.message, kept=last)
        if last is None:
            raise _as_provider_fault(error) from None
        return last
    _state.dimensions[model] = (dimensions, time.monotonic() + MODEL_TRUST_S)
    return dimensions


def _as_provider_fault(error: EmbeddingUnavailable | EmbeddingRefused) -> EmbeddingUnavailable:
    """No text of a caller was sent yet, so a refusal is not about their text."""
    if isinstance(error, EmbeddingUnavailable):
        return error
    if error.code == TOO_MANY_DIMENSIONS:
        return EmbeddingMisconfigured(error.message)  # it says what to change
    return (
        EmbeddingMisconfigured(PROBE_REFUSED_MESSAGE) if error.is_of_the_texts else EmbeddingUnavailable(error.message)
    )
