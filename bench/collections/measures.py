"""Measures of a response: the rank of the right document, and whether the right passage is in the context."""

from collections.abc import Sequence

from collections_app.evaluation.measures import RANKING_DEPTH, first_rank

CONTEXT_CHARACTERS = 4_000


def recall(doc_ids: Sequence[str], right_doc_id: str) -> float:
    return float(0 < (first_rank(doc_ids, {right_doc_id}) or 0) <= RANKING_DEPTH)


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
