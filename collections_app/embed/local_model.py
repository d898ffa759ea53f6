"""Embedding models that ship with the product, loaded once per process at first use, without network access."""

import importlib.util
import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from typing import Any

from collections_app.model_files import ModelFilesMissing

from . import vector_checks
from .errors import EmbeddingMisconfigured
from .transformer import load_transformer
from .vector_checks import Vectors
from .word_vectors import load_word_vectors

# Returns a matrix with a row for each text; zeros or NaN for a text that is meaningless to the model.
Encoder = Callable[[list[str]], Any]

# A model holds a vector for each token of a batch, padded to the longest text. With four times as many bytes, embedding
# takes 1.2 times the CPU time, because the vectors do not fit into the processor's cache.
MAX_BATCH_BYTES = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModel:
    """A row of `LOCAL_MODELS`. The prefixes are for models that distinguish documents from queries.

    Without a setting, collections with texts in `language` use the model. An `is_slow` model embeds fewer texts at a
    time, in the background. `match_cosines` are the cosines of a question and a passage that mean nothing and an
    answer; see `search.match`.
    """

    name: str
    dimensions: int
    load: Callable[[], Encoder]
    document_prefix: str = ""
    query_prefix: str = ""
    language: str = ""
    is_slow: bool = False
    match_cosines: tuple[float, float] = (0.0, 1.0)


def load_wordllama() -> Encoder:
    """Encodes like wordllama's own class, which takes 40 MB more: it copies the matrix and imports more libraries."""
    # Imported late, because they take 12 MB.
    import numpy  # noqa: PLC0415
    from tokenizers import Tokenizer  # noqa: PLC0415

    package = importlib.util.find_spec("wordllama")
    assert package is not None and package.origin is not None
    folder = Path(package.origin).parent
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.enable_padding()
    tokenizer.no_truncation()
    matrix = map_matrix(folder / "weights" / "l2_supercat_256.safetensors", "embedding.weight")
    # Computing in half precision is slow, so each row is converted at its first use. Unused pages of an anonymous
    # mapping take no memory; numpy would allocate huge pages.
    rows = numpy.frombuffer(mmap(-1, matrix.size * 4), dtype=numpy.float32).reshape(matrix.shape)
    is_converted = numpy.zeros(len(matrix), dtype=bool)

    def encode(texts: list[str]) -> Any:
        encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
        tokens = numpy.array([encoding.ids for encoding in encodings], dtype=numpy.int32)
        mask = numpy.array([encoding.attention_mask for encoding in encodings], dtype=numpy.float32)[..., numpy.newaxis]
        new_tokens = tokens[~is_converted[tokens]]
        rows[new_tokens] = matrix[new_tokens]
        is_converted[new_tokens] = True  # set after the row is stored, because other threads read both
        return (rows[tokens] * mask).sum(axis=1, dtype=numpy.float32) / numpy.maximum(mask.sum(axis=1), 1)

    return encode


def map_matrix(path: Path, name: str) -> Any:
    """Maps a matrix from a safetensors file into memory that all processes share.

    The file begins with the length of a JSON header, which contains the offsets of each tensor's data.
    """
    import numpy  # noqa: PLC0415

    with path.open("rb") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
        tensor = json.loads(file.read(header_bytes))[name]
    dtype = {"F16": "<f2", "F32": "<f4"}[tensor["dtype"]]
    offset = 8 + header_bytes + tensor["data_offsets"][0]
    return numpy.asarray(numpy.memmap(path, dtype, "r", offset, tuple(tensor["shape"])))


# The first is the default. To add a model, add a row whose `load` returns a function that encodes a list of texts.
_MODELS = (
    LocalModel(name="wordllama-l2-supercat", dimensions=256, load=load_wordllama, match_cosines=(0.12, 0.6)),
    LocalModel(
        name="all-MiniLM-L6-v2",
        dimensions=384,
        load=load_transformer,
        language="english",
        is_slow=True,
        match_cosines=(0.2, 0.65),
    ),
    LocalModel(
        name="navec-news-v1", dimensions=300, load=load_word_vectors, language="russian", match_cosines=(0.18, 0.6)
    ),
)
LOCAL_MODELS = {model.name: model for model in _MODELS}


def get_local_model(name: str | None) -> LocalModel:
    model = next(iter(LOCAL_MODELS.values())) if name is None else LOCAL_MODELS.get(name)
    if model is None:
        names = ", ".join(LOCAL_MODELS)
        raise EmbeddingMisconfigured(
            f"There is no local embedding model with this name. Set SVC_EMBEDDING_MODEL to one of: {names}."
        )
    return model


_encoders: dict[str, Encoder] = {}
_lock = threading.Lock()


def _replace_lock() -> None:
    global _lock
    _lock = threading.Lock()


# A forked child must not wait for a lock held by a thread of its parent. It shares the loaded models.
os.register_at_fork(after_in_child=_replace_lock)


def _encoder(model: LocalModel) -> Encoder:
    with _lock:
        if model.name not in _encoders:
            try:
                _encoders[model.name] = model.load()
            except ModelFilesMissing as error:
                raise EmbeddingMisconfigured(str(error)) from None
        return _encoders[model.name]


class LocalProvider:
    provider = "local"

    def __init__(self, model: LocalModel) -> None:
        self._model = model
        self.dimensions = model.dimensions

    def embed_documents(self, texts: Sequence[str], *, timeout_s: float | None = None) -> Vectors:
        """Embeds the texts. Ignores `timeout_s`, because a local model is always fast enough."""
        return self._embed([self._model.document_prefix + vector_checks.sendable_text(text) for text in texts])

    def embed_query(self, text: str) -> list[float]:
        return self._embed([self._model.query_prefix + vector_checks.sendable_text(text)])[0]

    def _embed(self, texts: list[str]) -> Vectors:
        import numpy  # noqa: PLC0415

        encode = _encoder(self._model)
        vectors = numpy.empty((len(texts), self.dimensions), dtype=numpy.float64)
        for indexes in _batch_indexes([len(text.encode()) for text in texts]):
            vectors[indexes] = encode([texts[index] for index in indexes])
        # Chosen: a text that is meaningless to the model gets the vector of a full stop, because each chunk needs one.
        is_meaningless = ~numpy.isfinite(vectors).all(axis=1) | ~vectors.any(axis=1)
        if is_meaningless.any():
            vectors[is_meaningless] = encode([vector_checks.BLANK_TEXT])[0]
        return vector_checks.scale_to_unit_length(vectors)


def _batch_indexes(sizes: list[int]) -> Iterator[list[int]]:
    """Groups the indexes of texts of similar length into batches of at most MAX_BATCH_BYTES.

    >>> list(_batch_indexes([10, 20_000, 12, 40_000]))
    [[0, 2], [1], [3]]
    """
    group: list[int] = []
    for index in sorted(range(len(sizes)), key=sizes.__getitem__):
        if group and (len(group) + 1) * sizes[index] > MAX_BATCH_BYTES:
            yield group
            group = []
        group.append(index)
    if group:
        yield group
