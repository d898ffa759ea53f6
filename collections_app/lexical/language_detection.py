"""Guesses the language of a text, as a text search configuration. Pure.

By script first, then by stop words. A text with too few stop words of one language is "simple", which compares words
unchanged: suitable for names, tables and languages for which PostgreSQL has no stemmer.
"""

import re
from collections import Counter
from collections.abc import Mapping
from math import sqrt

from .stopwords import STOPWORDS, UNUSED_LETTERS

SIMPLE_CONFIGURATION = "simple"
SAMPLE_LENGTH = 20_000
# The minimum share of stop words among all words, and the minimum number of different ones.
MIN_STOPWORD_SHARE = 0.06
MIN_STOPWORDS = 3
# A text of at most this many words needs no minimum number if one language is far ahead of all others.
MAX_SHORT_WORDS = 60
MIN_SHORT_WEIGHT = 0.5
MIN_SHORT_LEAD = 0.3

_SCRIPTS: Mapping[str, str] = {
    "latin": "A-Za-z\u00c0-\u024f\u1e00-\u1eff",
    "cyrillic": "\u0400-\u052f",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "armenian": "\u0531-\u058f",
    "hebrew": "\u05d0-\u05f4",
    "arabic": "\u0620-\u06ff\u0750-\u077f",
    "devanagari": "\u0900-\u097f",
    "tamil": "\u0b80-\u0bff",
    # Scripts without spaces, which are indexed as bigrams.
    "unspaced": "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3",
}
_LETTER_PATTERNS = {name: re.compile(f"[{ranges}]") for name, ranges in _SCRIPTS.items()}
# One character of these scripts counts as several letters.
_LETTERS_PER_CHARACTER = {"unspaced": 3}

_STOPWORDS = {
    script: {name: frozenset(words.split()) for name, words in languages.items()}
    for script, languages in STOPWORDS.items()
}
_SINGLE_LANGUAGE_SCRIPTS = {"greek": "greek", "armenian": "armenian", "tamil": "tamil"}


def detect_language(text: str) -> str:
    """Returns the name of the best text search configuration for a text.

    >>> detect_language("The printer on the third floor is broken."), detect_language("プリンターは三階にあります。")
    ('english', 'simple')
    """
    text = text[:SAMPLE_LENGTH]
    script = _main_script(text)
    if script in _SINGLE_LANGUAGE_SCRIPTS:
        return _SINGLE_LANGUAGE_SCRIPTS[script]
    if script not in _STOPWORDS:
        return SIMPLE_CONFIGURATION
    words = re.findall(f"[{_SCRIPTS[script]}\u0300-\u036f]+", text.lower())
    return _best_language(words, _STOPWORDS[script])


def _main_script(text: str) -> str:
    counts = {
        name: len(letter.findall(text)) * _LETTERS_PER_CHARACTER.get(name, 1)
        for name, letter in _LETTER_PATTERNS.items()
    }
    best_name = max(counts, key=lambda name: counts[name])
    return best_name if counts[best_name] else ""


def _best_language(words: list[str], languages: Mapping[str, frozenset[str]]) -> str:
    counts = Counter(words)
    language_counts = Counter([word for stopwords in languages.values() for word in stopwords])
    # Square roots keep one frequent word, and words that many languages share, from outweighing all others.
    weights = {
        name: sum([sqrt(counts[word] / language_counts[word]) for word in stopwords])
        - _foreign_letter_weight(counts, name)
        for name, stopwords in languages.items()
    }
    second_name, best_name = sorted(weights, key=lambda name: weights[name])[-2:]
    matches = [counts[word] for word in languages[best_name] if word in counts]
    has_many = len(matches) >= MIN_STOPWORDS
    is_clear = len(words) <= MAX_SHORT_WORDS and weights[best_name] >= max(
        MIN_SHORT_WEIGHT, weights[second_name] + MIN_SHORT_LEAD
    )
    if not (has_many or is_clear) or sum(matches) < MIN_STOPWORD_SHARE * len(words):
        return SIMPLE_CONFIGURATION
    return best_name.split()[0]


def _foreign_letter_weight(counts: Counter[str], name: str) -> float:
    unused_letters = frozenset(UNUSED_LETTERS.get(name, ""))
    return sum([sqrt(count) for word, count in counts.items() if not unused_letters.isdisjoint(word)])
