"""One request to the hostile provider, and the possible responses."""

import gzip
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from threading import Event

GIVE_UP_S = 15.0
"""When even an endless answer ends, so that a broken limit shows as a failed test and not as a hanging one."""


@dataclass
class Visit:
    """One request that was read; a behaviour answers it."""

    endpoint: str
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    form: dict[str, str]
    _handler: BaseHTTPRequestHandler = field(repr=False)
    stop: Event = field(repr=False)

    def answer(self, status: int, body: bytes | object, **headers: str) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"content_type": "application/json", "content_length": str(len(raw)), **headers}
        self.begin(status, **sent)
        self._handler.wfile.write(raw)

    def begin(self, status: int, **headers: str) -> None:
        self._handler.send_response(status)
        for name, value in headers.items():
            self._handler.send_header(name.replace("_", "-").title(), value)
        self._handler.end_headers()

    def drip(self, piece: bytes, every_s: float) -> None:
        """Goes on until the caller hangs up or the provider ends."""
        until = time.monotonic() + GIVE_UP_S
        while time.monotonic() < until and not self.stop.wait(every_s):
            self._handler.wfile.write(piece)


Behaviour = Callable[[Visit], None]


def answers(body: bytes | object, status: int = 200, **headers: str) -> Behaviour:
    return lambda visit: visit.answer(status, body, **headers)


def fails(status: int) -> Behaviour:
    """429 with Retry-After, 500, …"""
    return answers({"error": "temporarily_unavailable"}, status, retry_after="1")


def html(status: int = 200) -> Behaviour:
    return answers(b"<!doctype html><title>Sign in to the network</title>", status, content_type="text/html")


def redirects(to: str, status: int = 302) -> Behaviour:
    return answers(b"", status, location=to)


def huge(size: int = 600 * 1024) -> Behaviour:
    return answers(b'{"keys": [], "filler": "' + b"x" * size + b'"}')


def gzip_bomb(size: int = 50 * 1024 * 1024) -> Behaviour:
    packed = gzip.compress(b" " * size)
    return answers(packed, content_encoding="gzip")


def endless_chunks() -> Behaviour:
    def behave(visit: Visit) -> None:
        visit.begin(200, content_type="application/json", transfer_encoding="chunked")
        visit.drip(b"4000\r\n" + b" " * 0x4000 + b"\r\n", 0.0005)

    return behave


def byte_by_byte(every_s: float = 1.0) -> Behaviour:
    def behave(visit: Visit) -> None:
        visit.begin(200, content_type="application/json", content_length="100000")
        visit.drip(b" ", every_s)

    return behave


def silent() -> Behaviour:
    def behave(visit: Visit) -> None:
        visit.stop.wait(GIVE_UP_S)

    return behave


def hangs_up() -> Behaviour:
    return lambda visit: None
