"""Reads request bodies: one reader with a deadline, and strict JSON.

The web server's read blocks until all bytes asked for have come, so four slow clients could stop the four threads of a
process. Here another thread reads, and the request waits: briefly for free, longer only while few others do.
"""

import json
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError
from decimal import Decimal, InvalidOperation
from io import BytesIO
from typing import Any, Protocol

from rest_framework.parsers import BaseParser

from system import errors

# A body normally lies in the server's buffer already; longer than this is a slow client.
AT_ONCE_S = 0.25
# Of a process's four threads two may wait for slow bodies, so that two always serve the others.
SLOW_BODIES = threading.BoundedSemaphore(2)
# A reader whose client went silent stays until that connection ends; this bounds how many there can be.
MOST_READERS = 256
READERS = ThreadPoolExecutor(max_workers=MOST_READERS, thread_name_prefix="body")
FREE_READERS = threading.BoundedSemaphore(MOST_READERS)
# What a view left unread is taken in up to the size that a proxy lets through; as above, two threads may wait for it.
MOST_LEFT_BYTES = 34 * 1024 * 1024
LEAVINGS = threading.BoundedSemaphore(2)

DEEPEST = 32
LONGEST_NUMBER = 400
# Brackets outside of texts, with all that stands before them. It fails nowhere, not even in a text without an end, and
# never goes back: its time grows with the length and no faster.
BRACKETS = re.compile(r'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+([\[\]{}]*+)', re.DOTALL)


class BodyTooSlow(OSError):
    """The body did not come within the deadline. An OSError, because Django expects those from a stream."""


class NoReaderFree(OSError):
    """Too many slow bodies at once."""


