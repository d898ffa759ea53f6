"""Measures of a response: the rank of the right document, and whether the right passage is in the context."""

from collections.abc import Sequence
from math import log2

RANKING_DEPTH = 10
CONTEXT_CHARACTERS = 4_000


def ndcg(doc_ids: Sequence[str], right_doc_id: str) -> float:
    """With one right document: 1 at the first rank, less at lower ranks, 0 below the tenth.

    >>> ndcg(["a", "b"], "a"), round(ndcg(["a", "b"], "b"), 3), ndcg(["a", "b"], "c")
    (1.0, 0.631, 0.0)
    """
    ranking = list(dict.fromkeys(doc_ids))[:RANKING_DEPTH]
    return 1 / log2(ranking.index(right_doc_id) + 2) if right_doc_id in ranking else 0.0


def recall(doc_ids: Sequence[str], right_doc_id: str) -> float:
    return float(right_doc_id in list(dict.fromkeys(doc_ids))[:RANKING_DEPTH])


def context_recall(passages: Sequence[tuple[str, str]], right_doc_id: str, answers: Sequence[str]) -> float:
    """1 if the first 4,000 characters contain a whole answer, in a passage of the right document; otherwise 0."""
    characters_left = CONTEXT_CHARACTERS
    for doc_id, text in passages:
        if characters_left <= 0:
            break
        if doc_id == right_doc_id and any(answer.strip() in text[:characters_left] for answer in answers):
            return 1.0
        characters_left -= len(text)
    return 0.0
