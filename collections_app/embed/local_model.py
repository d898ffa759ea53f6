"""The models that ship with the product: loaded at first use, once per process, without network."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

from . import vector_checks
from .errors import EmbeddingMisconfigured
from .vector_checks import Vectors

# Returns a matrix with a row for each text; zeros or NaN for a text that is meaningless to the model.
Encode = Callable[[list[str]], Any]

# A model holds a vector for each token of a batch, padded to the longest text. Four times as many bytes need 1.2 times
# the CPU, because they do not fit into the processor's cache.
BYTES_AT_ONCE = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModel:
    """A row of the table below. The prefixes are for models that distinguish documents and queries."""

    name: str
    dimensions: int
    load: Callable[[], Encode]
    before_documents: str = ""
    before_queries: str = ""


def load_wordllama() -> Encode:
    # Imported late, because it takes a quarter of a second and 80 MB.
    import wordllama  # noqa: PLC0415

    folder = Path(wordllama.__file__).parent
    model: Any = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    return lambda texts: model.embed(texts, batch_size=len(texts))


# The first is the default. To add a model, add a row whose `load` returns a function that encodes a list of texts.
LOCAL_MODELS = {
    model.name: model
    for model in (LocalModel(name="wordllama-l2-supercat", dimensions=256, load=load_wordllama),)
}  # fmt: skip


def row(name: str | None) -> LocalModel:
    """The model of this name, or the default."""
    model = next(iter(LOCAL_MODELS.values())) if name is None else LOCAL_MODELS.get(name)
    if model is None:
        known = ", ".join(LOCAL_MODELS)
        raise EmbeddingMisconfigured(
            f"There is no local embedding model with this name. Set SVC_EMBEDDING_MODEL to one of: {known}."
        )
    return model


_loaded: dict[str, Encode] = {}
_lock = threading.Lock()


def _new_lock() -> None:
    global _lock
    _lock = threading.Lock()


# A forked child must not wait for a lock held by a thread of its parent. Loaded models are shared with it.
os.register_at_fork(after_in_child=_new_lock)


def _encode(model: LocalModel) -> Encode:
    with _lock:
        if model.name not in _loaded:
            _loaded[model.name] = model.load()
        return _loaded[model.name]


class Local:
    """A provider that embeds in this process."""

    provider = "local"

    def __init__(self, model: LocalModel) -> None:
        self._row = model
        self.model = model.name
        self.dimensions = model.dimensions

    def embed_documents(self, texts: Sequence[str], *, within_s: float | None = None) -> Vectors:
        """Always finishes before any deadline, so `within_s` is ignored."""
        return self._embed([self._row.before_documents + vector_checks.readable(text) for text in texts])

    def embed_query(self, text: str) -> list[float]:
        return self._embed([self._row.before_queries + vector_checks.readable(text)])[0]

    def _embed(self, texts: list[str]) -> Vectors:
        encode = _encode(self._row)
        vectors = numpy.empty((len(texts), self.dimensions), dtype=numpy.float64)
        for places in _groups([len(text.encode()) for text in texts]):
            vectors[places] = encode([texts[place] for place in places])
        # Chosen: a text that is meaningless to the model gets the vector of a full stop, so that each chunk has one.
        is_meaningless = ~numpy.isfinite(vectors).all(axis=1) | ~vectors.any(axis=1)
        if is_meaningless.any():
            vectors[is_meaningless] = encode([vector_checks.BLANK])[0]
        return vector_checks.at_length_1(vectors)


def _groups(sizes: list[int]) -> Iterator[list[int]]:
    """Indexes of texts of similar length, in groups within the limit.

    >>> list(_groups([10, 20_000, 12, 40_000]))
    [[0, 2], [1], [3]]
    """
    group: list[int] = []
    for place in sorted(range(len(sizes)), key=sizes.__getitem__):
        if group and (len(group) + 1) * sizes[place] > BYTES_AT_ONCE:
            yield group
            group = []
        group.append(place)
    if group:
        yield group
