"""Chooses the embedder of a space: the configured provider for new collections, the old one while possible."""

from __future__ import annotations

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
from .errors import EmbeddingMisconfigured, EmbeddingRefused, EmbeddingUnavailable
from .local_model import Local
from .openai_compatible import TOO_MANY_DIMENSIONS, Limits, OpenAICompatible, ProviderConnection, native_dimensions
from .request import Endpoint
from .vector_checks import Vectors, cosine

logger = structlog.get_logger(__name__)

# Its vector is kept with the space. Several languages, since a model may change in one and not in another.
PROBE = "The printer on the third floor is out of toner. Принтер не печатает. 打印机没有墨粉了。"
# Below, it is another model. Hardware and batches change a vector by less than a thousandth.
SAME = 0.99
PROBE_REFUSED = (
    "The embedding provider refuses even a short text: see the model, and whether it takes SVC_EMBEDDING_DIMENSIONS."
)
# How long a process believes that the model is still the same, and how many dimensions it gives.
BELIEVED_S = 300.0

# Somebody waits for the answer of a web process; what it cannot do in this time, the worker does.
IN_A_REQUEST = {"total_s": 15.0, "retry_s": 5.0}

RETIRED = "retired"
MODEL_CHANGED = "model_changed"
WRONG_DIMENSIONS = "wrong_dimensions"


class Provider(Protocol):
    """What can embed for a space: one small class for each kind."""

    provider: str
    model: str
    dimensions: int

    def embed_documents(self, texts: Sequence[str], *, within_s: float | None = None) -> Vectors:
        """One vector of length 1 for each text, in their order, or EmbeddingUnavailable or EmbeddingRefused."""

    def embed_query(self, text: str) -> list[float]:
        """The same for what is searched, within two seconds."""


