"""Checks that the vectors of a response are complete and valid, and scales them to length 1. Pure."""

import json
from collections.abc import Sequence
from math import hypot
from operator import mul
from typing import Any
from unicodedata import normalize

from .errors import EmbeddingRefused, EmbeddingUnavailable

Vectors = list[list[float]]

# Replaces a blank text, which has no meaning to a model and which some models refuse.
BLANK_TEXT = "."
NUMBER_TYPES = {int, float}
NOT_FINITE_MESSAGE = "The embedding provider returned a number that is not finite."


def sendable_text(text: str) -> str:
    """Replaces what cannot be sent: unpaired surrogates, which are not valid UTF-8, and blank texts. Composes letters
    with accents, which models do not know in two parts.

    >>> sendable_text("a\\ud800"), sendable_text("  "), sendable_text("e\\u0301") == "\\u00e9"
    ('a?', '.', True)
    """
    return normalize("NFC", text).encode("utf-8", "replace").decode() if text.strip() else BLANK_TEXT


def parse_response(body: bytes, count: int) -> list[Any]:
    """Returns the unchecked vectors of a response from `/v1/embeddings`, in the order of the texts.

    >>> parse_response(b'{"data": [{"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1]}]}', 2)
    [[1], [2]]
    """
    try:
        response = json.loads(body)
    except (ValueError, RecursionError):
        raise EmbeddingUnavailable("The embedding provider's response is not JSON.") from None
    items = response.get("data") if isinstance(response, dict) else None
    if not isinstance(items, list):
        # Some gateways return errors with status 200.
        raise EmbeddingUnavailable("The embedding provider's response contains no vectors.")
    if len(items) != count:
        message = f"The embedding provider returned {len(items)} vectors for {count} texts."
        raise EmbeddingRefused("wrong_count", message)
    return [item.get("embedding") if isinstance(item, dict) else None for item in _sorted_by_index(items)]


def _sorted_by_index(items: list[Any]) -> list[Any]:
    indexes: list[Any] = [item.get("index") if isinstance(item, dict) else None for item in items]
    if all(index is None for index in indexes):
        return items
    if any(type(index) is not int for index in indexes) or sorted(indexes) != list(range(len(items))):
        message = "The indexes in the embedding provider's response do not match the texts."
        raise EmbeddingRefused("wrong_order", message)
    return [item for _, item in sorted(zip(indexes, items, strict=True), key=lambda pair: pair[0])]


def unit_vectors(raw_vectors: Sequence[Any], dimensions: int | None) -> Vectors:
    """Checks the vectors and scales them to length 1, which fits half precision and does not change cosines.

    Without `dimensions`, all vectors must have as many as the first.

    >>> unit_vectors([[3, 4.0]], 2)
    [[0.6, 0.8]]
    >>> unit_vectors([[0, 0]], 2)
    Traceback (most recent call last):
    collections_app.embed.errors.EmbeddingRefused: The embedding provider returned a vector of zeros.
    """
    dimension_count = dimensions or (len(raw_vectors[0]) if raw_vectors and isinstance(raw_vectors[0], list) else 0)
    for vector in raw_vectors:
        if not isinstance(vector, list) or not vector or not set(map(type, vector)) <= NUMBER_TYPES:
            message = "The embedding provider returned an item that is not a vector of numbers."
            raise EmbeddingRefused("not_numbers", message)
        if len(vector) != dimension_count:
            message = f"The embedding provider returned {len(vector)} dimensions instead of {dimension_count}."
            raise EmbeddingRefused("wrong_dimensions", message)
    return scale_to_unit_length(raw_vectors) if raw_vectors else []


def scale_to_unit_length(rows: Any) -> Vectors:
    # Imported late, because it takes 6 MB.
    import numpy  # noqa: PLC0415

    try:
        matrix = numpy.asarray(rows, dtype=numpy.float64)
    except OverflowError:
        raise EmbeddingRefused("not_finite", NOT_FINITE_MESSAGE) from None
    if not numpy.isfinite(matrix).all():
        raise EmbeddingRefused("not_finite", NOT_FINITE_MESSAGE)
    largest_values = numpy.abs(matrix).max(axis=1, keepdims=True, initial=0)
    if not largest_values.all():
        raise EmbeddingRefused("zero_vector", "The embedding provider returned a vector of zeros.")
    scaled = matrix / largest_values  # otherwise the squares of large numbers overflow, and those of small ones vanish
    vectors: Vectors = (scaled / numpy.linalg.norm(scaled, axis=1, keepdims=True)).tolist()
    return vectors


def cosine(first: Sequence[float], second: Sequence[float]) -> float:
    """
    >>> cosine([1.0, 0.0], [0.0, 1.0])
    0.0
    """
    product: float = sum(map(mul, first, second))
    return product / (hypot(*first) * hypot(*second))
