"""Prepares text for PostgreSQL's text search, in the same way for documents and queries. Pure.

How the server's parser treats quotation marks, hyphens, addresses and scripts without spaces depends on its locale, and
often prevents matches: “quoted” with its marks, end.Start and and/or would be one word each. So the parser only gets
lower-case words separated by spaces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence, Set
from dataclasses import dataclass

from system import process_cache

# Longer strings are not words, and the server warns about those over 2,046 bytes.
LONGEST_WORD = 100
# A chunk has at most 8,000 characters plus its headings; a sparse vector holds 16,000 words.
LONGEST_TEXT = 15_000
# The number of characters cached per process, which is more than one script has.
MOST_CHARACTERS = 50_000


def _ranges(categories: str) -> str:
    """The characters of these Unicode categories in the basic plane, as ranges of a character class.

    >>> _ranges("Zl")
    '\\u2028-\\u2028'
    """
    ranges: list[list[int]] = []
    for code in range(0x10000):
        if unicodedata.category(chr(code)).startswith(categories):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join([f"{chr(first)}-{chr(last)}" for first, last in ranges])


# Vowel signs and accents, which are part of a word but not letters in Python.
_MARKS = _ranges("M")
# Invisible characters between letters.
_INVISIBLE = "\u00ad\u200b-\u200f\u2060-\u2064\ufeff\ufe00-\ufe0f"
# Chosen: scripts written without spaces, and Korean, where particles are attached to words.
_UNSPACED = (
    "\u0e01-\u0e5b\u0e81-\u0edf\u1000-\u109f\u1780-\u17d3\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua9e0-\ua9fe\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af"
)
_RUN = re.compile(f"[{_UNSPACED}]+")
# Characters that are words on their own and occur within others: Chinese characters and Korean syllables.
_ALONE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af]")
_INVISIBLE_RUN = re.compile(f"[{_INVISIBLE}]+")
# A dot between digits is kept: 3.14 is one number and 1.2.3 one version.
_OTHER_DOT = re.compile(r"(?<![0-9])\.|\.(?![0-9])")
_OVERLONG = re.compile(rf"(\S{{{LONGEST_WORD}}})\S+")
# A character with all that can combine with it: marks, later parts of a Korean syllable, half-width voicing.
_CLUSTER = re.compile(f".[{_MARKS}\u1160-\u11ff\uff9e\uff9f]*", re.DOTALL)
# ASCII characters never combine with the preceding one, and normalisation does not change them.
_SEGMENT = re.compile(r"[\x00-\x7f]+(?![^\x00-\x7f])|[\x00-\x7f]?[^\x00-\x7f]+")


class _Spaces(dict[int, str]):
    """For `str.translate`: maps each character that is not part of a word to a space. Filled on demand."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        is_kept = character == "." or unicodedata.category(character)[0] in "LMN"
        if len(self) >= MOST_CHARACTERS:
            self.clear()  # a text with all Unicode characters would leave 150 MB behind
        self[code] = replacement = character if is_kept else " "
        return replacement


_SPACES = _Spaces()
process_cache.register("characters of words", _SPACES.clear)


# The start and end of a character in the original text.
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared text, and the start and end of each of its characters in the original text."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


def prepared(text: str) -> str:
    """The words of a text, for `to_tsvector`.

    >>> prepared("The “ZX-200”, and/or U.S. v1.2")
    'the  zx 200   and or u s  v1.2'
    >>> prepared("東京大学 3.14 ﬁle").split()
    ['東京', '京大', '大学', '3.14', 'file']
    """
    return _paired(_plain(text))


def indexed(text: str) -> str:
    """As `prepared`, plus each character that is a word on its own: a search for 水 also finds 水道.

    >>> indexed("東京都 a").split()
    ['東京', '京都', 'a', '東', '京', '都']
    """
    plain = _plain(text)
    words = _paired(plain)
    single = [character for run in _RUN.findall(plain) if len(run) > 1 for character in _ALONE.findall(run)]
    if not single:
        return words
    # Altogether never more distinct words than the longest text has without them.
    room = max(0, LONGEST_TEXT - len(set(words.split())))
    kept = frozenset(list(dict.fromkeys(single))[:room])
    return " ".join([words, *[character for character in single if character in kept]])


