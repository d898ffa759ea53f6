"""Supervises child processes: start, prefixed logs, restart with back-off, ordered stop, no orphans.

waiting ──start──> running ──ends──> restart after 1, 2, 4 … 30 s
                      └──stop──> signalled ──timeout──> killed
"""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import IO

MAX_BACKOFF_S = 30.0
BACKOFF_RESET_AFTER_S = 60.0  # a child that ran this long starts again with the shortest delay
# Output is copied in blocks this far apart, because waking up for every line costs more than copying it.
COPY_INTERVAL_S = 0.02
BLOCK_BYTES = 64 * 1024
MAX_LINE_BYTES = 1024 * 1024
COLORS = ("36", "33", "35", "32", "34", "31")


@dataclass
class Child:
    """One program that the supervisor keeps running."""

    name: str
    command: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict)
    stop_signal: int = signal.SIGTERM
    pass_fds: tuple[int, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    relay_thread: threading.Thread | None = None
    started_at: float = 0.0
    restart_at: float = inf
    backoff_s: float = 1.0


@dataclass(frozen=True)
class ChildExit:
    child: Child
    process: subprocess.Popen[bytes]
    code: int


class Supervisor:
    """Owns the children of one `manage.py up`."""

    def __init__(self, lock: int, out: IO[str] = sys.stdout, *, has_prefix: bool = True) -> None:
        self.out = out
        self.has_prefix = has_prefix
        self.children: list[Child] = []
        self.is_stopping = False
        # SimpleQueue.put may be called from a signal handler.
        self.events: queue.SimpleQueue[ChildExit | signal.Signals] = queue.SimpleQueue()
        self.has_color = out.isatty()
        self.output_lock = threading.Lock()
        # Held here and by the reaper: the data folder stays locked until both have ended.
        self.lock = lock
        self.reaper_lock = threading.RLock()
        self.is_closing = False
        self.reaper: subprocess.Popen[str]
        self._start_reaper()
        self.reaper_thread = threading.Thread(target=self._watch_reaper, daemon=True)
        self.reaper_thread.start()

    def _start_reaper(self) -> None:
        """Start the reaper and report every process group that is running to it."""
        self.reaper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("reaper.py"))],
            stdin=subprocess.PIPE,
            text=True,
            bufsize=1,
            pass_fds=(self.lock,),
            start_new_session=True,
        )
        for child in self.children:
            if child.process is not None:
                self._tell_reaper(f"+ {child.process.pid} {int(child.stop_signal)}")

    def _watch_reaper(self) -> None:
        """Restart the reaper whenever it exits, even while children are still starting."""
        while True:
            code = self.reaper.wait()
            with self.reaper_lock:
                self._close_pipe()
                if self.is_closing:
                    return
                self._start_reaper()
            self.log(f"the reaper stopped ({describe_exit(code)}) and was restarted")

    def _close_pipe(self) -> None:
        assert self.reaper.stdin is not None
        with suppress(OSError):  # the reaper was killed, and the pipe is broken
            self.reaper.stdin.close()

    def log(self, text: str, name: str = "up") -> None:
        self._write([text], name)

    def _write(self, lines: Sequence[str], name: str) -> None:
        names = [child.name for child in self.children]
        prefix = f"{name:>8} | " if self.has_prefix else ""
        if self.has_prefix and self.has_color:
            color = COLORS[names.index(name) % len(COLORS)] if name in names else "1"
            prefix = f"\x1b[{color}m{prefix}\x1b[0m"
        with suppress(OSError, ValueError), self.output_lock:  # the reader may be gone; the children matter more
            self.out.write("".join(f"{prefix}{line}\n" for line in lines))
            self.out.flush()

    def install_signal_handlers(self) -> None:
        """Turn signals into events."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda received, _frame: self.events.put(signal.Signals(received)))

    def start(self, child: Child) -> subprocess.Popen[bytes]:
        if child not in self.children:
            self.children.append(child)
        child.process = subprocess.Popen(
            child.command,
            env={**os.environ, **child.environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=child.pass_fds,
            start_new_session=True,  # Ctrl-C reaches only this process, and the group can be killed as a whole
        )
        child.started_at, child.restart_at = time.monotonic(), inf
        self._tell_reaper(f"+ {child.process.pid} {int(child.stop_signal)}")
        child.relay_thread = threading.Thread(target=self._relay, args=(child, child.process), daemon=True)
        child.relay_thread.start()
        return child.process

    def _tell_reaper(self, line: str) -> None:
        with self.reaper_lock, suppress(OSError):  # it was killed; the next one gets the whole list
            assert self.reaper.stdin is not None
            self.reaper.stdin.write(line + "\n")

    def _relay(self, child: Child, process: subprocess.Popen[bytes]) -> None:
        """Copy a child's output until all processes that write to it have ended, and report the child's exit."""
        waiter = threading.Thread(
            target=lambda: self.events.put(ChildExit(child, process, process.wait())), daemon=True
        )
        waiter.start()
        assert process.stdout is not None
        partial_line = b""
        with process.stdout as pipe:
            while block := os.read(pipe.fileno(), BLOCK_BYTES):
                *lines, partial_line = (partial_line + block).split(b"\n")
                if len(partial_line) > MAX_LINE_BYTES:
                    lines, partial_line = [*lines, partial_line], b""
                self._write([line.decode(errors="replace") for line in lines], child.name)
                time.sleep(COPY_INTERVAL_S)
        if partial_line:
            self.log(partial_line.decode(errors="replace"), child.name)

    def watch(self) -> str:
        """Keep everything running until a signal arrives; return the reason to stop."""
        while True:
            for child in self.children:
                if child.restart_at <= time.monotonic():
                    self.start(child)
            restart_at = min((child.restart_at for child in self.children), default=inf)
            try:
                event = self.events.get(timeout=None if restart_at == inf else max(0.0, restart_at - time.monotonic()))
            except queue.Empty:
                continue
            if event is signal.SIGHUP:
                self._reload_web()
            elif isinstance(event, signal.Signals):
                self.is_stopping = True
                return "interrupt" if event is signal.SIGINT else "drain"
            elif event.child.process is event.process:
                self._plan_restart(event)

    def _reload_web(self) -> None:
        for child in self.children:
            if child.name == "web" and child.process is not None:
                self.log("SIGHUP: replacing the web processes one at a time")
                child.process.send_signal(signal.SIGHUP)

    def _plan_restart(self, event: ChildExit) -> None:
        child = event.child
        self.kill_group(event.process.pid)
        if time.monotonic() - child.started_at > BACKOFF_RESET_AFTER_S:
            child.backoff_s = 1.0
        self.log(f"{child.name} stopped ({describe_exit(event.code)}) and will restart in {child.backoff_s:.0f} s")
        child.restart_at = time.monotonic() + child.backoff_s
        child.backoff_s = min(MAX_BACKOFF_S, child.backoff_s * 2)

    def kill_group(self, group: int) -> None:
        """Kill the remaining processes of a dead child's group, such as workers that still hold its port."""
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        self._tell_reaper(f"- {group}")

    def stop(self, steps: Sequence[Sequence[str]], timeout_of: Callable[[str], float]) -> None:
        """Stop the children step by step; those named in one step stop together."""
        for step in steps:
            running_children = [
                (child, child.process)
                for child in self.children
                if child.name in step and child.process is not None and child.process.poll() is None
            ]
            for child, process in running_children:
                process.send_signal(child.stop_signal)
            deadline = time.monotonic() + max((timeout_of(child.name) for child, _ in running_children), default=0)
            for child, process in running_children:
                try:
                    process.wait(max(0.0, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    self.log(f"{child.name} did not stop in time and was killed")
                    self.kill_group(process.pid)  # now, because it must not run during the next step
        for child in self.children:
            if child.process is not None and child.relay_thread is not None:
                self.kill_group(child.process.pid)
                child.process.wait()
                child.relay_thread.join(1.0)  # until its last lines are copied

    def close(self) -> None:
        """Stop the reaper and release the data folder."""
        with self.reaper_lock:
            self.is_closing = True
            self._close_pipe()
        self.reaper_thread.join()
        os.close(self.lock)


def describe_exit(code: int) -> str:
    """
    >>> describe_exit(-9), describe_exit(3)
    ('killed by SIGKILL', 'exit code 3')
    """
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
