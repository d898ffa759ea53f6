"""Limits how many threads of a process call a provider at once: two, so that two of its four threads keep serving.

Without a free slot a sign-in gets a page that retries after a second, with its attempt still unused, and an
administrator gets a message.

Inventing codes costs nothing. Addresses with many rejected codes in the last minute share one slot, so that the other
one stays free for users who come from the provider.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from accounts.authentication.login_attempts import client_network
from system import process_cache

SLOTS = threading.BoundedSemaphore(2)
SUSPECT_SLOT = threading.BoundedSemaphore(1)
MAX_REJECTED_CODES = 5
REJECTED_WINDOW_S = 60.0
MAX_SUSPECT_ADDRESSES = 1000
# "The sign-in page answers within 6 s": for everything that one request does in its slot.
MAX_REQUEST_S = 6.0
NO_SLOT_FREE = "Other requests to the provider are in progress. Try again in a moment."


class NoSlotFree(Exception):
    """Two other requests to a provider are in progress."""


class SuspectAddresses:
    """The times of the last few rejected codes of each address, in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._times: dict[str, deque[float]] = {}

    def record_rejection(self, address: str) -> None:
        with self._lock:
            times = self._times.pop(client_network(address), deque(maxlen=MAX_REJECTED_CODES))
            times.append(time.monotonic())
            self._times[client_network(address)] = times
            if len(self._times) > MAX_SUSPECT_ADDRESSES:
                del self._times[next(iter(self._times))]

    def __contains__(self, address: str) -> bool:
        times = self._times.get(client_network(address)) or deque()
        return len(times) == MAX_REJECTED_CODES and time.monotonic() - times[0] <= REJECTED_WINDOW_S

    def clear(self) -> None:
        self._times.clear()


SUSPECT_ADDRESSES = SuspectAddresses()
process_cache.register("addresses with rejected codes", SUSPECT_ADDRESSES.clear)


@contextmanager
def request_slot(address: str = "") -> Iterator[None]:
    with ExitStack() as acquired_slots:
        for semaphore in (SUSPECT_SLOT, SLOTS) if address in SUSPECT_ADDRESSES else (SLOTS,):
            if not semaphore.acquire(blocking=False):
                raise NoSlotFree
            acquired_slots.callback(semaphore.release)
        yield
