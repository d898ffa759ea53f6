"""Measures of a response: the rank of the right document, and whether the right passage is within reach."""

from collections.abc import Sequence
from math import log2

DEPTH = 10
CONTEXT = 4_000


def ndcg(documents: Sequence[str], right: str) -> float:
    """With one right document: 1 at the first place, less further down, 0 behind the tenth.

    >>> ndcg(["a", "b"], "a"), round(ndcg(["a", "b"], "b"), 3), ndcg(["a", "b"], "c")
    (1.0, 0.631, 0.0)
    """
    first = list(dict.fromkeys(documents))[:DEPTH]
    return 1 / log2(first.index(right) + 2) if right in first else 0.0


def recall(documents: Sequence[str], right: str) -> float:
    return float(right in list(dict.fromkeys(documents))[:DEPTH])


def is_in_context(passages: Sequence[tuple[str, str]], right: str, answers: Sequence[str]) -> float:
    """Whether an answer lies whole in a passage of the right document, among the first 4,000 characters."""
    left = CONTEXT
    for doc_id, text in passages:
        if left <= 0:
            break
        if doc_id == right and any(answer.strip() in text[:left] for answer in answers):
            return 1.0
        left -= len(text)
    return 0.0
