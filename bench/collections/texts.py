"""Generates any amount of realistic text: few frequent words, many rare ones, documents about a topic. Pure.

`InventedText` needs nothing, and its words mean nothing, so its vectors lie as far apart as they can: the hardest case
for an index. `RewordedText` repeats the passages of question sets, each time in another wording.
"""

import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import Protocol

from bench.collections.sets import QuestionSet

WORDS_IN_ALL, WORDS_OF_A_TOPIC, TOPICS = 60_000, 120, 2_000
WORDS_OF_A_CHUNK = 140
# What part of the documents a filter keeps: those whose `share` is below this.
FILTERS = {"all": 100, "60 %": 60, "10 %": 10, "1 %": 1}
# Of a passage of real text: sentences, characters at most, and what part of sentences and words is exchanged.
SENTENCES, MAX_CHARACTERS = 7, 1_000
OTHER_SENTENCES, OTHER_WORDS = 0.2, 0.1
SYLLABLES = [first + vowel for first in "bcdfghjklmnprstvwz" for vowel in ("a", "e", "i", "o", "u", "an", "er", "is")]


@cache
def vocabulary() -> tuple[str, ...]:
    chance = random.Random(1)
    words: dict[str, None] = {}
    while len(words) < WORDS_IN_ALL:
        words["".join(chance.choices(SYLLABLES, k=chance.choice((1, 2, 2, 3, 3, 4))))] = None
        if len(words) > 2_000 and len(words) % 7 == 0:
            words[f"{chance.choice(SYLLABLES)}{len(words)}"] = None
    return tuple(words)


@cache
def weights() -> tuple[float, ...]:
    """Each word as often as its place in the vocabulary says, as in every language."""
    return tuple(accumulate(1 / (place + 3) for place in range(WORDS_IN_ALL)))


def topic(number: int) -> list[str]:
    return random.Random(number).sample(vocabulary()[300:], WORDS_OF_A_TOPIC)


class Text(Protocol):
    def chunk(self, number: int) -> str: ...

    def questions(self, count: int) -> Iterator[str]: ...


class InventedText:
    """Of invented words."""

    def chunk(self, number: int) -> str:
        """Chunks in tens are of one document, and of one topic."""
        chance = random.Random(number)
        common = chance.choices(vocabulary(), cum_weights=weights(), k=WORDS_OF_A_CHUNK * 3 // 4)
        special = chance.choices(topic(number // 10 % TOPICS), k=WORDS_OF_A_CHUNK // 4)
        words = [*common, *special]
        chance.shuffle(words)
        return " ".join(words)

    def questions(self, count: int) -> Iterator[str]:
        """Some words of a topic and some of all."""
        for number in range(count):
            chance = random.Random(-1 - number)
            special = chance.sample(topic(chance.randrange(TOPICS)), 4)
            yield " ".join([*special, *chance.choices(vocabulary(), cum_weights=weights(), k=4)])


class RewordedText:
    """Of sets of questions: their sentences in their order, some of them and some of the words exchanged for others."""

    def __init__(self, sets: Sequence[QuestionSet]) -> None:
        texts = [text for set in sets for text in set.documents.values()]
        self._sentences = [one.strip() for text in texts for one in re.split(r"(?<=[.!?])\s+", text) if one.strip()]
        self._questions = [question.text for set in sets for question in set.questions]

    def chunk(self, number: int) -> str:
        """Chunks in tens are of one document: what follows in the text from a place of it."""
        chance = random.Random(number)
        place = random.Random(number // 10).randrange(len(self._sentences)) + SENTENCES * (number % 10)
        sentences = [self._sentences[(place + each) % len(self._sentences)] for each in range(SENTENCES)]
        chosen = [chance.choice(self._sentences) if chance.random() < OTHER_SENTENCES else each for each in sentences]
        return " ".join(self._reworded(each, chance) for each in chosen)[:MAX_CHARACTERS]

    def _reworded(self, sentence: str, chance: random.Random) -> str:
        return " ".join(
            chance.choice(chance.choice(self._sentences).split()) if chance.random() < OTHER_WORDS else word
            for word in sentence.split()
        )

    def questions(self, count: int) -> Iterator[str]:
        return iter(random.Random(0).sample(self._questions, count))
