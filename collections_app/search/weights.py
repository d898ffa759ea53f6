"""How much words, characters and vectors count in a score, per embedding model and language. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Weights(NamedTuple):
    """The weights of a collection's scores, which add up to 1."""

    words: float
    characters: float
    vectors: float

    def with_alpha(self, alpha: float) -> "Weights":
        """Returns weights in which `alpha` is the weight of the keywords, that is, of words and characters together.

        >>> Weights(words=0.6, characters=0.2, vectors=0.2).with_alpha(0.4)
        Weights(words=0.3, characters=0.1, vectors=0.6)
        """
        word_share = self.words / (self.words + self.characters)
        words = round(alpha * word_share, 6)
        return Weights(words=words, characters=round(alpha - words, 6), vectors=round(1 - alpha, 6))

    def without_missing_scores(self, *, words: bool, characters: bool, vectors: bool) -> "Weights":
        """Returns the weights if some kinds of scores exist for no candidate: another kind gets their weight.

        >>> weights = Weights(words=0.6, characters=0.15, vectors=0.25)
        >>> weights.without_missing_scores(words=False, characters=True, vectors=True)
        Weights(words=0.0, characters=0.15, vectors=0.85)
        >>> weights.without_missing_scores(words=True, characters=True, vectors=False)
        Weights(words=0.8, characters=0.2, vectors=0.0)
        """
        if words and characters and vectors:
            return self
        of_words, of_characters, of_vectors = self
        if not characters:
            of_words, of_characters = of_words + of_characters, 0.0
        if not words and vectors:
            # Chosen: if no word matches, a few shared characters are weak evidence, so vectors count more.
            of_words, of_vectors = 0.0, of_vectors + of_words
        elif not words:
            of_words, of_characters = 0.0, of_characters + of_words
        if not vectors:
            of_vectors = 0.0
        total = of_words + of_characters + of_vectors or 1.0
        return Weights(*[round(weight / total, 6) for weight in (of_words, of_characters, of_vectors)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWeights:
    """The default weights for texts in English and for texts in other languages."""

    english: Weights
    other: Weights

    def mixed(self, english_share: float) -> Weights:
        """
        >>> MODEL_WEIGHTS["wordllama-l2-supercat"].mixed(0.5)
        Weights(words=0.45, characters=0.3, vectors=0.25)
        """
        pairs = zip(self.english, self.other, strict=True)
        return Weights(*[round(english_share * english + (1 - english_share) * other, 6) for english, other in pairs])


# Chosen by measurement, see docs/explanation/search.md. Characters make up for inflected and compound words, which
# English has few of.
MODEL_WEIGHTS: Mapping[str, ModelWeights] = {
    "wordllama-l2-supercat": ModelWeights(
        english=Weights(words=0.5, characters=0.2, vectors=0.3),
        other=Weights(words=0.4, characters=0.4, vectors=0.2),
    ),
    "all-MiniLM-L6-v2": ModelWeights(
        english=Weights(words=0.4, characters=0.1, vectors=0.5),
        other=Weights(words=0.4, characters=0.4, vectors=0.2),
    ),
    "navec-news-v1": ModelWeights(
        english=Weights(words=0.4, characters=0.4, vectors=0.2),
        other=Weights(words=0.4, characters=0.3, vectors=0.3),
    ),
}
# For models of a provider, which know more languages.
DEFAULT_WEIGHTS = ModelWeights(
    english=Weights(words=0.5, characters=0.2, vectors=0.3),
    other=Weights(words=0.4, characters=0.3, vectors=0.3),
)


def choose_weights(model: str, english_share: float, alpha: float | None) -> Weights:
    """Returns the weights of a collection with this model; without `alpha`, those of the model's row."""
    weights = MODEL_WEIGHTS.get(model, DEFAULT_WEIGHTS).mixed(english_share)
    return weights if alpha is None else weights.with_alpha(alpha)
