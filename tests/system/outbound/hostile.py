"""A small server on loopback and a resolver that misbehave as a test specifies."""

import socket
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

MAX_RESPONSE_S = 10.0
"""The time after which even an endless response ends, so that a broken limit fails a test instead of hanging it."""

DRIP_INTERVAL_S = 0.02
"""The pause between two pieces of a slow response: shorter than any timeout of a single read."""
TLS_HANDSHAKE = b"\x16"


@dataclass
class HostileConnection:
    """A connection whose request was read."""

    sock: socket.socket
    request: bytes
    _stop: Event

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.sock.sendall(piece)

    def drip(self, piece: bytes) -> None:
        for _ in range(int(MAX_RESPONSE_S / DRIP_INTERVAL_S)):
            self.sock.sendall(piece)
            if self._stop.wait(DRIP_INTERVAL_S):
                return

    def stay_silent(self) -> None:
        self._stop.wait(MAX_RESPONSE_S)


class FakeResolver:
    """Returns the given responses in turn, then the last one forever; records the host of each lookup."""

    def __init__(self, *responses: Iterable[str]) -> None:
        self.responses = list(responses)
        self.looked_up_hosts: list[str] = []

    def __call__(self, host: str) -> Iterable[str]:
        self.looked_up_hosts.append(host)
        return self.responses.pop(0) if len(self.responses) > 1 else self.responses[0]


Behaviour = Callable[[HostileConnection], None]


@dataclass
class HostileServer:
    port: int
    reads_slowly: bool
    requests: list[bytes] = field(default_factory=list)
    server_names: list[str | None] = field(default_factory=list)
    connection_count: int = 0
    stop: Event = field(default_factory=Event)

    @property
    def request(self) -> bytes:
        (request,) = self.requests
        return request


def responds_with(body: bytes, status: str = "200 OK", *headers: str) -> Behaviour:
    header_lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return lambda connection: connection.send("\r\n".join(header_lines).encode() + body)


@contextmanager
def serving(
    behave: Behaviour, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", reads_slowly: bool = False
) -> Iterator[HostileServer]:
    address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=address_family) as listener:
        server = HostileServer(listener.getsockname()[1], reads_slowly)
        if tls:
            tls.sni_callback = lambda _sock, name, _context: server.server_names.append(name)
        thread = Thread(target=_serve, args=(listener, server, behave, tls))
        thread.start()
        try:
            yield server
        finally:
            server.stop.set()
            # Wakes up `accept`, which closing the listener in this thread would not do.
            socket.create_connection((host, server.port)).close()
            thread.join()


def _serve(listener: socket.socket, server: HostileServer, behave: Behaviour, tls: ssl.SSLContext | None) -> None:
    while True:
        sock, _ = listener.accept()
        with sock:
            if server.stop.is_set():
                return
            server.connection_count += 1
            sock.settimeout(MAX_RESPONSE_S)
            try:
                _respond(sock, server, behave, tls)
            except OSError:
                # The caller disconnected, as in most tests.
                continue


def _respond(sock: socket.socket, server: HostileServer, behave: Behaviour, tls: ssl.SSLContext | None) -> None:
    if tls:
        sock = tls.wrap_socket(sock, server_side=True)
    with sock:
        for _ in range(int(MAX_RESPONSE_S / DRIP_INTERVAL_S) if server.reads_slowly else 0):
            if not sock.recv(100_000) or server.stop.wait(DRIP_INTERVAL_S):
                return
        request = _read_request(sock)
        server.requests.append(request)
        behave(HostileConnection(sock, request, server.stop))


def _read_request(sock: socket.socket) -> bytes:
    request = b""
    while b"\r\n\r\n" not in request:
        piece = sock.recv(65536)
        if not piece:
            raise ConnectionError
        request += piece
        if request.startswith(TLS_HANDSHAKE):
            return request
    request_head, body = request.split(b"\r\n\r\n", 1)
    lengths = [line[16:] for line in request_head.lower().split(b"\r\n") if line.startswith(b"content-length: ")]
    while lengths and len(body) < int(lengths[0]):
        body += sock.recv(65536)
    return request_head + b"\r\n\r\n" + body
