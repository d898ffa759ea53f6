"""A recorded request to the hostile provider, and its possible responses."""

import gzip
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from threading import Event

MAX_RESPONSE_S = 15.0
"""The time after which even an endless response ends, so that a broken limit fails a test instead of hanging it."""


@dataclass
class RecordedRequest:
    """A request that a behaviour responds to."""

    endpoint: str
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    form: dict[str, str]
    _handler: BaseHTTPRequestHandler = field(repr=False)
    stop: Event = field(repr=False)

    def respond(self, status: int, body: bytes | object, **headers: str) -> None:
        encoded_body = body if isinstance(body, bytes) else json.dumps(body).encode()
        all_headers = {"content_type": "application/json", "content_length": str(len(encoded_body)), **headers}
        self.start_response(status, **all_headers)
        self._handler.wfile.write(encoded_body)

    def start_response(self, status: int, **headers: str) -> None:
        self._handler.send_response(status)
        for name, value in headers.items():
            self._handler.send_header(name.replace("_", "-").title(), value)
        self._handler.end_headers()

    def close_connection(self) -> None:
        self._handler.close_connection = True

    def drip(self, piece: bytes, interval_s: float) -> None:
        """Sends the piece repeatedly until the caller disconnects or the provider stops."""
        deadline = time.monotonic() + MAX_RESPONSE_S
        while time.monotonic() < deadline and not self.stop.wait(interval_s):
            self._handler.wfile.write(piece)


Behaviour = Callable[[RecordedRequest], None]


def responds_with(body: bytes | object, status: int = 200, **headers: str) -> Behaviour:
    return lambda request: request.respond(status, body, **headers)


def responds_with_error(status: int) -> Behaviour:
    """An error such as 429 or 500, with Retry-After."""
    return responds_with({"error": "temporarily_unavailable"}, status, retry_after="1")


def responds_with_html(status: int = 200) -> Behaviour:
    return responds_with(b"<!doctype html><title>Sign in to the network</title>", status, content_type="text/html")


def redirects_to(location: str, status: int = 302) -> Behaviour:
    return responds_with(b"", status, location=location)


def responds_with_huge_body(size: int = 600 * 1024) -> Behaviour:
    return responds_with(b'{"keys": [], "filler": "' + b"x" * size + b'"}')


def responds_with_gzip_bomb(size: int = 50 * 1024 * 1024) -> Behaviour:
    compressed_body = gzip.compress(b" " * size)
    return responds_with(compressed_body, content_encoding="gzip")


def sends_endless_chunks() -> Behaviour:
    def behave(request: RecordedRequest) -> None:
        request.start_response(200, content_type="application/json", transfer_encoding="chunked")
        request.drip(b"4000\r\n" + b" " * 0x4000 + b"\r\n", 0.0005)

    return behave


def sends_byte_by_byte(interval_s: float = 1.0) -> Behaviour:
    def behave(request: RecordedRequest) -> None:
        request.start_response(200, content_type="application/json", content_length="100000")
        request.drip(b" ", interval_s)

    return behave


def stays_silent() -> Behaviour:
    def behave(request: RecordedRequest) -> None:
        request.stop.wait(MAX_RESPONSE_S)

    return behave


def hangs_up() -> Behaviour:
    return lambda request: request.close_connection()
