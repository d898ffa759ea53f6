"""The size of an embedding request, and the wait before a retry. Pure."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from email.utils import parsedate_to_datetime

# Providers also limit the tokens of a request; this many characters stay below the limit of all known ones.
MAX_CHARACTERS = 100_000

MAX_WAIT_S = 20.0
# The longest wait, whatever Retry-After says.
MAX_RETRY_AFTER_S = 3600.0


def batched(texts: Sequence[str], most: int, characters: int = MAX_CHARACTERS) -> Iterator[list[str]]:
    """Batches of the texts, in order, within a number of texts and of characters; a longer text is its own batch.

    >>> list(batched(["aaa", "b", "c", "dddddd", "e"], 2, 4))
    [['aaa', 'b'], ['c'], ['dddddd'], ['e']]
    """
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == most or size + len(text) > characters):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def wait_s(first_s: float, attempt: int, asked_s: float | None, chance: float) -> float:
    """The wait doubles with each attempt. Up to half of it is random, so that clients do not retry together.

    >>> wait_s(0.5, 0, None, 0.0), wait_s(0.5, 3, None, 1.0), wait_s(0.5, 9, None, 0.0), wait_s(0.5, 0, 7.0, 0.0)
    (0.25, 4.0, 10.0, 7.0)
    """
    longest: float = min(MAX_WAIT_S, first_s * 2.0 ** min(attempt, 20))
    return max(asked_s or 0.0, longest * (0.5 + chance / 2))


def retry_after_s(header: str | None) -> float | None:
    """The seconds of a Retry-After header, which contains seconds or a date.

    >>> retry_after_s("7"), retry_after_s("soon"), retry_after_s("-3"), retry_after_s("1e9"), retry_after_s(None)
    (7.0, None, 0.0, 3600.0, None)
    """
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, OverflowError, OSError):
            return None
    return None if math.isnan(seconds) else min(max(seconds, 0.0), MAX_RETRY_AFTER_S)
