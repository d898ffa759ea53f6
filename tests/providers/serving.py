"""What the servers of tests share: threads that end with the test, and no messages about dropped connections."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LoopbackServer(ThreadingHTTPServer):
    """On a free port; what goes wrong in it besides hung up connections is in `faults`."""

    daemon_threads = False  # `server_close` waits for every thread: nothing outlives the test

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self.faults: list[BaseException] = []
        super().__init__(("127.0.0.1", 0), handler)

    def handle_error(self, *_: Any) -> None:
        """That the caller hung up is what most tests are about; anything else is a fault of the test."""
        error = sys.exc_info()[1]
        if error and not isinstance(error, OSError):
            self.faults.append(error)
