"""Combines the keyword score and the vector score. Pure.

`a·bm25/max + (1-a)·minmax(cosine)`: the first over the whole answer, so that collections are told apart by their words;
the second within each space, because cosines of two models cannot be compared. Fusing by ranks instead fell below words
alone on four of five sets of questions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A chunk with what is known of it; `alpha` is the share of words."""

    chunk_id: int
    collection_id: str
    space_id: int
    alpha: float
    text: float | None = None
    vector: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredChunk:
    candidate: Candidate
    score: float

    @property
    def rank(self) -> tuple[float, float]:
        """The least is the best. Of equal scores the nearest: where words have the whole say, all that only the vectors
        have found would be equal."""
        return -self.score, -math.inf if self.candidate.vector is None else -self.candidate.vector


def fused(candidates: Sequence[Candidate]) -> list[ScoredChunk]:
    """Each with its score from 0 to 1, best first; of equal ones the nearest, then in the order of their chunks.

    >>> given = [Candidate(chunk_id=n, collection_id="", space_id=1, alpha=0.7, text=t, vector=v)
    ...          for n, t, v in ((1, 4.0, 0.2), (2, None, 0.6), (3, 2.0, 0.4))]
    >>> [(each.candidate.chunk_id, round(each.score, 3)) for each in fused(given)]
    [(1, 0.7), (3, 0.5), (2, 0.3)]
    """
    most = max([each.text or 0.0 for each in candidates], default=0.0)
    ends = _ends(candidates)
    found = [ScoredChunk(candidate=each, score=_score(each, most, ends.get(each.space_id))) for each in candidates]
    return sorted(found, key=lambda each: (*each.rank, each.candidate.chunk_id))


def _ends(candidates: Iterable[Candidate]) -> dict[int, tuple[float, float]]:
    """The least and the greatest cosine of each space."""
    found: dict[int, tuple[float, float]] = {}
    for each in candidates:
        if each.vector is not None:
            low, high = found.get(each.space_id, (each.vector, each.vector))
            found[each.space_id] = (min(low, each.vector), max(high, each.vector))
    return found


def _score(candidate: Candidate, most: float, ends: tuple[float, float] | None) -> float:
    # Where one of the two says nothing about any chunk, the other has the whole say.
    alpha = 1.0 if ends is None else candidate.alpha if most > 0.0 else 0.0
    by_text = (candidate.text or 0.0) / most if most > 0.0 else 0.0
    by_vector = 0.0
    if ends is not None and candidate.vector is not None:
        low, high = ends
        by_vector = (candidate.vector - low) / (high - low) if high > low else 1.0
    return min(1.0, max(0.0, alpha * by_text + (1.0 - alpha) * by_vector))
