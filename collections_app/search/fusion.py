"""Combines the keyword score and the vector score. Pure.

`a·bm25/max + (1-a)·minmax(cosine)`. The keyword score is normalized over all collections, so keyword matches can be
compared; the cosine within each space, because cosines of different models cannot be compared. Fusion by ranks was
worse than keyword search alone on four of five question sets.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A chunk with its keyword and vector scores; `alpha` is the weight of the keyword score in `score`."""

    chunk_id: int
    space_id: int
    alpha: float
    text_score: float | None = None
    vector_score: float | None = None
    score: float = 0.0

    @property
    def rank(self) -> tuple[float, float]:
        """The sort key, best first. The cosine sorts equal scores, such as those of chunks without a keyword match."""
        return -self.score, -math.inf if self.vector_score is None else -self.vector_score


def fuse(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Returns the candidates with scores from 0 to 1, best first; ties are sorted by vector score, then by chunk id.

    >>> candidates = [Candidate(chunk_id=n, space_id=1, alpha=0.7, text_score=t, vector_score=v)
    ...               for n, t, v in ((1, 4.0, 0.2), (2, None, 0.6), (3, 2.0, 0.4))]
    >>> [(chunk.chunk_id, round(chunk.score, 3)) for chunk in fuse(candidates)]
    [(1, 0.7), (3, 0.5), (2, 0.3)]
    """
    best_text_score = max([candidate.text_score or 0.0 for candidate in candidates], default=0.0)
    ranges = _vector_ranges(candidates)
    scored_candidates = [
        replace(candidate, score=_score(candidate, best_text_score, ranges.get(candidate.space_id)))
        for candidate in candidates
    ]
    return sorted(scored_candidates, key=lambda candidate: (*candidate.rank, candidate.chunk_id))


def _vector_ranges(candidates: Iterable[Candidate]) -> dict[int, tuple[float, float]]:
    ranges: dict[int, tuple[float, float]] = {}
    for candidate in candidates:
        if candidate.vector_score is not None:
            low, high = ranges.get(candidate.space_id, (candidate.vector_score, candidate.vector_score))
            ranges[candidate.space_id] = (min(low, candidate.vector_score), max(high, candidate.vector_score))
    return ranges


def _score(candidate: Candidate, best_text_score: float, vector_range: tuple[float, float] | None) -> float:
    # If one of the two scores exists for no chunk, only the other counts.
    alpha = 1.0 if vector_range is None else candidate.alpha if best_text_score > 0.0 else 0.0
    text_part = (candidate.text_score or 0.0) / best_text_score if best_text_score > 0.0 else 0.0
    vector_part = 0.0
    if vector_range is not None and candidate.vector_score is not None:
        low, high = vector_range
        vector_part = (candidate.vector_score - low) / (high - low) if high > low else 1.0
    return min(1.0, max(0.0, alpha * text_part + (1.0 - alpha) * vector_part))
