"""Collects the results of a soak: response times, refusals and wrong answers."""

import math
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

# What callers are told while something is away, and the way it is told when the web server itself is.
RETRY_LATER = frozenset({429, 503})
UNREACHABLE = 0
# After a part is back: connections are made again, and what was believed of the others is asked again.
SETTLED_AFTER_S = 3.0


def part(times: Iterable[float], share: float) -> float:
    """
    >>> part([3.0, 1.0, 2.0], 0.5), part([], 0.99)
    (2.0, 0.0)
    """
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


@dataclass(frozen=True)
class Timing:
    """How long the try that was answered took, and all from the first try on."""

    answer_ms: float
    whole_ms: float


@dataclass
class Tally:
    """Of all callers together."""

    timings: dict[str, list[Timing]] = field(default_factory=dict)
    late: Counter[str] = field(default_factory=Counter)
    """Refusals with 429, 503 or no answer while something was away: what was, and the status."""
    unexpected: Counter[str] = field(default_factory=Counter)
    """The same while nothing was."""
    wrong: list[str] = field(default_factory=list)
    _away: str = ""
    _away_until: float = 0.0
    _turn: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def something_is_away(self, what: str) -> Iterator[None]:
        with self._turn:
            self._away, self._away_until = what, math.inf
        try:
            yield
        finally:
            with self._turn:
                self._away_until = time.monotonic() + SETTLED_AFTER_S

    def is_anything_away(self, since: float) -> bool:
        """Or was, after that moment."""
        return since < self._away_until

    def answered(self, kind: str, answer_s: float, whole_s: float) -> None:
        with self._turn:
            self.timings.setdefault(kind, []).append(Timing(1000 * answer_s, 1000 * whole_s))

    def times_so_far(self) -> dict[str, list[Timing]]:
        with self._turn:
            return {kind: list(timing) for kind, timing in self.timings.items()}

    def refused(self, kind: str, status: int, started: float) -> None:
        with self._turn:
            reply = str(status or "no answer")
            if self.is_anything_away(started):
                self.late[f"{self._away}: {reply}"] += 1
            else:
                self.unexpected[f"{kind}: {reply}"] += 1

    def is_wrong(self, what: str) -> None:
        with self._turn:
            self.wrong.append(what)
