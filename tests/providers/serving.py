"""The base of the test servers: threads end with the test, and dropped connections are not errors."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LoopbackServer(ThreadingHTTPServer):
    """A server on a free port; errors other than dropped connections are collected in `faults`."""

    daemon_threads = False  # `server_close` waits for every thread, so none outlives the test

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self.faults: list[BaseException] = []
        super().__init__(("127.0.0.1", 0), handler)

    def handle_error(self, *_: Any) -> None:
        """Ignores dropped connections, which most tests cause; any other error is a fault of the test."""
        error = sys.exc_info()[1]
        if error and not isinstance(error, OSError):
            self.faults.append(error)
