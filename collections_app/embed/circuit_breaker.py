"""Stops calls to a provider after failures. The loads and searches of a process share one breaker per space.

A load retries before it fails, so one failed load pauses loads and searches for 5 s, then twice as long each time. A
search waits only two seconds for the provider, so it takes three failed searches in a row to pause searches, and loads
continue. After a pause calls are allowed again, for searches one at a time; a success ends the pauses.

The state is in memory: a restarted process sends one more request, which costs less than a shared row.
"""

import threading
import time
from collections.abc import Callable
from math import ceil

from .errors import EmbeddingRefused, EmbeddingUnavailable

FIRST_PAUSE_S = 5.0
MAX_PAUSE_S = 120.0
MAX_FAILED_SEARCHES = 3
SEARCH_PAUSE_S = 20.0


class CircuitBreaker:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._pause_s = 0.0
        self._paused_until = 0.0
        # The code and message of the last failed load, reported for all waiting documents.
        self._reason: tuple[str | None, str | None] = (None, None)
        self._failed_search_count = 0
        self._searches_paused_until = 0.0

    @property
    def pause_left_s(self) -> float:
        return max(0.0, self._paused_until - self._clock())

    def check_load_allowed(self) -> None:
        """Raise EmbeddingUnavailable during a pause, with the code and message of the failure that caused it."""
        if remaining_s := self.pause_left_s:
            code, message = self._reason
            raise EmbeddingUnavailable(message, code=code, retry_after_s=ceil(remaining_s))

    def check_search_allowed(self) -> None:
        """Raise EmbeddingUnavailable during a pause. After it, one trial request is allowed, which this call claims."""
        with self._lock:
            now = self._clock()
            remaining_s = max(self._paused_until, self._searches_paused_until) - now
            if remaining_s > 0:
                raise EmbeddingUnavailable(retry_after_s=ceil(remaining_s))
            if self._failed_search_count >= MAX_FAILED_SEARCHES:
                # The caller may stop without recording a result, so another trial is allowed after the same time.
                self._searches_paused_until = now + SEARCH_PAUSE_S

    def record_load_failure(self, error: EmbeddingUnavailable | EmbeddingRefused) -> None:
        """Begin a pause of at least the length that the provider requested, and set the error's `retry_after_s`."""
        with self._lock:
            # If there is a pause already, another thread failed at the same time.
            if not self.pause_left_s:
                self._pause_s = min(MAX_PAUSE_S, self._pause_s * 2) or FIRST_PAUSE_S
                self._paused_until = self._clock() + max(self._pause_s, error.retry_after_s or 0.0)
                self._reason = (error.code, error.message)
            error.retry_after_s = ceil(self.pause_left_s)

    def record_load_success(self) -> None:
        with self._lock:
            self._pause_s = self._paused_until = 0.0

    def record_search_failure(self) -> None:
        with self._lock:
            self._failed_search_count += 1
            if self._failed_search_count >= MAX_FAILED_SEARCHES:
                self._searches_paused_until = self._clock() + SEARCH_PAUSE_S

    def record_search_success(self) -> None:
        with self._lock:
            self._failed_search_count, self._searches_paused_until = 0, 0.0
