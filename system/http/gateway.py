"""Calls the WSGI application for the requests of the web server.

granian's own WSGI interface names headers as CGI does before Python sees them, so a client could replace
`X-Forwarded-For` by `X_Forwarded_For`. Its RSGI interface keeps the names as sent. One thread of granian delivers
requests and bodies, and threads of this module run the application:

request ──no body, or a large one──────────────────> queue ──> thread ──> application ──> response
   └──small body──> collected ──all of it arrived──────┘
                        └──────not arrived promptly────┘
"""

import sys
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from io import BytesIO, IOBase
from queue import Empty, SimpleQueue
from typing import Any

from system.http.request_body import PROMPT_S, RequestBody
from system.http.stored_file import StoredFile

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

THREADS = 4
# An idle thread ends and closes its database connection.
THREAD_IDLE_S = 600
# A body up to this size is collected before the application is called. Larger ones are read when a view wants them.
MAX_COLLECTED_BYTES = 64 * 1024
MAX_COLLECTED_REQUESTS = 256

# The variables and separators of headers that are not called HTTP_… or whose values are not joined by a comma.
CGI_VARIABLES = {
    "content-type": ("CONTENT_TYPE", ""),
    "content-length": ("CONTENT_LENGTH", ""),
    "cookie": ("HTTP_COOKIE", ";"),
}


class Gateway:
    """The application that granian calls, see `receive`."""

    def __init__(self, application: Application, deadline_s: float) -> None:
        self.application = application
        self.deadline_s = deadline_s
        self.threads = ThreadPool(THREADS, THREAD_IDLE_S)
        self.collected: dict[Request, float] = {}

    def receive(self, watcher: Any) -> None:
        """Take a request. The thread of the server must not block here, and exceptions would be lost."""
        try:
            request = Request(watcher, self.deadline_s)
            if request.body and request.is_small and len(self.collected) < MAX_COLLECTED_REQUESTS:
                self.collected[request] = time.monotonic()
                request.body.collect(partial(self._handle_collected, request))
            else:
                self._handle(request)
        except BaseException as error:
            watcher.err(error)

    def watch(self, has_stopped: threading.Event) -> None:
        """Until the server stops, call the application also for bodies that do not arrive promptly."""
        while not has_stopped.wait(PROMPT_S):
            for request, received_at in list(self.collected.items()):
                if time.monotonic() - received_at < PROMPT_S:
                    break
                self._handle_collected(request)

    def _handle_collected(self, request: "Request") -> None:
        if self.collected.pop(request, None) is not None:
            self._handle(request)

    def _handle(self, request: "Request") -> None:
        self.threads.submit(partial(request.respond, self.application))


class Request:
    """A request of the server and the response to it."""

    def __init__(self, watcher: Any, deadline_s: float) -> None:
        self.watcher = watcher
        self.headers = watcher.scope.headers
        length = int(self.headers.get("content-length", 0))
        # A body in chunks has no length. It is refused, see `RequestLimits`.
        has_body = bool(length) and "transfer-encoding" not in self.headers
        self.body = RequestBody(watcher.proto, length, deadline_s) if has_body else None
        # With an Expect header the client has not sent the body yet, and reading would request it.
        self.expects_continue = "expect" in self.headers
        self.is_small = length <= MAX_COLLECTED_BYTES and not self.expects_continue
        self.response: tuple[int, list[tuple[str, str]]] = (500, [])

    def respond(self, application: Application) -> None:
        try:
            chunks = application(environ(self.watcher.scope, self.headers, self.body or BytesIO()), self._start)
            try:
                if isinstance(chunks, StoredFile) and chunks.is_large:
                    chunks.is_read_by_server = True
                    self.watcher.proto.response_file(*self.response, chunks.path)
                else:
                    # As a whole, because granian would buffer a stream for a slow client without a limit.
                    self.watcher.proto.response_bytes(*self.response, b"".join(chunks))
            finally:
                getattr(chunks, "close", lambda: None)()
        except BaseException as error:
            self.watcher.err(error)
        finally:
            self._release()

    def _start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
        self.response = int(status[:3]), headers

    def _release(self) -> None:
        """The server keeps the connection while anything refers to an unread body (a request in a reference cycle,
        until it is collected), and a client that only sends would wait forever."""
        self.watcher = None
        if self.body and self.expects_continue:
            self.body.close()
        elif self.body:
            self.body.drain()


class ThreadPool:
    """Up to `size` threads, started when none is idle."""

    def __init__(self, size: int, idle_s: float) -> None:
        self.size = size
        self.idle_s = idle_s
        self.tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.lock = threading.Lock()
        self.thread_count = 0
        self.idle_count = 0  # those that no task was submitted for

    def submit(self, task: Callable[[], None]) -> None:
        with self.lock:
            self.tasks.put(task)
            if self.idle_count:
                self.idle_count -= 1
            elif self.thread_count < self.size:
                threading.Thread(target=self._run, name="request", daemon=True).start()
                self.thread_count += 1

    def _run(self) -> None:
        while task := self._next():
            task()
            del task  # it holds a request

    def _next(self) -> Callable[[], None] | None:
        with self.lock:
            if not self.tasks.empty():
                return self.tasks.get_nowait()
            self.idle_count += 1
        while True:
            try:
                return self.tasks.get(timeout=self.idle_s)
            except Empty:
                with self.lock:
                    if self.idle_count:  # otherwise a task was submitted in the meantime
                        self.idle_count -= 1
                        self.thread_count -= 1
                        return None


def environ(scope: Any, headers: Any, body: IOBase) -> dict[str, Any]:
    """The variables of PEP 3333. Text is Latin-1, whose characters stand for the bytes."""
    server, port = split_address(scope.server)
    variables = {
        "REQUEST_METHOD": scope.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": scope.path.encode().decode("latin-1"),
        "QUERY_STRING": scope.query_string.encode().decode("latin-1"),
        "REMOTE_ADDR": split_address(scope.client)[0],
        "SERVER_NAME": server,
        "SERVER_PORT": port,
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "HTTP_HOST": scope.authority or "",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.scheme,
        "wsgi.input": body,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name in headers.keys():  # noqa: SIM118  (not a dictionary)
        if "_" not in name:  # CGI cannot distinguish an underscore from a hyphen
            variable, separator = CGI_VARIABLES.get(name) or ("HTTP_" + name.replace("-", "_").upper(), ",")
            values = headers.get_all(name)  # without those that are not ASCII
            variables[variable] = separator.join(values) if separator else "".join(values[:1])
    return variables


def split_address(address: str) -> tuple[str, str]:
    """
    >>> split_address("127.0.0.1:80"), split_address("[fe80::1%2]:80")
    (('127.0.0.1', '80'), ('fe80::1', '80'))
    """
    host, _, port = address.rpartition(":")
    return host.strip("[]").partition("%")[0], port
