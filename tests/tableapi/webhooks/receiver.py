"""A receiver of webhooks with https on loopback, which answers as a test specifies."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.system.outbound.certificates import make_certificate, server_context

HOST = "receiver.example.com"


@dataclass(frozen=True)
class Message:
    id: str
    content: bytes
    headers: dict[str, str]

    @property
    def body(self) -> Any:
        return json.loads(self.content)

    @property
    def type(self) -> str:
        return str(self.body["type"])

    @property
    def data(self) -> Any:
        return self.body["data"]


# Returns status, body and headers of the response.
Answer = Callable[[Message], tuple[int, bytes, dict[str, str]]]


def accept(message: Message) -> tuple[int, bytes, dict[str, str]]:
    return 204, b"", {}


def refuse(message: Message) -> tuple[int, bytes, dict[str, str]]:
    return 500, b"out of order", {}


@dataclass
class Receiver:
    ca_bundle: Path
    answer: Answer = accept
    messages: list[Message] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}/changes?source=sb"

    def take(self) -> list[Message]:
        """The messages since the last call."""
        messages, self.messages = self.messages, []
        return messages


@contextmanager
def running_receiver(folder: Path, *addresses: str) -> Iterator[Receiver]:
    authority = make_certificate("Authority of a test")
    ca_bundle = authority.write(folder, "authority")
    certificate = make_certificate(HOST, issuer=authority, names=(HOST,), addresses=addresses).write(folder, "receiver")
    receiver = Receiver(ca_bundle)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            message = Message(self.headers["webhook-id"], content, {k.lower(): v for k, v in self.headers.items()})
            status, body, headers = receiver.answer(message)
            receiver.messages.append(message)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # the sender was killed

    with Server(("127.0.0.1" if not addresses else addresses[0], 0), Handler) as server:
        server.socket = server_context(certificate).wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        receiver.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield receiver
        server.shutdown()
