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
    words = 0.0
    if text_score is not None and terms.asked_weight:
        words = min(1.0, text_score / terms.asked_weight)
    if vector_score is None:
        return words
    model = embed.find_local_model(space)
    low, high = model.match_cosines if model else PROVIDER_COSINES
    meaning = min(1.0, max(0.0, (vector_score - low) / (high - low)))
    if text_score is None:
        return meaning
    # The general local model tells related texts from unrelated ones only in English.
    trust = terms.english_share if model and not model.language else 1.0
    return 0.5 * trust * meaning + (1 - 0.5 * trust) * words
