"""Combines the scores of words, characters and vectors. Pure.

`w·bm25/max + c·characters/max + v·minmax(cosine)`. The scores of words and characters are normalized over all
collections, so matches can be compared; the cosine within each space, because cosines of different models cannot be
compared. Fusion by ranks was worse than keyword search alone on four of five question sets.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .weights import Weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A chunk with its scores, and their weights in `score`."""

    chunk_id: int
    space_id: int
    weights: Weights
    text_score: float | None = None
    character_score: float | None = None
    vector_score: float | None = None
    match: float = 0.0
    score: float = 0.0

    @property
    def rank(self) -> tuple[float, float]:
        """The sort key, best first. The cosine sorts equal scores, such as those of chunks without a keyword match."""
        return -self.score, -math.inf if self.vector_score is None else -self.vector_score


def fuse(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Returns the candidates with scores from 0 to 1, best first; ties are sorted by vector score, then by chunk id.

    >>> weights = Weights(words=0.6, characters=0.1, vectors=0.3)
    >>> candidates = [
    ...     Candidate(chunk_id=n, space_id=1, weights=weights, text_score=t, character_score=c, vector_score=v)
    ...     for n, t, c, v in ((1, 4.0, 2.0, 0.2), (2, None, 1.0, 0.6), (3, 2.0, 0.0, 0.4))]
    >>> [(chunk.chunk_id, round(chunk.score, 3)) for chunk in fuse(candidates)]
    [(1, 0.7), (3, 0.45), (2, 0.35)]
    """
    best_text_score = max([candidate.text_score or 0.0 for candidate in candidates], default=0.0)
    best_character_score = max([candidate.character_score or 0.0 for candidate in candidates], default=0.0)
    ranges = _vector_ranges(candidates)
    scored_candidates = []
    for candidate in candidates:
        vector_range = ranges.get(candidate.space_id)
        weights = candidate.weights.without_missing_scores(
            words=best_text_score > 0.0, characters=best_character_score > 0.0, vectors=vector_range is not None
        )
        score = (
            weights.words * (candidate.text_score or 0.0) / (best_text_score or 1.0)
            + weights.characters * (candidate.character_score or 0.0) / (best_character_score or 1.0)
            + weights.vectors * _vector_part(candidate.vector_score, vector_range)
        )
        scored_candidates.append(replace(candidate, score=min(1.0, max(0.0, score))))
    return sorted(scored_candidates, key=lambda candidate: (*candidate.rank, candidate.chunk_id))


def _vector_ranges(candidates: Iterable[Candidate]) -> dict[int, tuple[float, float]]:
    ranges: dict[int, tuple[float, float]] = {}
    for candidate in candidates:
        if candidate.vector_score is not None:
            low, high = ranges.get(candidate.space_id, (candidate.vector_score, candidate.vector_score))
            ranges[candidate.space_id] = (min(low, candidate.vector_score), max(high, candidate.vector_score))
    return ranges


def _vector_part(vector_score: float | None, vector_range: tuple[float, float] | None) -> float:
    if vector_score is None or vector_range is None:
        return 0.0
    low, high = vector_range
    return (vector_score - low) / (high - low) if high > low else 1.0
