"""Collects the results of a soak: response times, refusals and errors."""

import math
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

# Statuses that ask for a retry during an outage, and the value that stands for no response.
RETRY_STATUSES = frozenset({429, 503})
NO_RESPONSE = 0
# After an outage, the time for connections to be reopened and for cached component states to expire.
SETTLING_TIME_S = 3.0


def percentile(values: Iterable[float], fraction: float) -> float:
    """
    >>> percentile([3.0, 1.0, 2.0], 0.5), percentile([], 0.99)
    (2.0, 0.0)
    """
    sorted_values = sorted(values)
    return sorted_values[min(len(sorted_values) - 1, int(fraction * len(sorted_values)))] if sorted_values else 0.0


@dataclass(frozen=True)
class Timing:
    """The duration of the try that succeeded, and the time since the first try."""

    last_try_ms: float
    total_ms: float


@dataclass
class Tally:
    """The results of all callers."""

    timings: dict[str, list[Timing]] = field(default_factory=dict)
    outage_refusals: Counter[str] = field(default_factory=Counter)
    """Refusals with 429, 503 or no response during an outage, by outage and status."""
    unexpected_refusals: Counter[str] = field(default_factory=Counter)
    """The same at other times, by kind of request and status."""
    errors: list[str] = field(default_factory=list)
    _outage_name: str = ""
    _outage_end_s: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def outage(self, description: str) -> Iterator[None]:
        with self._lock:
            self._outage_name, self._outage_end_s = description, math.inf
        try:
            yield
        finally:
            with self._lock:
                self._outage_end_s = time.monotonic() + SETTLING_TIME_S

    def had_outage_since(self, time_s: float) -> bool:
        """Whether there is an outage, or was one after this time."""
        return time_s < self._outage_end_s

    def add_timing(self, kind: str, last_try_s: float, total_s: float) -> None:
        with self._lock:
            self.timings.setdefault(kind, []).append(Timing(1000 * last_try_s, 1000 * total_s))

    def copy_timings(self) -> dict[str, list[Timing]]:
        with self._lock:
            return {kind: list(timings) for kind, timings in self.timings.items()}

    def add_refusal(self, kind: str, status: int, sent_at: float) -> None:
        with self._lock:
            status_text = str(status or "no response")
            if self.had_outage_since(sent_at):
                self.outage_refusals[f"{self._outage_name}: {status_text}"] += 1
            else:
                self.unexpected_refusals[f"{kind}: {status_text}"] += 1

    def add_error(self, description: str) -> None:
        with self._lock:
            self.errors.append(description)
