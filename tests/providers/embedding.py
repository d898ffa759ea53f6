"""An embedding provider on loopback, correct or faulty in any of the ways that the product handles.

    with EmbeddingServer() as server:
        server.serve(fails(500), times=2)                   # how it answers, for ever or so many times
        server.serve(server.but(lambda answer: ...))        # the right answer, changed
        server.model_turns = 1                              # the same name, another model

The behaviours are those of `behaviours`; a vector is made from its text, so that a test knows the right one.
"""

import hashlib
import json
import math
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from threading import Event, Lock, Thread
from typing import Any, Self

from tests.providers.behaviours import MAX_RESPONSE_S, Behaviour, Visit
from tests.providers.serving import LoopbackServer

KEY = "sk-canary-0123456789"

ResponseBody = dict[str, Any]


class EmbeddingServer:
    """As it is made, it is right."""

    def __init__(self, dimensions: int = 8, keeps_open: bool = False) -> None:
        self.dimensions = dimensions
        self.keeps_open = keeps_open
        self.model_turns = 0
        self.longest_text = 8000
        self.requests: list[ResponseBody] = []
        self.keys: list[str] = []
        self.peers: set[int] = set()
        self.at_once = self.most_at_once = 0
        self._turn = Lock()
        self._next: list[Behaviour] = []
        self._always: Behaviour = self.respond_correctly
        self._stop = Event()
        self._server = LoopbackServer(_handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        for fault in self._server.faults:
            raise fault

    def serve(self, behaviour: Behaviour, times: int = 0) -> None:
        """From now on, or for so many requests."""
        if times:
            self._next += [behaviour] * times
        else:
            self._always = behaviour

    def behave_correctly(self) -> None:
        """Well again."""
        self._next.clear()
        self._always = self.respond_correctly

    def vector(self, text: str, dimensions: int | None = None) -> list[float]:
        """Of length 1; another model gives one that is far from it."""
        seed = hashlib.sha256(f"{self.model_turns}:{text}".encode()).digest()
        numbers = [
            math.sin(1 + seed[index % 32] * (index + 1)) + 0.01 for index in range(dimensions or self.dimensions)
        ]
        length = math.sqrt(sum(number * number for number in numbers))
        return [number / length for number in numbers]

    def valid_response(self, request: ResponseBody) -> ResponseBody:
        vectors = [self.vector(text, request.get("dimensions")) for text in request["input"]]
        data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        return {"object": "list", "model": request["model"], "data": data, "usage": {"total_tokens": 1}}

    def respond_correctly(self, visit: Visit) -> None:
        request: Any = visit.form["asked"]
        if any(not text or len(text) > self.longest_text for text in request["input"]):
            visit.respond(400, {"error": {"message": f"too long: {request} {visit.headers}"}})
        else:
            visit.respond(200, self.valid_response(request))

    def serve_changed(self, change: Callable[[ResponseBody], Any]) -> Behaviour:
        """The right answer, changed: to bytes, or to what becomes JSON."""

        def behave(visit: Visit) -> None:
            request: Any = visit.form["asked"]
            visit.respond(200, change(self.valid_response(request)))

        return behave

    def hold(self) -> Event:
        """Requests wait until the event is set, then are answered well."""
        release = Event()

        def behave(visit: Visit) -> None:
            release.wait(MAX_RESPONSE_S)
            self.respond_correctly(visit)

        self.serve(behave)
        return release

    def respond(self, handler: BaseHTTPRequestHandler) -> None:
        visit = self._read(handler)
        with self._turn:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            behaviour = self._next.pop(0) if self._next else self._always
        try:
            behaviour(visit)
        finally:
            with self._turn:
                self.at_once -= 1

    def _read(self, handler: BaseHTTPRequestHandler) -> Visit:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        size = int(headers["content-length"])
        body = handler.rfile.read(size)
        if len(body) < size:
            raise ConnectionAbortedError  # a batch that was given up while it was sent
        document = json.loads(body)
        with self._turn:
            self.requests.append(document)
            self.keys.append(headers.get("authorization", ""))
            self.peers.add(handler.client_address[1])
        form: Any = {"asked": document}
        return Visit("embeddings", handler.command, handler.path, {}, headers, form, handler, self._stop)


def _handler(server: EmbeddingServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = MAX_RESPONSE_S

        def do_POST(self) -> None:
            self.close_connection = not server.keeps_open
            server.respond(self)

        def log_message(self, *_: Any) -> None:
            """Silence: what came is in `requests`."""

    return Handler