class _Remembered:
    """By this process; a child of it begins anew, since connections and threads stay with the parent."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.line: ProviderConnection | None = None
        self.same_until: dict[int, float] = {}
        self.dimensions: dict[str, tuple[int, float]] = {}


_remembered = _Remembered()


def _begin_anew() -> None:
    global _remembered
    _remembered = _Remembered()


os.register_at_fork(after_in_child=_begin_anew)


def forget() -> None:
    """Read the configuration again; what is under way is given up."""
    line = _remembered.line
    _begin_anew()
    if line:
        line.close()


process_cache.register("embedding providers", forget)


def default_space() -> EmbeddingSpace:
    """The space that the operator chose for new collections."""
    configured: dict[str, Any] = settings.EMBEDDING
    if configured["provider"] == Local.provider:
        row = local_model.row(configured["model"])
        return _space(Local.provider, row.name, row.dimensions)
    model = configured["model"]
    asked: int | None = configured["dimensions"]
    dimensions = asked or _asked_dimensions(model)
    return _space(OpenAICompatible.provider, model, dimensions, asks_dimensions=asked is not None)


def is_default(space: EmbeddingSpace) -> bool:
    """Whether new collections would get this one, as far as that is known without asking the provider."""
    configured: dict[str, Any] = settings.EMBEDDING
    is_local = configured["provider"] == Local.provider
    model = local_model.row(configured["model"]).name if is_local else configured["model"]
    # A provider that is not told gives the dimensions of its model.
    dimensions = None if is_local else configured["dimensions"]
    provider = Local.provider if is_local else OpenAICompatible.provider
    return (space.provider, space.model) == (provider, model) and dimensions in (None, space.dimensions)


def embedder(space: EmbeddingSpace) -> Embedder:
    """Who embeds for this space; EmbeddingUnavailable when that is not configured any more."""
    return Embedder(space, _provider(space))


def is_changed(space: EmbeddingSpace) -> bool:
    """Whether its model gives other vectors than before: then none of today can be compared with those in it."""
    _remembered.same_until.pop(space.pk, None)
    try:
        embedder(space).embed_documents([PROBE])
    except EmbeddingRefused as error:
        if error.code in (MODEL_CHANGED, WRONG_DIMENSIONS):
            return True
        raise
    return False


def retire(space: EmbeddingSpace) -> None:
    """The name is free for a new space then. Collections stay in this one, found by words, until embedded anew."""
    space.model = f"{space.model} until {timezone.now():%Y-%m-%d %H:%M:%S}"[:200]
    space.provider = RETIRED
    space.save(update_fields=["provider", "model"])


class Embedder:
    """A provider for one space, that stops when its model is no more the one that filled the space."""

    def __init__(self, space: EmbeddingSpace, provider: Provider) -> None:
        self.provider, self.model, self.dimensions = provider.provider, provider.model, provider.dimensions
        self._space = space
        self._embeds = provider

    def embed_documents(self, texts: Sequence[str], *, within_s: float | None = None) -> Vectors:
        """A vector of length 1 for each text, in their order; `within_s` shortens the time that it may take."""
        if not texts:
            return []
        until = None if within_s is None else time.monotonic() + within_s
        self._compare_probe(within_s)
        left = None if until is None else max(0.01, until - time.monotonic())
        return self._embeds.embed_documents(texts, within_s=left)

    def embed_query(self, text: str) -> list[float]:
        return self._embeds.embed_query(text)

    def _compare_probe(self, within_s: float | None) -> None:
        if time.monotonic() < _remembered.same_until.get(self._space.pk, 0.0):
            return
        try:
            (found,) = self._embeds.embed_documents([PROBE], within_s=within_s)
        except EmbeddingRefused as error:
            if error.is_of_the_texts:
                raise EmbeddingMisconfigured(PROBE_REFUSED) from None
            raise
        # Of several that come first at once, one is first.
        EmbeddingSpace.objects.filter(pk=self._space.pk, probe=None).update(probe=found)
        stored = EmbeddingSpace.objects.filter(pk=self._space.pk).values_list("probe", flat=True).first()
        if stored is None:
            raise EmbeddingUnavailable("The embedding space is gone.")
        if len(stored) != len(found) or cosine(stored, found) < SAME:
            raise EmbeddingRefused(
                MODEL_CHANGED,
                f"The embedding provider gives other vectors for {self.model} than before: its model was changed. "
                "Put the former one back, or let the operator run: manage.py collections model-changed",
            )
        _remembered.same_until[self._space.pk] = time.monotonic() + BELIEVED_S


def _provider(space: EmbeddingSpace) -> Provider:
    if space.provider == Local.provider and space.model in local_model.LOCAL_MODELS:
        return Local(local_model.LOCAL_MODELS[space.model])
    if space.provider == OpenAICompatible.provider and _is_reachable():
        return OpenAICompatible(
            model=space.model,
            dimensions=space.dimensions,
            is_asked=space.asks_dimensions,
            provider=_provider_connection,
        )
    raise EmbeddingMisconfigured(f"No provider is configured for the embedding space {space}.")


def _is_reachable() -> bool:
    return bool(settings.EMBEDDING["base_url"] or settings.EMBEDDING["api_key"])


def _provider_connection() -> ProviderConnection:
    configured: dict[str, Any] = settings.EMBEDDING
    with _remembered.turn:
        if _remembered.line is None:
            endpoint = Endpoint(
                base_url=configured["base_url"], api_key=configured["api_key"], ca_bundle=configured["ca_bundle"]
            )
            # Other times than those of `Limits`: for whom waiting is of no use, such as a test.
            others: dict[str, Any] = configured.get("limits", {})
            times = IN_A_REQUEST if settings.PROCESS == "web" else {}
            at_once = {"batch": configured["batch"], "concurrency": configured["concurrency"]}
            limits = Limits(**{**at_once, **times, **others})
            _remembered.line = ProviderConnection(endpoint, limits)
        return _remembered.line


def _space(provider: str, model: str, dimensions: int, *, asks_dimensions: bool = False) -> EmbeddingSpace:
    return EmbeddingSpace.objects.get_or_create(
        provider=provider, model=model, dimensions=dimensions, defaults={"asks_dimensions": asks_dimensions}
    )[0]


def _asked_dimensions(model: str) -> int:
    """Of the provider; while it is away or at fault, those of the last space of this model."""
    if not _is_reachable():
        raise EmbeddingMisconfigured("SVC_EMBEDDING_PROVIDER=openai needs OPENAI_BASE_URL or OPENAI_API_KEY.")
    known, until = _remembered.dimensions.get(model, (0, 0.0))
    if time.monotonic() < until:
        return known
    spaces = EmbeddingSpace.objects.filter(provider=OpenAICompatible.provider, model=model)
    last = spaces.order_by("-pk").values_list("dimensions", flat=True).first()
    try:
        known = native_dimensions(model, _provider_connection(), PROBE)
        # A single wrong answer would make a space that no later vector fits.
        if last not in (None, known) and native_dimensions(model, _provider_connection(), PROBE) != known:
            logger.warning("embedding_dimensions_differ", model=model, kept=last)
            return last
    except (EmbeddingUnavailable, EmbeddingRefused) as error:
        logger.warning("embedding_dimensions_unknown", model=model, code=error.code, reason=error.message, kept=last)
        if last is None:
            raise _not_the_callers(error) from None
        return last
    _remembered.dimensions[model] = (known, time.monotonic() + BELIEVED_S)
    return known


def _not_the_callers(error: EmbeddingUnavailable | EmbeddingRefused) -> EmbeddingUnavailable:
    """No text of a caller was sent yet, so a refusal is none of it. That of too many dimensions says what to mend."""
    if isinstance(error, EmbeddingUnavailable):
        return error
    if error.code == TOO_MANY_DIMENSIONS:
        return EmbeddingMisconfigured(error.message)
    return EmbeddingMisconfigured(PROBE_REFUSED) if error.is_of_the_texts else EmbeddingUnavailable(error.message)
