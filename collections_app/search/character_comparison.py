"""Scores the best candidates by the character sequences that they share with the query.

A passage can contain a word in another form (inflected, in a compound, misspelled), or its language may not have been
recognized. Comparing sequences of four letters (of two characters, in scripts without spaces) finds these. They are not
indexed: only passages that words or vectors have found are compared, and how rare a sequence is depends on these alone.
"""

import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from collections_app.lexical.tokens import is_unspaced
from system.plain_sql import fetch_rows

SEQUENCE_LENGTH = 4
MAX_QUERY_CHARACTERS = 1_000
# The maximum number of passages to compare, and their maximum total length.
MAX_COMPARED_CHUNKS = 100
MAX_COMPARED_CHARACTERS = 200_000
# The saturation and the length normalization of BM25.
K1 = 0.6
B = 0.75
USUAL_LENGTH = 1_000
# The characters of usual texts in all scripts.
MAX_CACHED_CHARACTERS = 10_000
# Decimal places of a score.
SCORE_DIGITS = 6
SPACE = " "
BOUNDARY = "\0"  # PostgreSQL stores no text with this character

# The best chunks that together are short enough.
TEXTS_SQL = """
    SELECT id, array_to_string(heading_path || text, chr(10)) FROM (
        SELECT chunk.id, chunk.heading_path, chunk.text,
            sum(chunk.char_end - chunk.char_start) OVER (ORDER BY best.number) AS total_length
        FROM unnest(%s::bigint[]) WITH ORDINALITY AS best (id, number) JOIN chunk ON chunk.id = best.id
    ) AS measured
    WHERE total_length <= %s
"""


def compare_chunks(queries: Mapping[int, str]) -> dict[int, float]:
    """Returns the scores of the first of these chunks, which are sorted best first.

    Each is compared with its own query, which has the synonyms of its collection.
    """
    texts = dict(fetch_rows(TEXTS_SQL, [list(queries)[:MAX_COMPARED_CHUNKS], MAX_COMPARED_CHARACTERS]))
    scores: dict[int, float] = {}
    for query in {queries[chunk_id] for chunk_id in texts}:
        query_scores = character_scores(query, texts)
        scores |= {chunk_id: score for chunk_id, score in query_scores.items() if queries[chunk_id] == query}
    return scores


def character_scores(query: str, texts: Mapping[int, str]) -> dict[int, float]:
    """Returns the BM25 scores of texts, with sequences of characters in place of words.

    >>> scores = character_scores("Printers", {1: "Color printer", 2: "Reprint", 3: "Fox"})
    >>> scores[1] > scores[2] > scores[3] == 0.0
    True
    """
    # Chosen: imported here, because processes that never search do not need it.
    import numpy as np  # noqa: PLC0415

    prepared_query = _normalize(f" {query[:MAX_QUERY_CHARACTERS].replace(BOUNDARY, SPACE)} ")
    alphabet = {character: number for number, character in enumerate(sorted({SPACE, *prepared_query}), 1)}
    query_numbers, _ = _encode(prepared_query, alphabet)
    # Chosen: a shorter query would match only if it is a word of its own, and words are compared anyway.
    if not texts or query_numbers.size < SEQUENCE_LENGTH + 2:
        return {}
    query_sequences = np.unique(_sequences(query_numbers))
    # A boundary has no number in the alphabet, so no sequence of the query spans two texts.
    numbers, text_numbers = _encode(BOUNDARY.join([f" {_normalize(text)} " for text in texts.values()]), alphabet)
    sequences = _sequences(numbers)
    positions = np.searchsorted(query_sequences, sequences)
    positions[positions == query_sequences.size] = 0
    is_shared = query_sequences[positions] == sequences
    cells = text_numbers[: sequences.size][is_shared] * query_sequences.size + positions[is_shared]
    counts = np.bincount(cells, minlength=len(texts) * query_sequences.size).reshape(len(texts), -1)

    text_counts = (counts > 0).sum(axis=0)
    rarities = np.log(1 + (len(texts) - text_counts + 0.5) / (text_counts + 0.5))
    lengths = np.array([len(text) for text in texts.values()])[:, None] / USUAL_LENGTH
    scores = (counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths))) @ rarities
    # Rounded, because the score of a text must not depend on its position in a matrix.
    return dict(zip(texts, scores.round(SCORE_DIGITS).tolist(), strict=True))


def _normalize(text: str) -> str:
    """Returns the text in the form NFKC and in lower case.

    >>> _normalize("ﬁle"), _normalize("E\u0301") == "\u00e9"
    ('file', True)
    """
    if not unicodedata.is_normalized("NFKC", text):
        # Mostly punctuation. The function for a whole text, which combines accents, takes much longer.
        for character in set(text):
            if (normalized := _normalize_character(character)) != character:
                text = text.replace(character, normalized)
        text = unicodedata.normalize("NFKC", text)
    return text.lower()


@lru_cache(maxsize=MAX_CACHED_CHARACTERS)
def _normalize_character(character: str) -> str:
    return unicodedata.normalize("NFKC", character)


@lru_cache(maxsize=MAX_CACHED_CHARACTERS)
def _is_in_word(character: str) -> bool:
    return unicodedata.category(character)[0] in "LMN"


_takes_two_places = lru_cache(maxsize=MAX_CACHED_CHARACTERS)(is_unspaced)


def _encode(text: str, alphabet: Mapping[str, int]) -> tuple[Any, Any]:
    """Returns the number of each character in the alphabet, or 0, and the number of the text that it is in.

    Everything between words counts as one space. A character of a script without spaces is followed by a filler, so it
    takes up two places of a sequence.
    """
    import numpy as np  # noqa: PLC0415

    characters = set(text)
    numbers_of_codes = np.zeros(max(map(ord, characters)) + 1, dtype=np.uint64)
    widths_of_codes = np.ones(numbers_of_codes.size, dtype=np.uint8)
    for character in characters - {BOUNDARY}:
        numbers_of_codes[ord(character)] = alphabet.get(character if _is_in_word(character) else SPACE, 0)
        widths_of_codes[ord(character)] += _takes_two_places(character)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    numbers = numbers_of_codes[codes]
    widths = widths_of_codes[codes]
    is_space = numbers == alphabet[SPACE]
    widths[1:][is_space[1:] & is_space[:-1]] = 0
    repeated_numbers = np.repeat(numbers, widths)
    repeated_numbers[np.cumsum(widths, dtype=np.int64)[widths == 2] - 1] = len(alphabet) + 1
    return repeated_numbers, np.repeat(np.cumsum(codes == ord(BOUNDARY)), widths)


def _sequences(numbers: Any) -> Any:
    """Returns each sequence as one integer: a query has fewer than 2^16 different characters."""
    count = max(0, numbers.size - SEQUENCE_LENGTH + 1)
    sequences = numbers[:count].copy()
    for offset in range(1, SEQUENCE_LENGTH):
        sequences = (sequences << 16) | numbers[offset : offset + count]
    return sequences
