"""Checks the vectors of an answer: complete, in order, of unit length. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy

from .errors import EmbeddingRefused, EmbeddingUnavailable

Vectors = list[list[float]]

# In place of a text without any character: no model says what an empty text means, and some refuse it.
BLANK = "."
NUMBERS = {int, float}
NOT_FINITE = "The embedding provider answered with a number that is not finite."


def readable(text: str) -> str:
    """What can be sent for a text: half a surrogate pair is no UTF-8.

    >>> readable("a\\ud800"), readable("  ")
    ('a?', '.')
    """
    return text.encode("utf-8", "replace").decode() if text.strip() else BLANK


def read_answer(body: bytes, count: int) -> list[Any]:
    """The raw vectors of an answer of `/v1/embeddings`, in the order of the texts.

    >>> read_answer(b'{"data": [{"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1]}]}', 2)
    [[1], [2]]
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise EmbeddingUnavailable("The embedding provider's answer is not JSON.") from None
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list):
        # An error, as some gateways send it with status 200.
        raise EmbeddingUnavailable("The embedding provider's answer holds no vectors.")
    if len(items) != count:
        message = f"The embedding provider answered with {len(items)} vectors for {count} texts."
        raise EmbeddingRefused("wrong_count", message)
    return [item.get("embedding") if isinstance(item, dict) else None for item in _in_order(items)]


def _in_order(items: list[Any]) -> list[Any]:
    """By `index`; where no item has one, as they stand."""
    places: list[Any] = [item.get("index") if isinstance(item, dict) else None for item in items]
    if all(place is None for place in places):
        return items
    if any(type(place) is not int for place in places) or sorted(places) != list(range(len(items))):
        raise EmbeddingRefused("wrong_order", "The embedding provider's answer does not say which vector is whose.")
    return [item for _, item in sorted(zip(places, items, strict=True), key=lambda pair: pair[0])]


def unit(raw: Sequence[Any], dimensions: int | None) -> Vectors:
    """The vectors at length 1, so that none leaves the range of half precision; cosines stay what they are.

    Without `dimensions`, those of the first count.

    >>> unit([[3, 4.0]], 2)
    [[0.6, 0.8]]
    >>> unit([[0, 0]], 2)
    Traceback (most recent call last):
    collections_app.embed.errors.EmbeddingRefused: The embedding provider answered with a vector of zeros.
    """
    wanted = dimensions or (len(raw[0]) if raw and isinstance(raw[0], list) else 0)
    for vector in raw:
        _check_form(vector, wanted)
    try:
        return at_length_1(numpy.array(raw, dtype=numpy.float64).reshape(len(raw), wanted))
    except OverflowError:
        raise EmbeddingRefused("not_finite", NOT_FINITE) from None


def _check_form(vector: Any, dimensions: int) -> None:
    if not isinstance(vector, list) or not vector or not set(map(type, vector)) <= NUMBERS:
        raise EmbeddingRefused("not_numbers", "The embedding provider answered with something that is no vector.")
    if len(vector) != dimensions:
        message = f"The embedding provider answered with {len(vector)} dimensions in place of {dimensions}."
        raise EmbeddingRefused("wrong_dimensions", message)


def at_length_1(found: Any) -> Vectors:
    """The rows of a matrix, each at length 1."""
    if not numpy.isfinite(found).all():
        raise EmbeddingRefused("not_finite", NOT_FINITE)
    largest = numpy.abs(found).max(axis=1, keepdims=True, initial=0)
    if not largest.all():
        raise EmbeddingRefused("zero_vector", "The embedding provider answered with a vector of zeros.")
    scaled = found / largest  # first, or squares of large numbers overflow and those of small ones vanish
    vectors: Vectors = (scaled / numpy.linalg.norm(scaled, axis=1, keepdims=True)).tolist()
    return vectors


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """
    >>> cosine([1.0, 0.0], [0.0, 1.0])
    0.0
    """
    first, second = numpy.array(one, dtype=numpy.float64), numpy.array(other, dtype=numpy.float64)
    return float(first @ second / (numpy.linalg.norm(first) * numpy.linalg.norm(second)))
