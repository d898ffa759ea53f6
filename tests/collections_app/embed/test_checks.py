"""Checks of responses: a single invalid vector causes the whole response to be refused."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collections_app.embed import EmbeddingRefused, EmbeddingUnavailable, vector_checks

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers()
INVALID_VALUES = st.none() | st.booleans() | st.text(max_size=3) | st.just(10**400) | st.floats()
ANY_JSON = st.recursive(
    NUMBERS | INVALID_VALUES,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=9), children),
)
VECTOR_ITEMS = st.fixed_dictionaries(
    {
        "embedding": st.lists(NUMBERS, min_size=2, max_size=2)
        | st.lists(NUMBERS | INVALID_VALUES, max_size=3)
        | ANY_JSON
    },
    optional={"index": st.integers(-1, 3) | INVALID_VALUES},
)
RESPONSE_BODIES = st.fixed_dictionaries({"data": st.lists(VECTOR_ITEMS | ANY_JSON, max_size=3) | ANY_JSON}) | ANY_JSON


@given(RESPONSE_BODIES, st.integers(0, 3))
def test_any_response_yields_valid_vectors_or_an_error(response_body: Any, count: int):  # C30
    try:
        vectors = vector_checks.unit_vectors(vector_checks.parse_response(json.dumps(response_body).encode(), count), 2)
    except (EmbeddingRefused, EmbeddingUnavailable):
        return

    assert len(vectors) == count
    for index, vector in enumerate(vectors):
        items = response_body["data"]
        item_of_index = next((item for item in items if item.get("index") == index), items[index])
        assert len(vector) == 2 and math.isclose(math.hypot(*vector), 1, abs_tol=1e-9)
        # Scaled, so that products neither overflow nor underflow.
        largest_number = max(abs(number) for number in item_of_index["embedding"])
        scaled_numbers = [number / largest_number for number in item_of_index["embedding"]]
        assert math.isclose(vector[0] * scaled_numbers[1], vector[1] * scaled_numbers[0], abs_tol=1e-9)
        assert vector[0] * scaled_numbers[0] >= 0 and vector[1] * scaled_numbers[1] >= 0


@given(st.binary(max_size=40))
def test_invalid_bytes_are_refused(body: bytes):
    with pytest.raises((EmbeddingUnavailable, EmbeddingRefused)):
        vector_checks.parse_response(body, 1)


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"data": ' + b"9" * 5000 + b"}", b"<html>", b'{"error": {}}', b""])
def test_invalid_response_can_be_retried(body: bytes):
    with pytest.raises(EmbeddingUnavailable):
        vector_checks.parse_response(body, 1)


@pytest.mark.parametrize(
    ("vector", "code"),
    [
        ([1.0], "wrong_dimensions"),
        ([1.0, 2.0, 3.0], "wrong_dimensions"),
        ([math.nan, 1.0], "not_finite"),
        ([math.inf, 1.0], "not_finite"),
        ([10**400, 1], "not_finite"),
        ([0, 0.0], "zero_vector"),
        ([True, 1.0], "not_numbers"),
        (["1", 1.0], "not_numbers"),
        ([], "not_numbers"),
        (None, "not_numbers"),
        ("AACAPwAAAEA=", "not_numbers"),
    ],
)
def test_one_invalid_vector_refuses_the_response(vector: Any, code: str):  # C30
    with pytest.raises(EmbeddingRefused) as exc_info:
        vector_checks.unit_vectors([[1.0, 2.0], vector], 2)

    assert exc_info.value.code == code


@pytest.mark.parametrize("indexes", [[0, 0], [1, 2], [0, None], [False, True], ["0", "1"], [0.0, 1.0]])
def test_ambiguous_indexes_are_refused(indexes: list[Any]):  # C30
    items = [{"embedding": [1.0], "index": index} for index in indexes]

    with pytest.raises(EmbeddingRefused) as exc_info:
        vector_checks.parse_response(json.dumps({"data": items}).encode(), 2)
    assert exc_info.value.code == "wrong_order"


def test_vectors_without_indexes_are_in_order():
    body = json.dumps({"data": [{"embedding": [1.0]}, {"embedding": [2.0]}]}).encode()

    assert vector_checks.parse_response(body, 2) == [[1.0], [2.0]]
