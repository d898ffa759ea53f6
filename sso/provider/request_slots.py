"""Limits calls to providers to two threads per process, so that two of its four threads can serve other requests.

If no slot is free, a sign-in gets a page that retries after a second without using up its attempt, and an
administrator gets a message.

Anyone can send invented codes. Addresses with many rejected codes in the last minute share one slot, so that the other
slot stays free for real sign-ins.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from accounts.authentication.login_attempts import client_network
from system.process_cache import WeightedCache

SLOTS = threading.BoundedSemaphore(2)
SUSPECT_SLOT = threading.BoundedSemaphore(1)
MAX_REJECTED_CODES = 5
REJECTED_WINDOW_S = 60.0
MAX_SUSPECT_ADDRESSES = 1000
# "The sign-in page answers within 6 s": for everything that one request does in its slot.
MAX_REQUEST_S = 6.0
NO_SLOT_FREE = "Other requests to the provider are in progress. Try again in a moment."


class NoSlotFree(Exception):
    """No slot for a request to the provider is free."""


# The times of the last rejected codes from each network.
_REJECTION_TIMES: WeightedCache[str, deque[float]] = WeightedCache(
    "addresses with rejected codes", max_weight=MAX_SUSPECT_ADDRESSES, weigh=lambda *_: 1
)
_REJECTION_LOCK = threading.Lock()


def record_rejected_code(address: str) -> None:
    with _REJECTION_LOCK:  # otherwise two threads could create a deque for the same network
        times = _REJECTION_TIMES.get_or_make(client_network(address), lambda: deque(maxlen=MAX_REJECTED_CODES))
        times.append(time.monotonic())


def is_suspect(address: str) -> bool:
    times = _REJECTION_TIMES.get(client_network(address)) or deque()
    return len(times) == MAX_REJECTED_CODES and time.monotonic() - times[0] <= REJECTED_WINDOW_S


@contextmanager
def request_slot(address: str = "") -> Iterator[None]:
    with ExitStack() as acquired_slots:
        for semaphore in (SUSPECT_SLOT, SLOTS) if is_suspect(address) else (SLOTS,):
            if not semaphore.acquire(blocking=False):
                raise NoSlotFree
            acquired_slots.callback(semaphore.release)
        yield
