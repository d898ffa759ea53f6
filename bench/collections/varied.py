"""Makes text of any amount that behaves like text: few words often, many seldom, documents about something. Pure."""

import random
from collections.abc import Iterator
from functools import cache
from itertools import accumulate

WORDS_IN_ALL, WORDS_OF_A_TOPIC, TOPICS = 60_000, 120, 2_000
WORDS_OF_A_CHUNK = 140
# What part of the documents a filter keeps: those whose `share` is below this.
FILTERS = {"all": 100, "60 %": 60, "10 %": 10, "1 %": 1}
SYLLABLES = [first + vowel for first in "bcdfghjklmnprstvwz" for vowel in ("a", "e", "i", "o", "u", "an", "er", "is")]


@cache
def vocabulary() -> tuple[str, ...]:
    chance = random.Random(1)
    found: dict[str, None] = {}
    while len(found) < WORDS_IN_ALL:
        found["".join(chance.choices(SYLLABLES, k=chance.choice((1, 2, 2, 3, 3, 4))))] = None
        if len(found) > 2_000 and len(found) % 7 == 0:
            found[f"{chance.choice(SYLLABLES)}{len(found)}"] = None
    return tuple(found)


@cache
def weights() -> tuple[float, ...]:
    """Each word as often as its place in the vocabulary says, as in every language."""
    return tuple(accumulate(1 / (place + 3) for place in range(WORDS_IN_ALL)))


def topic(number: int) -> list[str]:
    return random.Random(number).sample(vocabulary()[300:], WORDS_OF_A_TOPIC)


def chunk(number: int) -> str:
    """Chunks in tens are of one document, and of one topic."""
    chance = random.Random(number)
    common = chance.choices(vocabulary(), cum_weights=weights(), k=WORDS_OF_A_CHUNK * 3 // 4)
    special = chance.choices(topic(number // 10 % TOPICS), k=WORDS_OF_A_CHUNK // 4)
    words = [*common, *special]
    chance.shuffle(words)
    return " ".join(words)


def questions(count: int) -> Iterator[str]:
    """Some words of a topic and some of all."""
    for number in range(count):
        chance = random.Random(-1 - number)
        special = chance.sample(topic(chance.randrange(TOPICS)), 4)
        yield " ".join([*special, *chance.choices(vocabulary(), cum_weights=weights(), k=4)])
