"""In charge of what is noted during a soak: how long answers took, what was refused, and what was wrong."""

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
SETTLED_AFTER_S = 5.0


def part(times: Iterable[float], share: float) -> float:
    """
    >>> part([3.0, 1.0, 2.0], 0.5), part([], 0.99)
    (2.0, 0.0)
    """
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


@dataclass
class Tally:
    """Of all callers together."""

    took_ms: dict[str, list[float]] = field(default_factory=dict)
    late: Counter[str] = field(default_factory=Counter)
    """Refusals with 429, 503 or no answer while something was away: kind and status."""
    unexpected: Counter[str] = field(default_factory=Counter)
    """The same while nothing was."""
    wrong: list[str] = field(default_factory=list)
    _away: int = 0
    _away_until: float = 0.0
    _turn: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def something_is_away(self) -> Iterator[None]:
        with self._turn:
            self._away += 1
        try:
            yield
        finally:
            with self._turn:
                self._away -= 1
                self._away_until = time.monotonic() + SETTLED_AFTER_S

    def is_anything_away(self, since: float) -> bool:
        """Or was, after that moment."""
        return self._away > 0 or since < self._away_until

    def answered(self, kind: str, took_s: float) -> None:
        with self._turn:
            self.took_ms.setdefault(kind, []).append(1000 * took_s)

    def refused(self, kind: str, status: int, began: float) -> None:
        with self._turn:
            side = self.late if self.is_anything_away(began) else self.unexpected
            side[f"{kind} {status or 'no answer'}"] += 1

    def is_wrong(self, what: str) -> None:
        with self._turn:
            self.wrong.append(what)
