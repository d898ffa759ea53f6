"""Prepares text for PostgreSQL's text search, in the same way for documents and queries. Pure.

How the server's parser treats quotation marks, hyphens, addresses and scripts without spaces depends on its locale, and
often prevents matches: “quoted” with its marks, end.Start and and/or would be one word each. So the parser receives
only lower-case words separated by spaces.
"""

import re
import unicodedata
from collections.abc import Sequence, Set
from dataclasses import dataclass

from system import process_cache

# Longer strings are not words, and the server warns about those over 2,046 bytes.
MAX_WORD_LENGTH = 100
# A chunk has at most 8,000 characters plus its headings; a sparse vector holds 16,000 words.
MAX_TEXT_LENGTH = 15_000
# The number of characters cached per process, which is more than one script has.
MAX_CACHED_CHARACTERS = 50_000


# Vowel signs and accents of the basic plane, which are part of a word but not letters in Python.
COMBINING_MARKS = "".join([mark for mark in map(chr, range(0x10000)) if unicodedata.category(mark)[0] == "M"])
# Chosen: scripts written without spaces, and Korean, where particles are attached to words.
_UNSPACED_RUN = re.compile(
    "[\u0e01-\u0e5b\u0e81-\u0edf\u1000-\u109f\u1780-\u17d3\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua9e0-\ua9fe\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af]+"
)
# Characters that are words on their own and occur within others: Chinese characters and Korean syllables.
_SINGLE_CHARACTER = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af]")
# Invisible characters between letters.
_INVISIBLE_RUN = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff\ufe00-\ufe0f]+")
# A dot between digits is kept: 3.14 is one number and 1.2.3 one version.
_SEPARATING_DOT = re.compile(r"(?<![0-9])\.|\.(?![0-9])")
_OVERLONG_WORD = re.compile(rf"(\S{{{MAX_WORD_LENGTH}}})\S+")
# A character with all that can combine with it: marks, later parts of a Korean syllable, half-width voicing.
_CHARACTER_CLUSTER = re.compile(f".[{COMBINING_MARKS}\u1160-\u11ff\uff9e\uff9f]*", re.DOTALL)
# ASCII characters never combine with the preceding one, and normalization does not change them.
_SEGMENT = re.compile(r"[\x00-\x7f]+(?![^\x00-\x7f])|[\x00-\x7f]?[^\x00-\x7f]+")


class _SpaceTable(dict[int, str]):
    """For `str.translate`: maps each character that is not part of a word to a space. Filled on demand."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        is_kept = character == "." or unicodedata.category(character)[0] in "LMN"
        if len(self) >= MAX_CACHED_CHARACTERS:
            self.clear()  # a text with all Unicode characters would leave 150 MB behind
        self[code] = replacement = character if is_kept else " "
        return replacement


_SPACE_TABLE = _SpaceTable()
process_cache.register("characters of words", _SPACE_TABLE.clear)


# The start and end of a character in the original text.
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class PreparedText:
    """A prepared text, and the start and end of each of its characters in the original text."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


def prepare_words(text: str) -> str:
    """Returns the words of a text, for `to_tsvector`.

    >>> prepare_words("The “ZX-200”, and/or U.S. v1.2")
    'the  zx 200   and or u s  v1.2'
    >>> prepare_words("東京大学 3.14 ﬁle").split()
    ['東京', '京大', '大学', '3.14', 'file']
    """
    return _split_into_bigrams(_normalize_text(text))


def prepare_index_words(text: str) -> str:
    """Like `prepare_words`, plus each character that is a word on its own: a search for 水 also finds 水道.

    >>> prepare_index_words("東京都 a").split()
    ['東京', '京都', 'a', '東', '京', '都']
    """
    normalized_text = _normalize_text(text)
    words = _split_into_bigrams(normalized_text)
    characters = [
        character
        for run in _UNSPACED_RUN.findall(normalized_text)
        if len(run) > 1
        for character in _SINGLE_CHARACTER.findall(run)
    ]
    if not characters:
        return words
    # Limit the distinct words to MAX_TEXT_LENGTH, because a sparse vector cannot hold many more.
    max_added = max(0, MAX_TEXT_LENGTH - len(set(words.split())))
    added_characters = frozenset(list(dict.fromkeys(characters))[:max_added])
    return " ".join([words, *[character for character in characters if character in added_characters]])


