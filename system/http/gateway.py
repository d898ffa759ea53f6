"""Passes the requests of the web server to the WSGI application.

granian's own WSGI interface converts header names to CGI names, so a client could override `X-Forwarded-For` with
`X_Forwarded_For`. Its RSGI interface keeps the names as sent. One thread of granian delivers requests and bodies, and
threads of this module run the application:

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

THREAD_COUNT = 4
# An idle thread ends and closes its database connection.
THREAD_IDLE_S = 600
# A body up to this size is collected before the application is called. Larger ones are read by the view.
MAX_COLLECTED_BYTES = 64 * 1024
MAX_COLLECTED_REQUESTS = 256

# The variable and separator of headers that have no HTTP_ prefix, or whose values are not joined with commas.
CGI_VARIABLES = {
    "content-type": ("CONTENT_TYPE", ""),
    "content-length": ("CONTENT_LENGTH", ""),
    "cookie": ("HTTP_COOKIE", ";"),
}


class Gateway:
    """The RSGI application. granian calls `receive` for each request."""

    def __init__(self, application: Application, timeout_s: float) -> None:
        self.application = application
        self.timeout_s = timeout_s
        self.threads = ThreadPool(THREAD_COUNT, THREAD_IDLE_S)
        self.incomplete_requests: dict[Request, float] = {}

    def receive(self, watcher: Any) -> None:
        """Accept a request. Runs in the server's thread, which must not block and would lose exceptions."""
        try:
            request = Request(watcher, self.timeout_s)
            if request.body and request.is_small and len(self.incomplete_requests) < MAX_COLLECTED_REQUESTS:
                self.incomplete_requests[request] = time.monotonic()
                request.body.collect(partial(self._handle_collected, request))
            else:
                self._handle(request)
        except BaseException as error:
            watcher.err(error)

    def watch(self, has_stopped: threading.Event) -> None:
        """Until the server stops, pass on requests whose bodies do not arrive promptly."""
        while not has_stopped.wait(PROMPT_S):
            for request, received_at in list(self.incomplete_requests.items()):
                if time.monotonic() - received_at < PROMPT_S:
                    break
                self._handle_collected(request)

    def _handle_collected(self, request: "Request") -> None:
        if self.incomplete_requests.pop(request, None) is not None:
            self._handle(request)

    def _handle(self, request: "Request") -> None:
        self.threads.submit(partial(request.respond, self.application))


class Request:
    """A request from the server, and the response to it."""

    def __init__(self, watcher: Any, timeout_s: float) -> None:
        self.watcher = watcher
        self.headers = watcher.scope.headers
        length = int(self.headers.get("content-length", 0))
        # A chunked body has no length and is refused by `check_request_head`.
        has_body = bool(length) and "transfer-encoding" not in self.headers
        self.body = RequestBody(watcher.proto, length, timeout_s) if has_body else None
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
        """Drain or close an unread body. The server keeps its connection open while anything refers to the body, even
        an uncollected reference cycle, and a client that is still sending would wait forever."""
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
        self.idle_count = 0  # idle threads that no queued task will wake

    def submit(self, task: Callable[[], None]) -> None:
        with self.lock:
            self.tasks.put(task)
            if self.idle_count:
                self.idle_count -= 1
            elif self.thread_count < self.size:
                threading.Thread(target=self._run, name="request", daemon=True).start()
                self.thread_count += 1

    def _run(self) -> None:
        while task := self._next_task():
            task()
            del task  # it holds a request

    def _next_task(self) -> Callable[[], None] | None:
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
    """The WSGI variables (PEP 3333). Each character of a string stands for one byte (Latin-1)."""
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
            values = headers.get_all(name)  # omits values that are not ASCII
            variables[variable] = separator.join(values) if separator else "".join(values[:1])
    return variables


def split_address(address: str) -> tuple[str, str]:
    """
    >>> split_address("127.0.0.1:80"), split_address("[fe80::1%2]:80")
    (('127.0.0.1', '80'), ('fe80::1', '80'))
    """
    host, _, port = address.rpartition(":")
    return host.strip("[]").partition("%")[0], port
