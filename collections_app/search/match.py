"""How well a passage answers a query, from 0 to 1. Unlike the score, it does not depend on the other results.

It is the mean of how near the meanings are, as calibrated for the model, and of the share of the query's words that the
passage has. Words that occur nowhere in the collection count as missing, so a query without sense matches nothing.
"""

from collections_app import embed
from collections_app.lexical.term_statistics import QueryTerms
from collections_app.models import EmbeddingSpace

# The cosines of a question and a passage, for models of a provider: unrelated ones (0) and an answer (1).
PROVIDER_COSINES = (0.15, 0.6)


def match_score(
    space: EmbeddingSpace, terms: QueryTerms, *, vector_score: float | None, text_score: float | None
) -> float:
    """Without one of the two scores, the other one decides."""
    meaning = None if vector_score is None else _meaning(space, vector_score)
    words = None if text_score is None else min(1.0, text_score / terms.asked_weight) if terms.asked_weight else 0.0
    if meaning is None or words is None:
        return (words or 0.0) if meaning is None else meaning
    weight = 0.5 * _trust(space, terms)
    return weight * meaning + (1 - weight) * words


def _meaning(space: EmbeddingSpace, cosine: float) -> float:
    model = embed.LOCAL_MODELS.get(space.model) if space.provider == "local" else None
    if model is not None:
        return model.match(cosine)
    low, high = PROVIDER_COSINES
    return min(1.0, max(0.0, (cosine - low) / (high - low)))


def _trust(space: EmbeddingSpace, terms: QueryTerms) -> float:
    """The general local model tells related texts from unrelated ones only in English."""
    model = embed.LOCAL_MODELS.get(space.model) if space.provider == "local" else None
    return terms.english_share if model is not None and not model.language else 1.0
