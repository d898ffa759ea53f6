"""The parent of the web processes: forks the processes that serve requests, and replaces them.

It holds the listening socket, so that connections wait while a process is replaced. It has no threads and no
connections, because those do not survive a fork. Work at startup that needs the database runs in a separate fork.

start:  load, prepare the database ──> fork the processes ──> report to `up`, create the welcome text
SIGHUP: load the new code in a trial ──> become it by exec, with the same process id, socket and processes
        ──> fork a process ──it serves──> stop one with the former code ──it ended──> fork the next
"""

import logging
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import inf

from config.env import Environment
from config.runtime.supervisor import describe_exit
from config.runtime.up import DRAIN_S

# The system libraries of macOS do not survive a fork. There, each process loads the application by itself.
HAS_FORK = sys.platform != "darwin"
HANDLED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
# A process that ended sooner is replaced only after this time.
MIN_LIFETIME_S = 1.0
# The application removes its secrets from the environment, and the new code needs them.
ENVIRON = dict(os.environ)

logger = logging.getLogger(__name__)


class ForkedChild(Exception):
    """Raised in a forked process to leave the parent's code and run the role in the arguments."""


@dataclass
class WebProcess:
    pid: int
    started_at: float = 0.0
    runs_old_code: bool = False  # the code from before SIGHUP
    is_serving: bool = False
    kill_at: float = inf  # set when it is told to end

    def terminate(self) -> None:
        """Make the process end after its current requests."""
        os.kill(self.pid, signal.SIGTERM)
        self.kill_at = time.monotonic() + DRAIN_S


class Parent:
    def __init__(self, environment: Environment, report_fd: int, listener_fd: int, old_pids: tuple[int, ...]) -> None:
        self.process_count = environment.web_processes
        self.report_fd = report_fd
        if report_fd:
            os.set_inheritable(report_fd, False)  # the supervisor reads until all processes have closed it
        self.listener_fd = listener_fd
        self.processes = {pid: WebProcess(pid, runs_old_code=True, is_serving=True) for pid in old_pids}
        self.retry_at = 0.0
        self.trial_pid = 0
        self.received_signals: set[int] = set()
        self.is_stopping = False
        self.signal_pipe = os.pipe()
        self.serving_pipe = os.pipe()  # a process writes its id when it starts to serve
        for descriptor in (*self.signal_pipe, *self.serving_pipe):
            os.set_blocking(descriptor, False)

    def prepare(self) -> None:
        """Prepare the database; an error is written to the report."""
        _, status = os.waitpid(self._start("prepare", self.report_fd), 0)
        if status != 0:
            sys.exit(1)

    def run(self) -> None:
        signal.set_wakeup_fd(self.signal_pipe[1], warn_on_full_buffer=False)
        for number in HANDLED_SIGNALS:
            signal.signal(number, lambda received, _frame: self.received_signals.add(received))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED_SIGNALS)
        while not self.is_stopping or self.processes:
            self._update_serving()
            self._handle_signals()
            if not self.is_stopping:
                self._replace_processes()
            self._wait()
            for pid, code in ended_children():
                self._handle_exit(pid, code)

    def _wait(self) -> None:
        now = time.monotonic()
        wake_times = (self.retry_at, *(process.kill_at for process in self.processes.values()))
        wake_at = min((wake_time for wake_time in wake_times if wake_time > now), default=inf)
        select.select([self.signal_pipe[0], self.serving_pipe[0]], [], [], None if wake_at == inf else wake_at - now)
        read(self.signal_pipe[0])

    def _running_processes(self) -> list[WebProcess]:
        """The processes that were not told to end."""
        return [process for process in self.processes.values() if process.kill_at == inf]

    def _handle_exit(self, pid: int, code: int) -> None:
        if pid == self.trial_pid:
            self.trial_pid = 0
            if code != 0:
                logger.error("The new code failed to load. The web processes continue to run the previous code.")
            elif not self.is_stopping:
                self._exec_new_code()
        process = self.processes.pop(pid, None)
        if process is None:
            return
        self.retry_at = max(self.retry_at, process.started_at + MIN_LIFETIME_S)
        if process.kill_at == inf:
            logger.error("Web process %d stopped (%s) and will be replaced.", pid, describe_exit(code))
            if code > 0 and not any(other.is_serving for other in self._running_processes()):
                sys.exit(1)  # none can start; the supervisor tries again, with growing delays

    def _update_serving(self) -> None:
        for pid in map(int, read(self.serving_pipe[0]).split()):
            if pid in self.processes:
                self.processes[pid].is_serving = True
        if self.report_fd and any(process.is_serving for process in self.processes.values()):
            with suppress(OSError):  # the supervisor was killed
                os.write(self.report_fd, b"serving\n")
            self._start("welcome", self.report_fd)
            os.close(self.report_fd)
            self.report_fd = 0

    def _handle_signals(self) -> None:
        if self.received_signals & {signal.SIGTERM, signal.SIGINT} and not self.is_stopping:
            self.is_stopping = True
            # Closed with the last process, so that new connections are refused instead of waiting.
            os.close(self.listener_fd)
            for process in self._running_processes():
                process.terminate()
        is_busy = self.is_stopping or self.trial_pid or any(child.runs_old_code for child in self.processes.values())
        if signal.SIGHUP in self.received_signals and not is_busy:
            self.received_signals.discard(signal.SIGHUP)
            self.trial_pid = spawn("trial")
        for process in self.processes.values():
            if process.kill_at <= time.monotonic():
                os.kill(process.pid, signal.SIGKILL)

    def _replace_processes(self) -> None:
        """Start missing processes, and replace those with the old code one after another."""
        running = self._running_processes()
        old_processes = [process for process in running if process.runs_old_code]
        is_settled = len(running) == len(self.processes) and all(process.is_serving for process in running)
        if old_processes and is_settled and len(running) > self.process_count:
            old_processes[-1].terminate()
            return
        target_count = self.process_count + 1 if old_processes and is_settled else self.process_count
        while len(self._running_processes()) < target_count and time.monotonic() >= self.retry_at:
            self._start_serving()

    def _start_serving(self) -> None:
        try:
            pid = self._start("serve", self.listener_fd, self.serving_pipe[1])
        except OSError as error:
            logger.error("No web process could be started (%s).", error.strerror)
            self.retry_at = time.monotonic() + MIN_LIFETIME_S
        else:
            self.processes[pid] = WebProcess(pid, time.monotonic())

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
                own_descriptors = {*self.signal_pipe, *self.serving_pipe, self.listener_fd, self.report_fd} - {0}
                for descriptor in own_descriptors.difference(descriptors):
                    os.close(descriptor)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED_SIGNALS)
        if pid == 0:
            raise ForkedChild(role, *descriptors)
        return pid

    def _exec_new_code(self) -> None:
        """Replace this program with the new code. Signals are blocked until it handles them."""
        signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED_SIGNALS)
        os.set_inheritable(self.listener_fd, True)
        os.execve(sys.executable, command("parent", 0, self.listener_fd, *self.processes), ENVIRON)


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
    pid = os.posix_spawn(sys.executable, command(role, *descriptors), ENVIRON, setsigmask=[])
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return pid
