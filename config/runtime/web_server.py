"""The web server: a parent that loads the application once, and the processes that it forks to answer requests.

The parent holds the listening socket, so that connections wait while a process is replaced. It has no threads and no
connections, because those do not survive a fork. What needs the database at the start runs in a fork of its own.

start:  load, prepare the database ──> fork the processes ──> tell `up`, make the welcome text
SIGHUP: load the new code in a trial ──> become it by exec, with the same process id, socket and processes
        ──> fork a process ──it serves──> stop one with the former code ──it ended──> fork the next
"""

import gc
import importlib
import io
import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from granian import _granian, _signals
from granian.http import HTTP1Settings, HTTP2Settings
from granian.log import LogLevels, configure_logging
from granian.net import SocketSpec  # type: ignore[attr-defined]

from config import env
from config.env import ConfigurationError, Environment
from config.runtime.supervisor import describe
from config.runtime.up import DRAIN_S, MAX_HEADER_BYTES, refuse_wrong_certificate

# granian declares parts of these without types, or with fewer parameters.
native: Any = _granian
signals: Any = _signals

# The system libraries of macOS do not survive a fork. There, each process loads the application by itself.
HAS_FORK = sys.platform != "darwin"
HANDLED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
LISTEN_BACKLOG = 1024
# A process that ended sooner is replaced only then.
MIN_LIFETIME_S = 1.0
# The application removes its secrets from the environment, and the new code needs them.
ENVIRON = dict(os.environ)

logger = logging.getLogger(__name__)


class Forked(Exception):
    """Raised in a forked process, which leaves the work of its parent and takes the role in the arguments."""


