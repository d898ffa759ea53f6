"""Runs the web server with one listening socket, which its parent process holds.

By itself each of its processes listens on Linux: whoever connects between the end of one and the start of the next is
refused, and what waits for one that ends is cut off. Here they wait for whichever process is there next.
"""

import socket

from granian import cli
from granian.net import SocketSpec  # type: ignore[attr-defined]
from granian.server import Server


class OneSocket(Server):  # type: ignore[misc, valid-type]  # one of two classes, by the build of Python
    def _init_shared_socket(self) -> None:
        """As it does wherever processes cannot share a port."""
        self._shd = SocketSpec(self.bind_addr, self.bind_port, self.backlog).build()
        self._sfd = self._shd.get_fd()
        self._sso = socket.socket(fileno=self._sfd)
        self._sso.set_inheritable(True)

    def _stop_workers(self) -> None:
        """The socket goes with the last process: whoever comes then is refused, and does not wait for nobody."""
        self._sso.close()
        super()._stop_workers()


if __name__ == "__main__":
    # Its command line names its class by this name, and lets nobody give it another.
    vars(cli)["Server"] = OneSocket
    cli.cli(auto_envvar_prefix="GRANIAN")
