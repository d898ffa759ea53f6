"""Fusion of the scores of words, characters and vectors: bounds, order, and weights."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collections_app.search.fusion import Candidate, fuse
from collections_app.search.weights import Weights

weights = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(
    lambda shares: Weights(words=shares[0] * shares[1], characters=shares[0] * (1 - shares[1]), vectors=1 - shares[0])
)
candidate_columns: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "space_id": st.sampled_from([1, 2]),
        "weights": weights,
        "text_score": st.one_of(st.none(), st.floats(0, 50)),
        "character_score": st.one_of(st.none(), st.floats(0, 50)),
        "vector_score": st.one_of(st.none(), st.floats(-1, 1)),
    }
)
candidate_lists = st.lists(candidate_columns, max_size=12).map(
    lambda rows: [Candidate(chunk_id=number, **columns) for number, columns in enumerate(rows)]
)


def keyword_weights(alpha: float) -> Weights:
    return Weights(words=alpha, characters=0.0, vectors=1 - alpha)


def make_candidates(*rows: tuple[Any, Any], alpha: float = 0.7) -> list[Candidate]:
    return [
        Candidate(chunk_id=number, space_id=1, weights=keyword_weights(alpha), text_score=text, vector_score=vector)
        for number, (text, vector) in enumerate(rows)
    ]


def fused_scores(candidates: list[Candidate]) -> dict[int, float]:
    return {hit.chunk_id: round(hit.score, 6) for hit in fuse(candidates)}


@given(candidate_lists)
def test_scores_are_from_zero_to_one_and_best_first(candidates: list[Candidate]) -> None:
    hits = fuse(candidates)
    assert all(0.0 <= hit.score <= 1.0 for hit in hits)
    assert [hit.score for hit in hits] == sorted([hit.score for hit in hits], reverse=True)
    assert sorted(hit.chunk_id for hit in hits) == sorted(candidate.chunk_id for candidate in candidates)


@given(candidate_lists)
def test_order_of_candidates_does_not_matter(candidates: list[Candidate]) -> None:
    assert fuse(candidates) == fuse(candidates[::-1])


@pytest.mark.parametrize(
    ("rows", "alpha", "expected_scores"),
    [
        ([(4.0, 0.8), (2.0, 0.2)], 0.7, {0: 1.0, 1: 0.35}),
        ([(4.0, 0.2), (0.0, 0.8)], 0.7, {0: 0.7, 1: 0.3}),
        ([(4.0, None), (2.0, None)], 0.3, {0: 1.0, 1: 0.5}),
        ([(None, 0.8), (None, 0.2)], 0.7, {0: 1.0, 1: 0.0}),
        ([(0.0, 0.8), (0.0, 0.2)], 0.7, {0: 1.0, 1: 0.0}),
        ([(4.0, 0.5)], 0.7, {0: 1.0}),
        ([(4.0, 0.5), (4.0, 0.5)], 0.7, {0: 1.0, 1: 1.0}),
        ([], 0.7, {}),
    ],
)
def test_scores_of_both_retrievals_add_up(rows: Any, alpha: float, expected_scores: dict[int, float]) -> None:
    assert fused_scores(make_candidates(*rows, alpha=alpha)) == expected_scores


def test_cosines_are_normalized_per_space_and_words_overall() -> None:
    candidates = [
        Candidate(chunk_id=1, space_id=1, weights=keyword_weights(0.5), text_score=4.0, vector_score=0.9),
        Candidate(chunk_id=2, space_id=1, weights=keyword_weights(0.5), text_score=0.0, vector_score=0.7),
        Candidate(chunk_id=3, space_id=2, weights=keyword_weights(0.5), text_score=2.0, vector_score=0.2),
        Candidate(chunk_id=4, space_id=2, weights=keyword_weights(0.5), text_score=0.0, vector_score=0.1),
    ]
    assert fused_scores(candidates) == {1: 1.0, 3: 0.75, 2: 0.0, 4: 0.0}


@pytest.mark.parametrize(
    ("rows", "expected_scores"),
    [
        # words, characters, vectors
        ([(4.0, 2.0, 0.8), (2.0, 1.0, 0.2)], {0: 1.0, 1: 0.4}),
        ([(4.0, None, 0.2), (0.0, 3.0, 0.8)], {0: 0.5, 1: 0.5}),
        ([(0.0, 3.0, 0.2), (0.0, 0.0, 0.8)], {0: 0.3, 1: 0.7}),
        ([(4.0, 0.0, 0.2), (0.0, 0.0, 0.8)], {0: 0.8, 1: 0.2}),
        ([(4.0, 1.0, None), (0.0, 4.0, None)], {0: 0.71875, 1: 0.375}),
    ],
)
def test_missing_kinds_of_scores_leave_their_weight_to_others(rows: Any, expected_scores: dict[int, float]) -> None:
    model_weights = Weights(words=0.5, characters=0.3, vectors=0.2)
    candidates = [
        Candidate(
            chunk_id=number, space_id=1, weights=model_weights, text_score=text, character_score=characters,
            vector_score=vector,
        )
        for number, (text, characters, vector) in enumerate(rows)
    ]  # fmt: skip
    assert fused_scores(candidates) == expected_scores
