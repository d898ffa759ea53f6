"""Joins words that are divided at the end of a line, and keeps the hyphens of compounds."""

import re
from collections.abc import Iterable
from itertools import pairwise

from .lines import LINE_END_HYPHENS

# A hyphen and the end of its line.
DIVISION = re.compile(f"[{LINE_END_HYPHENS}]\n?|[-\u2010\u00ad]\n")
COMPOUND = re.compile("[^\\W_]+(?:[-\u2010][^\\W_]+)*")
FIRST_LETTERS = re.compile(r"[^\W_]+")
LAST_LETTERS = re.compile(r"[^\W_]+\Z")
MAX_WORD_LENGTH = 50
# Chosen: shorter words are often syllables, as in "per-form".
MIN_COMPOUND_PART = 4


class Hyphens:
    """Decides with the other words of the document whether a hyphen belongs to a word.

    >>> Hyphens(["two dual-encoder models for in\\x02formation", "a dual\\x02encoder with information"]).join(
    ...     "dual\\x02encoder in\\x02formation, COVID\\x0219, auto\\x02matic"
    ... )
    'dual-encoder information, COVID-19, automatic'
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.words: set[str] = set()
        # The parts of compounds at each hyphen: of "state-of-the-art", the first is ("state", "of").
        self.compounds: set[tuple[str, str]] = set()
        texts = list(texts)
        if any(DIVISION.search(text) for text in texts):
            for text in texts:
                self.learn(text.casefold())

    def learn(self, text: str) -> None:
        pieces = DIVISION.split(text)
        for number, piece in enumerate(pieces):
            compounds = COMPOUND.findall(piece)
            # Not the parts of divided words.
            if number and piece[:1].isalnum():
                del compounds[:1]
            if number < len(pieces) - 1 and piece[-1:].isalnum():
                del compounds[-1:]
            self.words.update(compounds)
            for compound in compounds:
                if "-" in compound or "\u2010" in compound:
                    parts = re.split("[-\u2010]", compound)
                    self.words.update(parts)
                    self.compounds.update(pairwise(parts))

    def join(self, text: str) -> str:
        parts = []
        position = 0
        for division in DIVISION.finditer(text):
            first = LAST_LETTERS.search(text[max(position, division.start() - MAX_WORD_LENGTH) : division.start()])
            second = FIRST_LETTERS.match(text, division.end())
            if first and second:
                has_hyphen_before = text.startswith(("-", "\u2010"), max(0, division.start() - len(first[0]) - 1))
                hyphen = "-" if self.is_compound(first[0], second[0], has_hyphen_before) else ""
            else:
                hyphen = division[0] if division[0][0] in "-\u2010" else "-"
            parts += [text[position : division.start()], hyphen]
            position = division.end()
        return "".join([*parts, text[position:]])

    def is_compound(self, first_written: str, second_written: str, has_hyphen_before: bool) -> bool:
        first, second = first_written.casefold(), second_written.casefold()
        if {(first, second), (first, second.removesuffix("s")), (first, second + "s")} & self.compounds:
            return True
        if first + second in self.words:
            return False
        if has_hyphen_before or not (first[-1].isalpha() and second[0].isalpha()):
            return True
        if second_written[0].isupper():
            return not first_written.isupper()
        has_words = first in self.words and second in self.words
        return has_words and min(len(first), len(second)) >= MIN_COMPOUND_PART
