"""In charge of how many of a process ask the provider at once: two, so that two of its four threads go on serving.

Who finds no place is told to come again in a second: a sign-in by a page that asks again by itself, with nothing of its
attempt used up; an administrator by a sentence.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

PLACES = threading.BoundedSemaphore(2)
# "The sign-in page answers within 6 s": for everything that one request does behind its place.
ALTOGETHER_S = 6.0
NONE_FREE = "Two others are asking the provider just now. Press the button again in a moment."


class NoPlace(Exception):
    """Two others are asking the provider just now."""


@contextmanager
def place() -> Iterator[None]:
    if not PLACES.acquire(blocking=False):
        raise NoPlace
    try:
        yield
    finally:
        PLACES.release()
