"""Stops asking a provider after repeated failures, for a while.

closed ── failures in a row ──▶ open ── a while ──▶ half-open: one request ── success ──▶ closed
                                 ▲                             └── failure ──┐
                                 └───────────────────────────────────────────┘
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Breaker:
    """For the threads of one process."""

    def __init__(self, failures: int, open_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = failures
        self._open_s = open_s
        self._clock = clock
        self._lock = threading.Lock()
        self._failed = 0
        self._until = 0.0

    def closed_in_s(self) -> float:
        """0 if a request is allowed, otherwise the time to wait. The call uses up the half-open request."""
        with self._lock:
            if self._failed < self._most:
                return 0.0
            left = self._until - self._clock()
            if left > 0:
                return left
            # The caller may fail without reporting, so another request is allowed after the same time.
            self._until = self._clock() + self._open_s
            return 0.0

    def succeeded(self) -> None:
        with self._lock:
            self._failed = 0

    def failed(self) -> None:
        with self._lock:
            self._failed += 1
            if self._failed >= self._most:
                self._until = self._clock() + self._open_s