class Parent:
    """Keeps the processes running that answer requests."""

    def __init__(self, environment: Environment, report: int, listener: int, former: tuple[int, ...]) -> None:
        self.size = environment.web_processes
        self.report = report
        self.listener = listener
        self.former = list(former)  # processes with the code from before SIGHUP
        self.started_at: dict[int, float] = {}  # all others, also those that do not serve yet
        self.serving: set[int] = set()
        self.killed_at: dict[int, float] = {}  # those that were told to end
        self.retry_at = 0.0
        self.trial = 0
        self.received: set[int] = set()
        self.is_stopping = False
        self.signal_pipe = os.pipe()
        self.serving_pipe = os.pipe()  # a process writes its id when it serves
        for descriptor in (*self.signal_pipe, *self.serving_pipe):
            os.set_blocking(descriptor, False)

    def prepare(self) -> None:
        """Prepare the database; what prevents it goes to the report."""
        _, status = os.waitpid(self._start("prepare", self.report), 0)
        if status != 0:
            sys.exit(1)

    def run(self) -> None:
        signal.set_wakeup_fd(self.signal_pipe[1], warn_on_full_buffer=False)
        for number in HANDLED_SIGNALS:
            signal.signal(number, lambda received, _frame: self.received.add(received))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED_SIGNALS)
        while not self.is_stopping or self.started_at or self.former or self.killed_at:
            self._note_serving()
            self._handle_signals()
            if not self.is_stopping:
                self._replace()
            self._wait()
            for pid, code in ended_children():
                self._note_end(pid, code)

    def _wait(self) -> None:
        now = time.monotonic()
        due = [moment for moment in (self.retry_at, *self.killed_at.values()) if moment > now]
        select.select([self.signal_pipe[0], self.serving_pipe[0]], [], [], min(due) - now if due else None)
        read(self.signal_pipe[0])

    def _note_end(self, pid: int, code: int) -> None:
        if pid == self.trial:
            self.trial = 0
            if code != 0:
                logger.error("The new code does not load, so the web processes keep the former code.")
            elif not self.is_stopping:
                self._become_new_code()
        is_expected = self.killed_at.pop(pid, None) is not None
        is_ours = pid in self.started_at or pid in self.former
        if is_ours and not is_expected:
            logger.error("Web process %d ended (%s) and is replaced.", pid, describe(code))
        if pid in self.former:
            self.former.remove(pid)
        self.serving.discard(pid)
        if pid in self.started_at:
            self.retry_at = self.started_at.pop(pid) + MIN_LIFETIME_S
        if is_ours and not is_expected and code > 0 and not (self.serving or self.former):
            sys.exit(1)  # none can start; the supervisor tries again, with growing delays

    def _note_serving(self) -> None:
        self.serving |= self.started_at.keys() & set(map(int, read(self.serving_pipe[0]).split()))
        if self.report and self.serving:
            with suppress(OSError):  # the supervisor was killed
                os.write(self.report, b"serving\n")
            self._start("welcome", self.report)
            os.close(self.report)
            self.report = 0

    def _handle_signals(self) -> None:
        if self.received & {signal.SIGTERM, signal.SIGINT} and not self.is_stopping:
            self.is_stopping = True
            # Closed with the last process, so that new connections are refused instead of waiting.
            os.close(self.listener)
            for pid in (*self.former, *self.started_at):
                self._end(pid)
        is_replacing = self.trial or self.former or self.killed_at
        if signal.SIGHUP in self.received and not is_replacing:
            self.received.discard(signal.SIGHUP)
            self.trial = spawn("trial")
        for pid, moment in self.killed_at.items():
            if moment <= time.monotonic():
                os.kill(pid, signal.SIGKILL)

    def _end(self, pid: int) -> None:
        """Tell a process to end after its requests."""
        os.kill(pid, signal.SIGTERM)
        self.killed_at.setdefault(pid, time.monotonic() + DRAIN_S)

    def _replace(self) -> None:
        """Start what is missing, and replace the processes with the former code one after another."""
        while self._may_start() and len(self.started_at) + len(self.former) < self.size:
            self._start_serving()
        if self.former and not self.killed_at and self.serving == self.started_at.keys():
            if len(self.started_at) + len(self.former) > self.size:
                self._end(self.former.pop())
            elif self._may_start():
                self._start_serving()

    def _may_start(self) -> bool:
        return time.monotonic() >= self.retry_at

    def _start_serving(self) -> None:
        try:
            self.started_at[self._start("serve", self.listener, self.serving_pipe[1])] = time.monotonic()
        except OSError as error:
            logger.error("No web process could be started (%s).", error.strerror)
            self.retry_at = time.monotonic() + MIN_LIFETIME_S

    def _start(self, role: str, *descriptors: int) -> int:
        """Start a process that keeps these descriptors; returns its id."""
        if not HAS_FORK:
            return spawn(role, *descriptors)
        signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED_SIGNALS)
        try:
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                for number in HANDLED_SIGNALS:
                    signal.signal(number, signal.SIG_DFL)
                own = {*self.signal_pipe, *self.serving_pipe, self.listener, self.report} - {0}
                for descriptor in own.difference(descriptors):
                    os.close(descriptor)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED_SIGNALS)
        if pid == 0:
            raise Forked(role, *descriptors)
        return pid

    def _become_new_code(self) -> None:
        """Replace this program. Signals wait until the new one handles them."""
        signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED_SIGNALS)
        os.set_inheritable(self.listener, True)
        os.execve(sys.executable, command("parent", 0, self.listener, *self.former, *self.started_at), ENVIRON)


def ended_children() -> Iterator[tuple[int, int]]:
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            yield pid, os.waitstatus_to_exitcode(status)


def read(pipe: int) -> bytes:
    try:
        return os.read(pipe, 65536)
    except BlockingIOError:
        return b""


def command(role: str, *numbers: int) -> list[str]:
    return [sys.executable, "-m", "config.runtime.web_server", role, *map(str, numbers)]


