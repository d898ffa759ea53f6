"""The network between a host and a server: a TCP proxy in front of a Unix socket that can be cut."""

import socket
import socketserver
import threading
from contextlib import suppress
from pathlib import Path

from tests.config.stack import free_port


class _Relay(socketserver.BaseRequestHandler):
    server: "Wire"

    def handle(self) -> None:
        with socket.socket(socket.AF_UNIX) as target:
            if not self.server.is_connected(self.request):
                return
            with suppress(OSError):
                target.connect(str(self.server.target))
                return_thread = threading.Thread(target=_carry, args=(target, self.request), daemon=True)
                return_thread.start()
                _carry(self.request, target)
                return_thread.join()


def _carry(source: socket.socket, target: socket.socket) -> None:
    """All that comes, and then its end."""
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for connection in (source, target):
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


class Wire(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, target: Path) -> None:
        self.port = free_port()
        super().__init__(("127.0.0.1", self.port), _Relay)
        self.target = target
        self._is_cut = False
        self._open: set[socket.socket] = set()
        self._turn = threading.Lock()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def is_connected(self, link: socket.socket) -> bool:
        """Whether this link may be used; from now on a cut ends it."""
        with self._turn:
            self._open.add(link)
            return not self._is_cut

    def shutdown_request(self, request: "socket.socket | tuple[bytes, socket.socket]") -> None:
        with self._turn:
            self._open.discard(request)
        super().shutdown_request(request)

    def cut(self) -> None:
        """Every link ends, and so does each new one, until it is mended."""
        with self._turn:
            self._is_cut = True
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        with self._turn:
            self._is_cut = False

    def end(self) -> None:
        self.cut()
        self.shutdown()
        self.server_close()
