"""Runs the web server with one listening socket, which the parent process holds.

By default, each worker process opens its own socket on Linux. While a worker is replaced, new connections are refused
and those in its queue are reset. With one socket they wait for the next worker.
"""

import socket

from granian import cli
from granian.net import SocketSpec  # type: ignore[attr-defined]
from granian.server import Server


class SharedSocketServer(Server):  # type: ignore[misc, valid-type]  # one of two classes, depending on the Python build
    def _init_shared_socket(self) -> None:
        """Do what granian does on systems where processes cannot share a port."""
        self._shd = SocketSpec(self.bind_addr, self.bind_port, self.backlog).build()
        self._sfd = self._shd.get_fd()
        self._sso = socket.socket(fileno=self._sfd)
        self._sso.set_inheritable(True)

    def _stop_workers(self) -> None:
        """Close the socket with the last worker, so that new connections are refused instead of waiting forever."""
        self._sso.close()
        super()._stop_workers()


if __name__ == "__main__":
    # The command line of granian has no option for the class; it looks it up by this name.
    vars(cli)["Server"] = SharedSocketServer
    cli.cli(auto_envvar_prefix="GRANIAN")