class Stream(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...

    def readline(self, size: int = -1, /) -> bytes: ...


class GuardedInput:
    """A WSGI input whose reads end by the deadline."""

    def __init__(self, stream: Stream, deadline_s: float) -> None:
        self.stream: Stream = stream
        self.deadline_s = deadline_s
        self.until: float | None = None
        self.taken = 0
        self.is_given_up = False

    def read(self, size: int = -1) -> bytes:
        return self._within_deadline(lambda: self.stream.read(size))

    def readline(self, size: int = -1) -> bytes:
        return self._within_deadline(lambda: self.stream.readline(size))

    def leave_nothing(self, length: int) -> None:
        """Take in what the view did not read of a body of this length, if it comes at once.

        The server closes a connection on which something is left, and the other side, still sending, finds it broken
        before it has read the answer: a proxy would tell its client 502 and take this host for dead.
        """
        if length <= self.taken or length > MOST_LEFT_BYTES or self.is_given_up:
            return
        # A silent client keeps its reader; half of them stay for bodies that a view waits for.
        if FREE_READERS._value < MOST_READERS // 2 or not LEAVINGS.acquire(blocking=False):
            return
        try:
            self._start(self._discard).result(AT_ONCE_S)
        except (OSError, TimeoutError):
            pass  # the answer goes out all the same
        finally:
            LEAVINGS.release()

    def let_go(self) -> None:
        """Nobody reads any more. While somebody holds the server's body (a request in a circle of references, until it
        is collected), the server keeps the connection, and a client that only sends would wait without end."""
        self.stream = BytesIO()

    def _discard(self) -> bytes:
        stream = self.stream  # `let_go` must not end it: the answer arrives when the body has come
        while stream.read(256 * 1024):
            pass
        return b""

    def _within_deadline(self, reading: Callable[[], bytes]) -> bytes:
        if self.until is None:
            self.until = time.monotonic() + self.deadline_s
        future = self._start(reading)
        try:
            data = future.result(min(AT_ONCE_S, self._left()))
        except TimeoutError:
            self.is_given_up = True  # until the rest has come after all, nobody else may read
            data = self._wait_slowly(future)
            self.is_given_up = False
        self.taken += len(data)
        return data

    def _start(self, reading: Callable[[], bytes]) -> "Future[bytes]":
        if not FREE_READERS.acquire(blocking=False):
            raise NoReaderFree("all readers wait for slow clients")
        future = READERS.submit(reading)
        future.add_done_callback(lambda _: FREE_READERS.release())
        return future

    def _wait_slowly(self, future: "Future[bytes]") -> bytes:
        if not SLOW_BODIES.acquire(blocking=False):
            raise NoReaderFree("too many slow bodies")
        try:
            return future.result(self._left())
        except TimeoutError:
            raise BodyTooSlow("the body did not arrive in time") from None
        finally:
            SLOW_BODIES.release()

    def _left(self) -> float:
        return max(0.0, (self.until or 0.0) - time.monotonic())


class InvalidJson(errors.BadRequest):
    code = "invalid_json"
    message = "The body is not valid JSON."


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidJson("An object has the same name more than once.")
    return found


def no_constants(name: str) -> Any:
    raise InvalidJson(f"{name} is not a JSON number.")


def finite(text: str) -> float | Decimal:
    """A float where it says what was sent, else a decimal: an amount must not change on its way.

    >>> finite("0.1"), finite("99999999999999.99")
    (0.1, Decimal('99999999999999.99'))
    """
    if len(text) > LONGEST_NUMBER:
        raise InvalidJson("A number is too long.")
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise InvalidJson("A number is too large.")
    try:
        exact = Decimal(text)
    except InvalidOperation:
        raise InvalidJson("The exponent of a number is too large.") from None
    if exact and exact.adjusted() < -LONGEST_NUMBER:
        raise InvalidJson("A number is too close to zero.")
    return number if Decimal(repr(number)) == exact else exact


def bounded(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise InvalidJson("A number is too long.")
    return int(text)


def refuse_too_deep(text: str) -> None:
    """Count brackets before parsing: Python's parser would hit its recursion limit.

    >>> refuse_too_deep('{"a": "[[[["}')
    """
    depth = 0
    for found in BRACKETS.finditer(text):
        for bracket in found[1]:
            depth += 1 if bracket in "[{" else -1
            if depth > DEEPEST:
                raise InvalidJson(f"The body is nested deeper than {DEEPEST} levels.")


def is_half_a_pair_in(text: str) -> bool:
    """Whether half of a surrogate pair stands alone there, which no UTF-8 can say.

    >>> is_half_a_pair_in("\\ud800"), is_half_a_pair_in("\U0001f642")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def refuse_unstorable(value: Any) -> None:
    """NUL and lone surrogates cannot be stored as text; said here, before they meet the database."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if "\x00" in item:
                raise InvalidJson("A text holds a NUL character.")
            if not item.isascii() and is_half_a_pair_in(item):
                raise InvalidJson("A text holds half of a surrogate pair.")
        elif isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def parse_json(raw: bytes) -> Any:
    """Strict JSON: UTF-8, no duplicate names, no NaN, bounded depth and numbers.

    >>> parse_json(b'{"a": [1, true]}')
    {'a': [1, True]}
    """
    try:
        text = raw.decode("utf-8")
        # Few bodies have that many brackets at all; only those are counted through.
        if text.count("[") + text.count("{") > DEEPEST:
            refuse_too_deep(text)
        value = json.loads(
            text,
            object_pairs_hook=no_duplicates,
            parse_constant=no_constants,
            parse_float=finite,
            parse_int=bounded,
        )
    except UnicodeDecodeError:
        raise InvalidJson("The body is not UTF-8.") from None
    except ValueError:
        raise InvalidJson from None
    refuse_unstorable(value)
    return value


class StrictJSONParser(BaseParser):
    """DRF's way into `parse_json`."""

    media_type = "application/json"

    @classmethod
    def accepts(cls, content_type: str | None) -> bool:
        """
        >>> StrictJSONParser.accepts("application/json; charset=utf-8"), StrictJSONParser.accepts("text/plain")
        (True, False)
        """
        kind, _, parameters = (content_type or "").partition(";")
        charset = parameters.replace(" ", "").lower()
        return kind.strip().lower() == cls.media_type and charset in ("", "charset=utf-8", 'charset="utf-8"')

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return parse_json(stream.read())