def is_single_character(word: str) -> bool:
    """
    >>> is_single_character("水"), is_single_character("水道"), is_single_character("の"), is_single_character("a")
    (True, False, False, False)
    """
    return _SINGLE_CHARACTER.fullmatch(word) is not None


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that is indexed as pairs of characters.

    >>> is_unspaced("水"), is_unspaced("の"), is_unspaced("a")
    (True, True, False)
    """
    return _UNSPACED_RUN.fullmatch(character) is not None


def _normalize_text(text: str) -> str:
    text = text[:MAX_TEXT_LENGTH]
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
    return _lowercase_words(_INVISIBLE_RUN.sub("", text))


def _split_into_bigrams(text: str) -> str:
    return _OVERLONG_WORD.sub(r"\1", _UNSPACED_RUN.sub(lambda run: f" {_bigrams(run.group())} ", text))


def _lowercase_words(text: str) -> str:
    """Returns the words in lower case, and a space for each character between them.

    >>> _lowercase_words("İZMİR, U.S.")
    'izmir  u s '
    """
    # The letter U+0130 is the only one whose lower case is longer than itself.
    return _SEPARATING_DOT.sub(" ", text.replace("\u0130", "i").lower().translate(_SPACE_TABLE))


def _bigrams(run: str) -> str:
    """Returns all pairs of neighboring characters, because PostgreSQL cannot split these scripts into words.

    >>> _bigrams("東京都"), _bigrams("都")
    ('東京 京都', '都')
    """
    return " ".join([run[index : index + 2] for index in range(max(1, len(run) - 1))])


def prepare_words_with_spans(text: str, single_characters: Set[str] = frozenset()) -> PreparedText:
    """Like `prepare_words`, with offsets for highlights; `single_characters` are added as separate words.

    >>> text = prepare_words_with_spans("ﬁle, 東京都")
    >>> text.text.split()
    ['file', '東京', '京都']
    >>> text.starts[:5], text.starts[-3:]
    ((0, 0, 1, 2, 3), (6, 7, 7))
    """
    normalized_text, spans = _normalize_with_spans(text)
    normalized_text = _lowercase_words(normalized_text)
    end = 0
    pieces: list[tuple[str, Sequence[Span]]] = []
    for run in _UNSPACED_RUN.finditer(normalized_text):
        pieces.append((normalized_text[end : run.start()], spans[end : run.start()]))
        pieces.append(_bigrams_with_spans(run.group(), spans[run.start() : run.end()]))
        end = run.end()
    pieces.append((normalized_text[end:], spans[end:]))
    pieces += [
        (f" {character}", (span, span))
        for character, span in zip(normalized_text, spans, strict=True)
        if character in single_characters
    ]
    return _cut_overlong_words(
        "".join([piece for piece, _ in pieces]), [span for _, piece_spans in pieces for span in piece_spans]
    )


def _normalize_with_spans(text: str) -> tuple[str, list[Span]]:
    """Returns the normalized text without invisible characters, and the original span of each character."""
    if unicodedata.is_normalized("NFKC", text) and not _INVISIBLE_RUN.search(text):
        return text, list(zip(range(len(text)), range(1, len(text) + 1), strict=True))
    normalized: list[str] = []
    spans: list[Span] = []
    for segment in _SEGMENT.finditer(text):
        for part, span in _segment_parts(segment.group(), segment.start()):
            visible = _INVISIBLE_RUN.sub("", part)
            normalized.append(visible)
            spans += [span] * len(visible)
    return "".join(normalized), spans


def _segment_parts(segment: str, start: int) -> list[tuple[str, Span]]:
    if segment.isascii():
        return [(character, (index, index + 1)) for index, character in enumerate(segment, start)]
    normalized = unicodedata.normalize("NFKC", segment)
    parts = [
        (unicodedata.normalize("NFKC", match.group()), (start + match.start(), start + match.end()))
        for match in _CHARACTER_CLUSTER.finditer(segment)
    ]
    if "".join([part for part, _ in parts]) != normalized:
        return [(normalized, (start, start + len(segment)))]
    return parts


def _bigrams_with_spans(run: str, spans: Sequence[Span]) -> tuple[str, list[Span]]:
    first, last = spans[0], spans[-1]
    result = [first]
    for index in range(max(1, len(run) - 1)):
        result += [*spans[index : index + 2], last]
    return f" {_bigrams(run)} ", result


def _cut_overlong_words(text: str, spans: Sequence[Span]) -> PreparedText:
    """Shortens overlong words, as `_split_into_bigrams` does."""
    mask = bytearray(b"\x01") * len(text)
    for match in _OVERLONG_WORD.finditer(text):
        start = match.start() + MAX_WORD_LENGTH
        mask[start : match.end()] = bytes(match.end() - start)
    if 0 in mask:
        text = "".join([character for character, is_kept in zip(text, mask, strict=True) if is_kept])
        spans = [span for span, is_kept in zip(spans, mask, strict=True) if is_kept]
    return PreparedText(text, tuple([start for start, _ in spans]), tuple([end for _, end in spans]))
