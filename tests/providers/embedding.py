"""An embedding provider on loopback, which is correct or has any fault that the product handles.

    with EmbeddingServer() as server:
        server.serve(responds_with_error(500), times=2)     # the behaviour of the next two requests
        server.serve(server.changed_response(lambda response: ...))  # the correct response, changed
        server.model_generation = 1                         # another model under the same name

The behaviours are those of `behaviours`. A vector depends only on its text, so a test can compute it.
"""

import hashlib
import json
import math
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from threading import Event, Lock, Thread
from typing import Any, Self

from tests.providers.behaviours import MAX_RESPONSE_S, Behaviour, RecordedRequest
from tests.providers.serving import LoopbackServer

KEY = "sk-canary-0123456789"

JsonObject = dict[str, Any]


class EmbeddingServer:
    """Responds correctly until `serve` sets another behaviour."""

    def __init__(self, dimensions: int = 8, keeps_connections_open: bool = False) -> None:
        self.dimensions = dimensions
        self.keeps_connections_open = keeps_connections_open
        self.model_generation = 0
        self.max_text_length = 8000
        self.requests: list[JsonObject] = []
        self.authorization_headers: list[str] = []
        self.client_ports: set[int] = set()
        self.running_requests = self.max_running_requests = 0
        self._lock = Lock()
        self._next_behaviours: list[Behaviour] = []
        self._default_behaviour: Behaviour = self.respond_correctly
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
        """Sets the behaviour for the next `times` requests, or without `times` for all later ones."""
        if times:
            self._next_behaviours += [behaviour] * times
        else:
            self._default_behaviour = behaviour

    def behave_correctly(self) -> None:
        """Removes every configured behaviour."""
        self._next_behaviours.clear()
        self._default_behaviour = self.respond_correctly

    def vector(self, text: str, dimensions: int | None = None) -> list[float]:
        """The unit vector of a text; another model generation yields a distant one."""
        seed = hashlib.sha256(f"{self.model_generation}:{text}".encode()).digest()
        components = [
            math.sin(1 + seed[index % 32] * (index + 1)) + 0.01 for index in range(dimensions or self.dimensions)
        ]
        norm = math.sqrt(sum(component * component for component in components))
        return [component / norm for component in components]

    def valid_response(self, payload: JsonObject) -> JsonObject:
        vectors = [self.vector(text, payload.get("dimensions")) for text in payload["input"]]
        items = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        return {"object": "list", "model": payload["model"], "data": items, "usage": {"total_tokens": 1}}

    def respond_correctly(self, request: RecordedRequest) -> None:
        payload: Any = request.form["json"]
        if any(not text or len(text) > self.max_text_length for text in payload["input"]):
            request.respond(400, {"error": {"message": f"too long: {payload} {request.headers}"}})
        else:
            request.respond(200, self.valid_response(payload))

    def changed_response(self, change: Callable[[JsonObject], Any]) -> Behaviour:
        """A behaviour that applies `change` to the correct response; the result is bytes or a JSON value."""

        def behave(request: RecordedRequest) -> None:
            payload: Any = request.form["json"]
            request.respond(200, change(self.valid_response(payload)))

        return behave

    def hold(self) -> Event:
        """Makes requests wait until the returned event is set; then they get the correct response."""
        release = Event()

        def behave(request: RecordedRequest) -> None:
            release.wait(MAX_RESPONSE_S)
            self.respond_correctly(request)

        self.serve(behave)
        return release

    def respond(self, handler: BaseHTTPRequestHandler) -> None:
        request = self._parse_request(handler)
        with self._lock:
            self.running_requests += 1
            self.max_running_requests = max(self.max_running_requests, self.running_requests)
            behaviour = self._next_behaviours.pop(0) if self._next_behaviours else self._default_behaviour
        try:
            behaviour(request)
        finally:
            with self._lock:
                self.running_requests -= 1

    def _parse_request(self, handler: BaseHTTPRequestHandler) -> RecordedRequest:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        content_length = int(headers["content-length"])
        body = handler.rfile.read(content_length)
        if len(body) < content_length:
            raise ConnectionAbortedError  # the caller disconnected while it sent the batch
        payload = json.loads(body)
        with self._lock:
            self.requests.append(payload)
            self.authorization_headers.append(headers.get("authorization", ""))
            self.client_ports.add(handler.client_address[1])
        form: Any = {"json": payload}
        return RecordedRequest("embeddings", handler.command, handler.path, {}, headers, form, handler, self._stop)


def _handler(server: EmbeddingServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = MAX_RESPONSE_S

        def do_POST(self) -> None:
            self.close_connection = not server.keeps_connections_open
            server.respond(self)

        def log_message(self, *_: Any) -> None:
            """Nothing is logged: tests read `requests`."""

    return Handler
