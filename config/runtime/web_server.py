"""Runs the web server with one listening socket, which the parent process holds.

By default, each worker process opens its own socket on Linux. While a worker is replaced, new connections are refused
and those in its queue are reset. With one socket they wait for the next worker.
"""

import socket
import threading
from collections.abc import Callable
from typing import Any

from granian import _granian, _signals, cli
from granian.net import SocketSpec  # type: ignore[attr-defined]
from granian.server import common, mp

# granian declares parts of these without types, or with fewer parameters.
native: Any = _granian
signals: Any = _signals
processes: Any = mp


class Loop:
    """Takes the place of an event loop: granian's thread calls back by itself."""

    def call_soon(self, callback: Callable[..., Any], *arguments: Any, context: Any = None) -> None:
        callback(*arguments)

    call_soon_threadsafe = call_soon


class SharedSocketServer(processes.MPServer):  # type: ignore[misc]
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

    @staticmethod
    @processes.WorkerProcess.wrap_target  # type: ignore[untyped-decorator]
    def _spawn_rsgi_worker(
        worker_id: int, gateway: Any, sock: Any, ipc: Any, _loop: Any, runtime_mode: Any, *options: Any
    ) -> None:
        """Do what granian does, but without an event loop: each request would wake its thread first."""
        *threads, _task_impl, http_mode, http1, http2, _websockets, static, _access_log, tls, _scope, metrics = options
        loop = Loop()
        scheduler = native.CallbackScheduler(loop, None, None, None, None)
        scheduler._schedule_fn = gateway.receive
        has_stopped = threading.Event()
        shutdown = signals.set_sync_signals()
        shutdown.add_cb(has_stopped.set)
        worker = native.RSGIWorker(
            worker_id, sock, ipc, *threads, http_mode, http1, http2, False, static, *tls, metrics
        )
        getattr(worker, common.WORKERS_METHODS[runtime_mode][False])(scheduler, loop, shutdown)
        gateway.watch(has_stopped)


if __name__ == "__main__":
    # The command line of granian has no option for the class; it looks it up by this name.
    vars(cli)["Server"] = SharedSocketServer
    cli.cli(auto_envvar_prefix="GRANIAN")
