"""Generates any amount of realistic text: few frequent words, many rare ones, documents about a topic. Pure.

`InventedText` needs no files. Its words have no meaning, so its vectors are as far apart as possible: the hardest case
for an index. `RewordedText` repeats the passages of question sets, each time in another wording.
"""

import random
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import Protocol

from bench.collections.question_sets import SENTENCE_END, QuestionSet

VOCABULARY_SIZE, WORDS_PER_TOPIC, TOPIC_COUNT = 60_000, 120, 2_000
WORDS_PER_CHUNK = 140
# A filter keeps the documents whose `share` is below this.
FILTER_PERCENTAGES = {"all": 100, "60 %": 60, "10 %": 10, "1 %": 1}
# Passages of real text: sentences, maximum length, and the shares of sentences and words that are exchanged.
SENTENCES_PER_CHUNK, MAX_CHARACTERS = 7, 1_000
SENTENCE_EXCHANGE_RATE, WORD_EXCHANGE_RATE = 0.2, 0.1
SYLLABLES = [onset + rhyme for onset in "bcdfghjklmnprstvwz" for rhyme in ("a", "e", "i", "o", "u", "an", "er", "is")]


@cache
def vocabulary() -> tuple[str, ...]:
    rng = random.Random(1)
    words: dict[str, None] = {}
    while len(words) < VOCABULARY_SIZE:
        words["".join(rng.choices(SYLLABLES, k=rng.choice((1, 2, 2, 3, 3, 4))))] = None
        if len(words) > 2_000 and len(words) % 7 == 0:
            words[f"{rng.choice(SYLLABLES)}{len(words)}"] = None
    return tuple(words)


@cache
def cumulative_weights() -> tuple[float, ...]:
    """Word frequencies by rank in the vocabulary, as in natural languages (Zipf's law)."""
    return tuple(accumulate(1 / (rank + 3) for rank in range(VOCABULARY_SIZE)))


def topic_words(number: int) -> list[str]:
    return random.Random(number).sample(vocabulary()[300:], WORDS_PER_TOPIC)


class TextSource(Protocol):
    def chunk(self, number: int) -> str: ...

    def questions(self, count: int) -> Iterator[str]: ...


class InventedText:
    """Chunks of invented words."""

    def chunk(self, number: int) -> str:
        """Ten consecutive chunks belong to one document and one topic."""
        rng = random.Random(number)
        common_words = rng.choices(vocabulary(), cum_weights=cumulative_weights(), k=WORDS_PER_CHUNK * 3 // 4)
        topic_sample = rng.choices(topic_words(number // 10 % TOPIC_COUNT), k=WORDS_PER_CHUNK // 4)
        words = [*common_words, *topic_sample]
        rng.shuffle(words)
        return " ".join(words)

    def questions(self, count: int) -> Iterator[str]:
        """Some words of a topic and some of the whole vocabulary."""
        for number in range(count):
            rng = random.Random(-1 - number)
            topic_sample = rng.sample(topic_words(rng.randrange(TOPIC_COUNT)), 4)
            yield " ".join([*topic_sample, *rng.choices(vocabulary(), cum_weights=cumulative_weights(), k=4)])


class RewordedText:
    """The sentences of question sets in their order, with some sentences and words exchanged."""

    def __init__(self, question_sets: Sequence[QuestionSet]) -> None:
        texts = [text for question_set in question_sets for text in question_set.documents.values()]
        sentences = [sentence.strip() for text in texts for sentence in SENTENCE_END.split(text)]
        self._sentences = [sentence for sentence in sentences if sentence]
        self._questions = [question.text for question_set in question_sets for question in question_set.questions]

    def chunk(self, number: int) -> str:
        """Ten consecutive chunks belong to one document: adjacent sentences from a random position."""
        rng = random.Random(number)
        position = random.Random(number // 10).randrange(len(self._sentences)) + SENTENCES_PER_CHUNK * (number % 10)
        sentences = []
        for index in range(position, position + SENTENCES_PER_CHUNK):
            own_sentence = self._sentences[index % len(self._sentences)]
            sentences.append(rng.choice(self._sentences) if rng.random() < SENTENCE_EXCHANGE_RATE else own_sentence)
        return " ".join(self._exchange_words(sentence, rng) for sentence in sentences)[:MAX_CHARACTERS]

    def _exchange_words(self, sentence: str, rng: random.Random) -> str:
        return " ".join(
            rng.choice(rng.choice(self._sentences).split()) if rng.random() < WORD_EXCHANGE_RATE else word
            for word in sentence.split()
        )

    def questions(self, count: int) -> Iterator[str]:
        return iter(random.Random(0).sample(self._questions, count))
