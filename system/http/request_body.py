"""Reads request bodies with a deadline, and parses strict JSON.

The web server's read blocks until all requested bytes have arrived, so four slow clients could block the four threads
of a process. Here another thread reads, and the request waits for it: briefly, and longer only while few others do.
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

# A body is normally in the server's buffer already. A client that takes longer than this is slow.
PROMPT_S = 0.25
# Of the four threads of a process, two may wait for slow bodies, so that two always serve the others.
SLOW_BODIES = threading.BoundedSemaphore(2)
# The reader of a silent client blocks until the connection ends. This limits how many there can be.
MAX_READERS = 256
READERS = ThreadPoolExecutor(max_workers=MAX_READERS, thread_name_prefix="body")
FREE_READERS = threading.BoundedSemaphore(MAX_READERS)
# An unread body is drained up to the size that a proxy lets through. As above, two threads may wait for that.
MAX_DRAIN_BYTES = 34 * 1024 * 1024
DRAINS = threading.BoundedSemaphore(2)

MAX_DEPTH = 32
MAX_DIGITS = 400
# Brackets outside of strings, with everything before them. The pattern always matches, even in an unterminated string,
# and never backtracks: its time is linear in the length.
BRACKETS = re.compile(r'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+([\[\]{}]*+)', re.DOTALL)


class BodyTooSlow(OSError):
    """The body did not arrive before the deadline. An OSError, because Django expects those from a stream."""


class TooManySlowBodies(OSError):
    """Too many slow bodies at once."""


class Stream(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...

    def readline(self, size: int = -1, /) -> bytes: ...


class GuardedInput:
    """A WSGI input whose reads end at the deadline."""

    def __init__(self, stream: Stream, deadline_s: float) -> None:
        self.stream: Stream = stream
        self.deadline_s = deadline_s
        self.deadline: float | None = None
        self.bytes_read = 0
        self.is_blocked = False

    def read(self, size: int = -1) -> bytes:
        return self._within_deadline(lambda: self.stream.read(size))

    def readline(self, size: int = -1) -> bytes:
        return self._within_deadline(lambda: self.stream.readline(size))

    def drain(self, length: int) -> None:
        """Read and discard what the view did not read of a body of this length, if it arrives promptly.

        The server closes a connection with unread data. A client that is still sending then gets a reset before it has
        read the response: a proxy would return 502 and mark this host as down.
        """
        if length <= self.bytes_read or length > MAX_DRAIN_BYTES or self.is_blocked:
            return
        # A silent client keeps its reader busy. Half of them are reserved for bodies that a view waits for.
        if FREE_READERS._value < MAX_READERS // 2 or not DRAINS.acquire(blocking=False):
            return
        try:
            self._submit(self._discard).result(PROMPT_S)
        except (OSError, TimeoutError):
            pass  # the response is sent anyway
        finally:
            DRAINS.release()

    def detach(self) -> None:
        """Drop the server's body. The server keeps the connection while anything refers to the body (a request in a
        reference cycle, until it is collected), and a client that only sends would wait forever."""
        self.stream = BytesIO()

    def _discard(self) -> bytes:
        stream = self.stream  # `detach` must not end it: the client reads the response after it has sent the body
        while stream.read(256 * 1024):
            pass
        return b""

    def _within_deadline(self, read: Callable[[], bytes]) -> bytes:
        if self.deadline is None:
            self.deadline = time.monotonic() + self.deadline_s
        future = self._submit(read)
        try:
            data = future.result(min(PROMPT_S, self._remaining_s()))
        except TimeoutError:
            self.is_blocked = True  # nothing else may read until the rest has arrived
            data = self._wait_slowly(future)
            self.is_blocked = False
        self.bytes_read += len(data)
        return data

    def _submit(self, read: Callable[[], bytes]) -> "Future[bytes]":
        if not FREE_READERS.acquire(blocking=False):
            raise TooManySlowBodies("all readers wait for slow clients")
        future = READERS.submit(read)
        future.add_done_callback(lambda _: FREE_READERS.release())
        return future

    def _wait_slowly(self, future: "Future[bytes]") -> bytes:
        if not SLOW_BODIES.acquire(blocking=False):
            raise TooManySlowBodies("too many slow bodies")
        try:
            return future.result(self._remaining_s())
        except TimeoutError:
            raise BodyTooSlow("the body did not arrive in time") from None
        finally:
            SLOW_BODIES.release()

    def _remaining_s(self) -> float:
        return max(0.0, (self.deadline or 0.0) - time.monotonic())


class InvalidJson(errors.BadRequest):
    code = "invalid_json"
    message = "The body is not valid JSON."


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise InvalidJson("An object has the same name more than once.")
    return members


def refuse_constant(name: str) -> Any:
    raise InvalidJson(f"{name} is not a JSON number.")


def parse_float(text: str) -> float | Decimal:
    """A float if it represents the number exactly as sent, else a decimal: amounts must not change.

    >>> parse_float("0.1"), parse_float("99999999999999.99")
    (0.1, Decimal('99999999999999.99'))
    """
    if len(text) > MAX_DIGITS:
        raise InvalidJson("A number is too long.")
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise InvalidJson("A number is too large.")
    try:
        exact = Decimal(text)
    except InvalidOperation:
        raise InvalidJson("The exponent of a number is too large.") from None
    if exact and exact.adjusted() < -MAX_DIGITS:
        raise InvalidJson("A number is too close to zero.")
    return number if Decimal(repr(number)) == exact else exact


def parse_int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise InvalidJson("A number is too long.")
    return int(text)


def refuse_too_deep(text: str) -> None:
    """Count brackets before parsing: Python's parser would hit its recursion limit.

    >>> refuse_too_deep('{"a": "[[[["}')
    """
    depth = 0
    for match in BRACKETS.finditer(text):
        for bracket in match[1]:
            depth += 1 if bracket in "[{" else -1
            if depth > MAX_DEPTH:
                raise InvalidJson(f"The body is nested deeper than {MAX_DEPTH} levels.")


def has_lone_surrogate(text: str) -> bool:
    """Whether the text contains half of a surrogate pair, which UTF-8 cannot encode.

    >>> has_lone_surrogate("\\ud800"), has_lone_surrogate("\U0001f642")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def refuse_unstorable(value: Any) -> None:
    """PostgreSQL cannot store NUL or lone surrogates as text."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if "\x00" in item:
                raise InvalidJson("A string contains a NUL character.")
            if not item.isascii() and has_lone_surrogate(item):
                raise InvalidJson("A string contains half of a surrogate pair.")
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
        # Only the few bodies with that many brackets need the exact count.
        if text.count("[") + text.count("{") > MAX_DEPTH:
            refuse_too_deep(text)
        value = json.loads(
            text,
            object_pairs_hook=unique_names,
            parse_constant=refuse_constant,
            parse_float=parse_float,
            parse_int=parse_int,
        )
    except UnicodeDecodeError:
        raise InvalidJson("The body is not UTF-8.") from None
    except ValueError:
        raise InvalidJson from None
    refuse_unstorable(value)
    return value


class StrictJSONParser(BaseParser):
    """Parses JSON requests for Django REST framework."""

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