def spawn(role: str, *descriptors: int) -> int:
    """Start a process that shares nothing but these descriptors."""
    for descriptor in descriptors:
        os.set_inheritable(descriptor, True)
    return os.posix_spawn(sys.executable, command(role, *descriptors), ENVIRON, setsigmask=[])


def load() -> Any:
    """The module with the application. By name, because the supervisor's package must not import Django."""
    return importlib.import_module("config.wsgi")


@contextmanager
def reporting(report: int) -> Iterator[None]:
    """Report why the service cannot start in one sentence."""
    try:
        yield
    except ConfigurationError as error:
        if report:
            os.write(report, f"{error}\n".encode())
            sys.exit(1)
        sys.exit(f"servicebase: {error}")


def parent(environment: Environment, report: int = 0, listener: int = 0, *former: int) -> None:
    """Takes the descriptor of the report at the start, and what is kept after SIGHUP."""
    if HAS_FORK:
        with reporting(report):
            load()
        gc.collect()
        gc.freeze()  # so that the collector does not write to pages that the processes share
    server = Parent(environment, report, listener, former)
    if report:
        server.prepare()
    if not listener:
        specification = SocketSpec(environment.host, environment.port, LISTEN_BACKLOG)
        server.listener = specification.build().get_fd()  # nobody else closes it
    server.run()


def prepare(_environment: Environment, report: int) -> None:
    with reporting(report):
        load().call_command("prepare", "--if-changed")


def welcome(environment: Environment, report: int) -> None:
    text = io.StringIO()
    load().call_command("welcome", environment.local_url, stdout=text)
    with open(report, "w", encoding="utf-8") as target:
        target.write(text.getvalue())


def trial(environment: Environment) -> None:
    with reporting(0):
        refuse_wrong_certificate(environment)
        load()


class Loop:
    """Takes the place of an event loop: granian's thread calls back by itself."""

    def call_soon(self, callback: Callable[..., Any], *arguments: Any, context: Any = None) -> None:
        callback(*arguments)

    call_soon_threadsafe = call_soon


def serve(environment: Environment, listener: int, serving_pipe: int) -> None:
    """Answer requests as granian does, but without an event loop: each request would wake its thread first."""
    gateway = load().gateway
    loop = Loop()
    scheduler = native.CallbackScheduler(loop, None, None, None, None)
    scheduler._schedule_fn = gateway.receive
    has_stopped = threading.Event()
    shutdown = signals.set_sync_signals()
    shutdown.add_cb(has_stopped.set)
    threads = (1, 512, 1, 30, max(1, LISTEN_BACKLOG // environment.web_processes))
    cert, key = environment.tls_cert, environment.tls_key
    tls: tuple[Any, ...] = (cert is not None, cert and str(cert), key and str(key), None, "tls1.3", None, [], False)
    http1 = HTTP1Settings(max_buffer_size=MAX_HEADER_BYTES)
    worker = native.RSGIWorker(
        1,
        (None, native.SocketHolder(listener, False, LISTEN_BACKLOG)),
        None,
        *threads,
        "1",
        http1,
        HTTP2Settings(),
        False,
        None,
        *tls,
        (None, None),
    )
    worker.serve_mtr(scheduler, loop, shutdown)
    with suppress(OSError):  # the parent has become new code and waits for other processes
        os.write(serving_pipe, b"%d\n" % os.getpid())
    os.close(serving_pipe)
    gateway.watch(has_stopped)


ROLES: dict[str, Callable[..., None]] = {
    "parent": parent, "prepare": prepare, "welcome": welcome, "trial": trial, "serve": serve,
}  # fmt: skip


def main(role: str, *words: str) -> None:
    configure_logging(LogLevels.warning)
    environment = env.current()  # before the application removes its secrets
    numbers = list(map(int, words))
    while True:
        try:
            return ROLES[role](environment, *numbers)
        except Forked as forked:
            role, *numbers = forked.args


if __name__ == "__main__":
    main(*sys.argv[1:])
