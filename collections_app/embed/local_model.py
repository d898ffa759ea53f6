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

# A matrix with a row for each text; a model may give zeros or NaN for a text that says nothing to it.
Encode = Callable[[list[str]], Any]

# A model holds a vector for each token of a batch, all padded to its longest text. With four times as many bytes 1.2
# times the CPU: what does not fit into the processor's cache is fetched again.
BYTES_AT_ONCE = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModel:
    """A row of the table below. The two ways to encode differ for models that want to know what a text is."""

    name: str
    dimensions: int
    load: Callable[[], Encode]
    before_documents: str = ""
    before_queries: str = ""


def load_wordllama() -> Encode:
    # Takes a quarter of a second and 80 MB, which a process that never embeds does not pay.
    import wordllama  # noqa: PLC0415

    folder = Path(wordllama.__file__).parent
    model: Any = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    return lambda texts: model.embed(texts, batch_size=len(texts))


# The first is the default. Another one is added by a row whose `load` returns what encodes a list of texts.
LOCAL_MODELS = {
    model.name: model
    for model in (LocalModel(name="wordllama-l2-supercat", dimensions=256, load=load_wordllama),)
}  # fmt: skip


def row(name: str | None) -> LocalModel:
    """The model of this name, or the default."""
    found = next(iter(LOCAL_MODELS.values())) if name is None else LOCAL_MODELS.get(name)
    if found is None:
        known = ", ".join(LOCAL_MODELS)
        raise EmbeddingMisconfigured(f"There is no local embedding model of that name; SVC_EMBEDDING_MODEL: {known}.")
    return found


_loaded: dict[str, Encode] = {}
_turn = threading.Lock()


def _new_turn() -> None:
    global _turn
    _turn = threading.Lock()


# A child must not wait for a thread that stayed with its parent. What was loaded is shared with it.
os.register_at_fork(after_in_child=_new_turn)


def _encode(model: LocalModel) -> Encode:
    with _turn:
        if model.name not in _loaded:
            _loaded[model.name] = model.load()
        return _loaded[model.name]


class Local:
    """A provider that computes here."""

    provider = "local"

    def __init__(self, model: LocalModel) -> None:
        self._row = model
        self.model = model.name
        self.dimensions = model.dimensions

    def embed_documents(self, texts: Sequence[str], *, within_s: float | None = None) -> Vectors:
        """Ends by itself long before any deadline, so `within_s` does not matter here."""
        return self._embed([self._row.before_documents + vector_checks.readable(text) for text in texts])

    def embed_query(self, text: str) -> list[float]:
        return self._embed([self._row.before_queries + vector_checks.readable(text)])[0]

    def _embed(self, texts: list[str]) -> Vectors:
        encode = _encode(self._row)
        found = numpy.empty((len(texts), self.dimensions), dtype=numpy.float64)
        for places in _groups([len(text.encode()) for text in texts]):
            found[places] = encode([texts[place] for place in places])
        # Chosen: a text that says nothing to the model lies where a full stop lies, so that each chunk has a vector.
        says_nothing = ~numpy.isfinite(found).all(axis=1) | ~found.any(axis=1)
        if says_nothing.any():
            found[says_nothing] = encode([vector_checks.BLANK])[0]
        return vector_checks.at_length_1(found)


def _groups(sizes: list[int]) -> Iterator[list[int]]:
    """Places of texts of like length, together within the limit.

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
