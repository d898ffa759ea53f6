"""Encodes Russian texts as the weighted mean of their word vectors (navec), without what all texts have in common."""

import re
from typing import Any

from collections_app.model_files import prepare_files

WORD_PATTERN = re.compile(r"\w+(?:-\w+)*")


def load_word_vectors() -> Any:
    # Imported late, because it takes 12 MB.
    import numpy  # noqa: PLC0415

    from collections_app.model_files import navec  # noqa: PLC0415

    folder = prepare_files(navec.NAVEC)
    hashes, weights, codes, centroids, common_direction = [
        numpy.load(folder / f"{name}.npy", "r")
        for name in ("hashes", "weights", "codes", "centroids", "common_direction")
    ]

    def find_rows(words: list[str]) -> Any:
        word_hashes = numpy.array([navec.word_hash(word) for word in words], dtype=numpy.uint64)
        found = numpy.minimum(hashes.searchsorted(word_hashes), len(hashes) - 1)
        return found[hashes[found] == word_hashes]

    def encode_text(text: str) -> Any:
        words = WORD_PATTERN.findall(text.lower())
        # The vocabulary contains words with hyphens; of others, their parts.
        words += [part for word in words if "-" in word for part in word.split("-")]
        found = find_rows(words)
        if not len(found):
            found = find_rows([navec.UNKNOWN_WORD])
        vector = weights[found] @ navec.decode_vectors(centroids, codes[found])
        return vector - (vector @ common_direction) * common_direction

    def encode(texts: list[str]) -> Any:
        return numpy.array([encode_text(text) for text in texts])

    return encode
