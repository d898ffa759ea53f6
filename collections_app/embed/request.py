"""An embedding request, its size, and the wait before a retry. Pure."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

MAX_DIMENSIONS = 3900
# The maximum size of a number in indented JSON, on its own line.
BYTES_PER_NUMBER = 48
ENVELOPE_BYTES = 64 * 1024
# Providers also limit the tokens of a request; this many characters stay below the limit of all known ones.
MAX_CHARACTERS = 100_000

MAX_BACKOFF_S = 20.0
# Longer Retry-After values are reduced to this.
MAX_RETRY_AFTER_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRequest:
    """Texts to embed with a model. The response must have this number of `dimensions`; the request contains it only
    with `sends_dimensions`, because not every model supports it."""

    model: str
    texts: Sequence[str]
    dimensions: int | None = None
    sends_dimensions: bool = False

    @property
    def max_response_bytes(self) -> int:
        number_count = len(self.texts) * (self.dimensions or MAX_DIMENSIONS)
        return number_count * BYTES_PER_NUMBER + ENVELOPE_BYTES


def split_batches(texts: Sequence[str], max_texts: int, max_characters: int = MAX_CHARACTERS) -> Iterator[list[str]]:
    """Splits texts, in order, into batches of at most `max_texts` and `max_characters`. A longer text is its own batch.

    >>> list(split_batches(["aaa", "b", "c", "dddddd", "e"], 2, 4))
    [['aaa', 'b'], ['c'], ['dddddd'], ['e']]
    """
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == max_texts or size + len(text) > max_characters):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def backoff_s(first_wait_s: float, attempt: int, retry_after_s: float | None, jitter: float) -> float:
    """Returns the wait before a retry. It doubles with each attempt, and up to half of it is random to spread retries.

    >>> backoff_s(0.5, 0, None, 0.0), backoff_s(0.5, 3, None, 1.0), backoff_s(0.5, 0, 7.0, 0.0)
    (0.25, 4.0, 7.0)
    """
    max_wait_s: float = min(MAX_BACKOFF_S, first_wait_s * 2.0 ** min(attempt, 20))
    return max(retry_after_s or 0.0, max_wait_s * (0.5 + jitter / 2))


def parse_retry_after(header: str | None) -> int | None:
    """Parses a Retry-After header, which contains seconds or a date, into seconds; returns None if it is invalid.

    >>> parse_retry_after("7"), parse_retry_after("soon"), parse_retry_after("-3"), parse_retry_after("1e9")
    (7, None, 0, 3600)
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
    return None if math.isnan(seconds) else math.ceil(min(max(seconds, 0.0), MAX_RETRY_AFTER_S))
