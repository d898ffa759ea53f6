"""Compares the results of a run with those of the previous one, question by question."""

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

# In the order in which the page lists them.
CHANGES = ("worse", "missing", "better", "new", "same")


def compare_results(
    results: Iterable[Mapping[str, Any]], previous_results: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Returns the results with the rank in the previous run and what has changed. Questions are matched by their text.

    >>> result = {"query": "paper?", "rank": 2, "ndcg": 0.631}
    >>> compare_results([result], [{**result, "rank": None}])
    [{'query': 'paper?', 'rank': 2, 'ndcg': 0.631, 'rank_before': None, 'change': 'better'}]
    >>> [compare_results([result], before)[0]["change"] for before in ([{**result, "rank": 1}], [result], [])]
    ['worse', 'same', 'new']
    """
    previous = {result["query"]: result for result in previous_results}
    compared = []
    for result in results:
        before = previous.get(result["query"])
        rank_before = before["rank"] if before else None
        compared.append({**result, "rank_before": rank_before, "change": _change(result, before)})
    return compared


def _change(result: Mapping[str, Any], before: Mapping[str, Any] | None) -> str:
    if result["ndcg"] is None:
        return "missing"
    if before is None or before["ndcg"] is None:
        return "new"
    rank, rank_before = (inf if entry["rank"] is None else entry["rank"] for entry in (result, before))
    return "same" if rank == rank_before else "better" if rank < rank_before else "worse"
