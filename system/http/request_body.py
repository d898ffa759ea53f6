"""Reads request bodies with a deadline.

The web server delivers a body by callbacks from its own thread, so a body that is still arriving blocks no thread. A
view that reads faster than its client sends waits briefly, and longer only while few other views wait.
"""

import threading
import time
from collections.abc import Callable
from io import IOBase
from typing import Any

from rest_framework.parsers import BaseParser

from system import strict_json

# A body is normally in the server's buffer already. A client that takes longer than this is slow, unless it sends at
# least this many bytes per second: on a busy machine, a few megabytes take longer to arrive.
PROMPT_S = 0.25
PROMPT_BYTES_PER_S = 10_000_000
# Of the four threads of a process, two may wait for slow bodies, so that two always serve the others.
SLOW_BODY_SLOTS = threading.BoundedSemaphore(2)
# An unread body is drained up to the size that a proxy lets through.
MAX_DRAIN_BYTES = 52 * 1024 * 1024


class BodyTooSlow(OSError):
    """The body did not arrive before the deadline. An OSError, because Django expects those from a stream."""


class TooManySlowBodies(OSError):
    """Too many other requests are waiting for slow bodies."""


class RequestBody(IOBase):
    """A WSGI input whose reads end at the deadline.

    The server calls `_receive` with each chunk that was requested. Its interface allows one request at a time.
    """

    def __init__(self, protocol: Any, length: int, timeout_s: float) -> None:
        self.protocol = protocol
        self.length = length
        self.timeout_s = timeout_s
        self.deadline: float | None = None
        self.on_complete: Callable[[], None] | None = None
        self.chunks: list[bytes] = []
        self.bytes_received = 0
        self.bytes_read = 0
        self.bytes_wanted = 0  # by the current read
        self.is_requested = False
        self.has_ended = False  # the client has disconnected, or reading was given up
        self.is_drained = False
        self.changed = threading.Condition()

    def collect(self, on_complete: Callable[[], None]) -> None:
        """Receive the whole body without a waiting thread, then call `on_complete`."""
        with self.changed:
            self.on_complete = on_complete
            self.bytes_wanted = self.length
            self._request()

    def read(self, size: int | None = -1, /) -> bytes:
        unread = self.length - self.bytes_read
        size = unread if size is None or size < 0 else min(size, unread)
        with self.changed:
            self.bytes_wanted = size
            self._request()
            self._wait()
            received = b"".join(self.chunks)
            data = received[:size]  # shorter if the client has disconnected
            self.chunks = [received[size:]]
            self.bytes_read += len(data)
        return data

    def drain(self) -> None:
        """Receive and discard the unread bytes, in the background.

        The server closes a connection with unread data. A client that is still sending then gets a reset before it has
        read the response: a proxy would return 502 and mark this host as down.
        """
        with self.changed:
            self.is_drained = True
            self.chunks = []
            self.on_complete = None
            self.bytes_wanted = self.length - self.bytes_read
            if self.length > MAX_DRAIN_BYTES:
                self.close()
            self._request()

    def close(self) -> None:
        super().close()
        self.has_ended = True
        self.on_complete = None
        self.protocol = None

    def _request(self) -> None:
        if self.is_requested or self._is_ready():
            return
        if not self.bytes_received:
            self.protocol = self.protocol.__aiter__()
        self.is_requested = True
        self.protocol.__anext__().add_done_callback(self._receive, context=None)

    def _receive(self, future: Any) -> None:
        with self.changed:
            chunk = future.result()
            self.is_requested = False
            self.bytes_received += len(chunk)
            if not chunk or self.bytes_received == self.length:
                self.has_ended = True
                self.protocol = None
            if not self.is_drained:
                self.chunks.append(chunk)
            self._request()
            is_ready, on_complete = self._is_ready(), self.on_complete
            if is_ready:
                self.changed.notify_all()
        if is_ready and on_complete:
            on_complete()

    def _is_ready(self) -> bool:
        return self.has_ended or self.bytes_received - self.bytes_read >= self.bytes_wanted

    def _wait(self) -> None:
        if self.deadline is None:
            self.deadline = time.monotonic() + self.timeout_s
        if self._is_ready() or self._arrives_promptly():
            return
        if not SLOW_BODY_SLOTS.acquire(blocking=False):
            raise TooManySlowBodies("too many slow bodies")
        try:
            if not self.changed.wait_for(self._is_ready, self._remaining_s()):
                raise BodyTooSlow("the body did not arrive in time")
        finally:
            SLOW_BODY_SLOTS.release()

    def _arrives_promptly(self) -> bool:
        start = time.monotonic()
        wait_s = min(PROMPT_S, self._remaining_s())
        while wait_s > 0:
            if self.changed.wait_for(self._is_ready, wait_s):
                return True
            allowed_s = PROMPT_S + (self.bytes_received - self.bytes_read) / PROMPT_BYTES_PER_S
            wait_s = min(start + allowed_s - time.monotonic(), self._remaining_s())
        return False

    def _remaining_s(self) -> float:
        return max(0.0, (self.deadline or 0.0) - time.monotonic())


def is_utf8_of(media_type: str, content_type: str | None) -> bool:
    sent_type, _, parameters = (content_type or "").partition(";")
    charset = parameters.replace(" ", "").lower()
    return sent_type.strip().lower() == media_type and charset in ("", "charset=utf-8", 'charset="utf-8"')


class StrictJSONParser(BaseParser):
    """Parses JSON requests for Django REST framework."""

    media_type = "application/json"

    @classmethod
    def accepts(cls, content_type: str | None) -> bool:
        """
        >>> StrictJSONParser.accepts("application/json; charset=utf-8"), StrictJSONParser.accepts("text/plain")
        (True, False)
        """
        return is_utf8_of(cls.media_type, content_type)

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return strict_json.parse_json(stream.read())
