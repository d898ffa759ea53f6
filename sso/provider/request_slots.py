"""In charge of how many of a process ask the provider at once: two, so that two of its four threads go on serving.

Who finds no place is told to come again in a second: a sign-in by a page that asks again by itself, with nothing of its
attempt used up; an administrator by a sentence.

A code that the provider rejects costs whoever invents it nothing. Addresses that brought many lately have one place
together, so that the other one stays for those who really come from the provider.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from accounts.authentication.login_attempts import network
from system import process_cache

PLACES = threading.BoundedSemaphore(2)
OF_THE_DOUBTFUL = threading.BoundedSemaphore(1)
MOST_REJECTED = 5
REJECTED_WITHIN_S = 60.0
MOST_REMEMBERED = 1000
# "The sign-in page answers within 6 s": for everything that one request does behind its place.
ALTOGETHER_S = 6.0
NONE_FREE = "Two others are asking the provider just now. Press the button again in a moment."


class NoSlotFree(Exception):
    """Two others are asking the provider just now."""


class SuspectAddresses:
    """When the codes of an address were rejected, the last few times of it, in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._times: dict[str, deque[float]] = {}

    def note(self, address: str) -> None:
        with self._lock:
            times = self._times.pop(network(address), deque(maxlen=MOST_REJECTED))
            times.append(time.monotonic())
            self._times[network(address)] = times
            if len(self._times) > MOST_REMEMBERED:
                del self._times[next(iter(self._times))]

    def __contains__(self, address: str) -> bool:
        times = self._times.get(network(address))
        return times is not None and len(times) == MOST_REJECTED and time.monotonic() - times[0] <= REJECTED_WITHIN_S

    def forget(self) -> None:
        self._times.clear()


DOUBTFUL = SuspectAddresses()
process_cache.register("addresses with rejected codes", DOUBTFUL.forget)


@contextmanager
def request_slot(address: str = "") -> Iterator[None]:
    with ExitStack() as held:
        for kind in (OF_THE_DOUBTFUL, PLACES) if address in DOUBTFUL else (PLACES,):
            if not kind.acquire(blocking=False):
                raise NoSlotFree
            held.callback(kind.release)
        yield
