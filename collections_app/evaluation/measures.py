"""Measures of a ranking of documents: nDCG@10, and the rank of the first expected document.

A ranking is the `doc_id` of each passage, best first; each document counts once, with its best passage.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log2
from statistics import mean
from typing import Any

RANKING_DEPTH = 10
HIT_DEPTHS = (1, 5, 10)


def first_rank(doc_ids: Iterable[str], expected: Collection[str]) -> int | None:
    """
    >>> first_rank(["a", "a", "b"], {"b"}), first_rank(["a"], {"b"})
    (2, None)
    """
    return next((rank for rank, doc_id in enumerate(dict.fromkeys(doc_ids), 1) if doc_id in expected), None)


def ndcg(doc_ids: Iterable[str], expected: Collection[str]) -> float:
    """1 if the expected documents come first, less for lower ranks, 0 if none is among the first ten.

    >>> ndcg(["a", "b"], {"a"}), round(ndcg(["a", "b"], {"b"}), 3), ndcg(["a", "b"], {"c"})
    (1.0, 0.631, 0.0)
    >>> ndcg(["b", "a"], {"a", "b"}), round(ndcg(["a", "c", "b"], {"a", "b"}), 3)
    (1.0, 0.92)
    """
    ranking = list(dict.fromkeys(doc_ids))[:RANKING_DEPTH]
    gain = sum(_gain(rank) for rank, doc_id in enumerate(ranking, 1) if doc_id in expected)
    return gain / sum(_gain(rank) for rank in range(1, min(len(expected), RANKING_DEPTH) + 1))


def _gain(rank: int) -> float:
    return 1 / log2(rank + 1)


def mean_measures(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the means over the questions whose expected documents exist; null if there is none.

    >>> mean_measures([{"rank": 2, "ndcg": 0.631}, {"rank": None, "ndcg": 0.0}, {"rank": None, "ndcg": None}])
    {'ndcg_at_10': 0.3155, 'hit_at_1': 0.0, 'hit_at_5': 0.5, 'hit_at_10': 0.5, 'questions': 2, 'missing': 1}
    """
    measured = [result for result in results if result["ndcg"] is not None]
    hits = {f"hit_at_{depth}": [0 < (result["rank"] or 0) <= depth for result in measured] for depth in HIT_DEPTHS}
    values: dict[str, list[Any]] = {"ndcg_at_10": [result["ndcg"] for result in measured], **hits}
    means = {name: round(float(mean(entries)), 4) if entries else None for name, entries in values.items()}
    return {**means, "questions": len(measured), "missing": len(results) - len(measured)}
