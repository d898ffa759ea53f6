"""The web server: the programs of the parent (`web_processes`) and of its forks, which load the application."""

import gc
import importlib
import io
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from granian import _granian, _signals
from granian.http import HTTP1Settings, HTTP2Settings
from granian.log import LogLevels, configure_logging
from granian.net import SocketSpec  # type: ignore[attr-defined]

from config import env
from config.env import ConfigurationError, Environment
from config.runtime import web_processes
from config.runtime.up import MAX_HEADER_BYTES, SERVERS_RUN, refuse_wrong_certificate

# granian declares parts of these without types, or with fewer parameters.
native: Any = _granian
signals: Any = _signals

LISTEN_BACKLOG = 1024
# An accepted connection is read within this time.
FIRST_READ_S = 0.2


def load_wsgi_module() -> Any:
    """The module with the application. By name, because the supervisor's package must not import Django."""
    return importlib.import_module("config.wsgi")


@contextmanager
def report_errors(report_fd: int) -> Iterator[None]:
    """Report why the service cannot start in one sentence."""
    try:
        yield
    except ConfigurationError as error:
        if report_fd:
            os.write(report_fd, f"{error}\n".encode())
            sys.exit(1)
        sys.exit(f"servicebase: {error}")


def run_parent(environment: Environment, report_fd: int = 0, listener_fd: int = 0, *old_pids: int) -> None:
    """At startup, only `report_fd` is passed, a socket that also tells when the servers run. After SIGHUP, the listener
    and the old processes are passed instead."""
    if web_processes.HAS_FORK:
        with report_errors(report_fd):
            load_wsgi_module()
        gc.collect()
        gc.freeze()  # so that the collector does not write to pages that the processes share
    server = web_processes.Parent(environment, report_fd, listener_fd, old_pids)
    if report_fd:
        if os.read(report_fd, 1) != SERVERS_RUN:
            sys.exit(1)  # the supervisor was killed
        server.prepare()
    if not listener_fd:
        socket_spec = SocketSpec(environment.host, environment.port, LISTEN_BACKLOG)
        server.listener_fd = socket_spec.build().get_fd()  # nobody else closes it
    server.run()


def prepare_database(_environment: Environment, report_fd: int) -> None:
    with report_errors(report_fd):
        load_wsgi_module().call_command("prepare", "--if-changed")


def write_welcome(environment: Environment, report_fd: int) -> None:
    text = io.StringIO()
    load_wsgi_module().call_command("welcome", environment.local_url, stdout=text)
    with open(report_fd, "w", encoding="utf-8") as target:
        target.write(text.getvalue())


def try_new_code(environment: Environment) -> None:
    with report_errors(0):
        refuse_wrong_certificate(environment)
        load_wsgi_module()


class Loop:
    """Replaces the event loop, because granian's own thread runs the callbacks."""

    def call_soon(self, callback: Callable[..., Any], *arguments: Any, context: Any = None) -> None:
        callback(*arguments)

    call_soon_threadsafe = call_soon


def stop_accepting_first(listener_fd: int) -> None:
    """When it stops, granian closes connections that it has accepted but not read from. Shortly before, replace its
    listening socket with an unused one, so that it accepts no more."""
    stop_granian: Any = signal.getsignal(signal.SIGTERM)

    def stop(number: int, frame: FrameType | None) -> None:
        with socket.create_server(("127.0.0.1", 0)) as unused_socket:
            unused_socket.setblocking(False)
            os.dup2(unused_socket.fileno(), listener_fd)
        threading.Timer(FIRST_READ_S, stop_granian, (number, frame)).start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)


def serve(environment: Environment, listener_fd: int, serving_pipe: int) -> None:
    """Serve requests as granian does, but without an event loop, whose thread each request would have to wake."""
    wsgi = load_wsgi_module()
    gateway = wsgi.gateway
    loop = Loop()
    scheduler = native.CallbackScheduler(loop, None, None, None, None)
    scheduler._schedule_fn = gateway.receive
    has_stopped = threading.Event()
    shutdown = signals.set_sync_signals()
    shutdown.add_cb(has_stopped.set)
    stop_accepting_first(listener_fd)
    threads = (1, 512, 1, 30, max(1, LISTEN_BACKLOG // environment.web_processes))
    cert, key = environment.tls_cert, environment.tls_key
    tls: tuple[Any, ...] = (cert is not None, cert and str(cert), key and str(key), None, "tls1.3", None, [], False)
    http1 = HTTP1Settings(max_buffer_size=MAX_HEADER_BYTES)
    sockets = (None, native.SocketHolder(listener_fd, False, LISTEN_BACKLOG))
    worker = native.RSGIWorker(1, sockets, None, *threads, "1", http1, HTTP2Settings(), False, None, *tls, (None, None))
    worker.serve_mtr(scheduler, loop, shutdown)
    with suppress(OSError):  # the parent was replaced by new code, which has another pipe
        os.write(serving_pipe, b"%d\n" % os.getpid())
    os.close(serving_pipe)
    wsgi.line_buffer.start()
    wsgi.process_counts.start()
    gateway.watch(has_stopped)
    wsgi.process_counts.stop()
    wsgi.line_buffer.stop()


ROLES: dict[str, Callable[..., None]] = {
    "parent": run_parent, "prepare": prepare_database, "welcome": write_welcome, "trial": try_new_code, "serve": serve,
}  # fmt: skip


def main(role: str, *words: str) -> None:
    configure_logging(LogLevels.warning)
    environment = env.current()  # before the application removes its secrets
    numbers = list(map(int, words))
    while True:
        try:
            return ROLES[role](environment, *numbers)
        except web_processes.ForkedChild as child:
            role, *numbers = child.args


if __name__ == "__main__":
    main(*sys.argv[1:])