def stands_alone(word: str) -> bool:
    """
    >>> stands_alone("水"), stands_alone("水道"), stands_alone("の"), stands_alone("a")
    (True, False, False, False)
    """
    return _ALONE.fullmatch(word) is not None


def _plain(text: str) -> str:
    text = text[:LONGEST_TEXT]
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
    return _only_words(_lower(_INVISIBLE_RUN.sub("", text)))


def _paired(plain: str) -> str:
    return _OVERLONG.sub(r"\1", _RUN.sub(lambda run: f" {_bigrams(run.group())} ", plain))


def _only_words(text: str) -> str:
    return _OTHER_DOT.sub(" ", text.translate(_SPACES))


def _lower(text: str) -> str:
    """
    >>> _lower("İZMİR")
    'izmir'
    """
    # The only letter whose lower case is longer than itself.
    return text.replace("\u0130", "i").lower()


def _bigrams(run: str) -> str:
    """All pairs of neighbours, because PostgreSQL cannot split these scripts into words.

    >>> _bigrams("東京都"), _bigrams("都")
    ('東京 京都', '都')
    """
    return " ".join([run[at : at + 2] for at in range(max(1, len(run) - 1))])


def prepared_with_places(text: str, alone: Set[str] = frozenset()) -> Prepared:
    """As `prepared`, with offsets for highlights; the characters in `alone` are added as separate words.

    >>> text = prepared_with_places("ﬁle, 東京都")
    >>> text.text.split()
    ['file', '東京', '京都']
    >>> text.starts[:5], text.starts[-3:]
    ((0, 0, 1, 2, 3), (6, 7, 7))
    """
    whole, places = _normalised(text[:LONGEST_TEXT])
    whole = _only_words(_lower(whole))
    at = 0
    pieces: list[tuple[str, Sequence[Place]]] = []
    for run in _RUN.finditer(whole):
        pieces.append((whole[at : run.start()], places[at : run.start()]))
        pieces.append(_placed_bigrams(run.group(), places[run.start() : run.end()]))
        at = run.end()
    pieces.append((whole[at:], places[at:]))
    pieces += [(f" {each}", (place, place)) for each, place in zip(whole, places, strict=True) if each in alone]
    return _cut("".join([each for each, _ in pieces]), [place for _, each in pieces for place in each])


def _normalised(text: str) -> tuple[str, list[Place]]:
    """The normalised text without invisible characters, and the origin of each character."""
    if unicodedata.is_normalized("NFKC", text) and not _INVISIBLE_RUN.search(text):
        return text, list(zip(range(len(text)), range(1, len(text) + 1), strict=True))
    written: list[str] = []
    places: list[Place] = []
    for segment in _SEGMENT.finditer(text):
        for part, place in _parts(segment.group(), segment.start()):
            seen = _INVISIBLE_RUN.sub("", part)
            written.append(seen)
            places += [place] * len(seen)
    return "".join(written), places


def _parts(segment: str, start: int) -> list[tuple[str, Place]]:
    if segment.isascii():
        return [(each, (at, at + 1)) for at, each in enumerate(segment, start)]
    wanted = unicodedata.normalize("NFKC", segment)
    parts = [
        (unicodedata.normalize("NFKC", each.group()), (start + each.start(), start + each.end()))
        for each in _CLUSTER.finditer(segment)
    ]
    if "".join([part for part, _ in parts]) != wanted:
        return [(wanted, (start, start + len(segment)))]
    return parts


def _placed_bigrams(run: str, places: Sequence[Place]) -> tuple[str, list[Place]]:
    before, behind = places[0], places[-1]
    found = [before]
    for at in range(max(1, len(run) - 1)):
        found += [*places[at : at + 2], behind]
    return f" {_bigrams(run)} ", found


def _cut(text: str, places: Sequence[Place]) -> Prepared:
    kept = bytearray(b"\x01") * len(text)
    for long in _OVERLONG.finditer(text):
        start = long.start() + LONGEST_WORD
        kept[start : long.end()] = bytes(long.end() - start)
    if 0 in kept:
        text = "".join([each for each, stays in zip(text, kept, strict=True) if stays])
        places = [each for each, stays in zip(places, kept, strict=True) if stays]
    return Prepared(text, tuple([each[0] for each in places]), tuple([each[1] for each in places]))
