"""A TCP proxy in front of the Unix socket of a server; disconnecting it simulates a network failure."""

import socket
import socketserver
import threading
from contextlib import suppress
from pathlib import Path

from tests.config.stack import free_port


class _Relay(socketserver.BaseRequestHandler):
    server: "TcpProxy"

    def handle(self) -> None:
        with socket.socket(socket.AF_UNIX) as server_socket:
            if not self.server.register(self.request):
                return
            with suppress(OSError):
                server_socket.connect(str(self.server.socket_path))
                return_thread = threading.Thread(target=_forward, args=(server_socket, self.request), daemon=True)
                return_thread.start()
                _forward(self.request, server_socket)
                return_thread.join()


def _forward(source: socket.socket, target: socket.socket) -> None:
    """Copies all data, then closes both sides."""
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for connection in (source, target):
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


class TcpProxy(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, socket_path: Path) -> None:
        self.port = free_port()
        super().__init__(("127.0.0.1", self.port), _Relay)
        self.socket_path = socket_path
        self._is_disconnected = False
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def register(self, connection: socket.socket) -> bool:
        """Registers the connection, so that `disconnect` closes it; returns whether it may be used."""
        with self._lock:
            self._connections.add(connection)
            return not self._is_disconnected

    def shutdown_request(self, request: "socket.socket | tuple[bytes, socket.socket]") -> None:
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def disconnect(self) -> None:
        """Closes all connections, and refuses new ones until `reconnect` is called."""
        with self._lock:
            self._is_disconnected = True
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def reconnect(self) -> None:
        with self._lock:
            self._is_disconnected = False

    def end(self) -> None:
        self.disconnect()
        self.shutdown()
        self.server_close()
