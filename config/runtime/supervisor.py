"""Supervises child processes: start, prefixed logs, restart with back-off, ordered stop, no orphans.

waiting ──start──> running ──ends──> restart after 1, 2, 4 … 30 s   (or, for PostgreSQL: everything stops)
                      └──stop──> asked ──patience over──> killed
"""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

LONGEST_BACKOFF_S = 30.0
STEADY_AFTER_S = 60.0  # a child that ran this long starts its back-off anew
COLOURS = ("36", "33", "35", "32", "34", "31")


@dataclass
class Child:
    """One program that the supervisor keeps running."""

    name: str
    command: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=dict)
    stop_signal: int = signal.SIGTERM
    is_vital: bool = False  # when it ends by itself, everything stops
    process: subprocess.Popen[str] | None = None
    started_at: float = 0.0
    backoff_s: float = 1.0


@dataclass(frozen=True)
class Ended:
    child: Child
    process: subprocess.Popen[str]
    code: int


@dataclass(frozen=True)
class ReaperEnded:
    process: subprocess.Popen[str]
    code: int


@dataclass(frozen=True)
class Asked:
    signal: int


class Supervisor:
    """Owns the children of one `manage.py up`."""

    def __init__(self, claim: int, out: IO[str] = sys.stdout, *, has_prefix: bool = True) -> None:
        self.out = out
        self.has_prefix = has_prefix
        self.children: list[Child] = []
        self.restarts: dict[str, float] = {}
        self.is_stopping = False
        # SimpleQueue.put may be called from a signal handler.
        self.events: queue.SimpleQueue[Ended | ReaperEnded | Asked] = queue.SimpleQueue()
        self.has_colour = out.isatty()
        self.writing = threading.Lock()
        # Held here and by the reaper: the data folder stays locked until both are gone.
        self.claim = claim
        self.reaper = self._start_reaper()

    def _start_reaper(self) -> subprocess.Popen[str]:
        """Start the reaper and tell it of every process group that runs already."""
        reaper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("reaper.py"))],
            stdin=subprocess.PIPE,
            text=True,
            bufsize=1,
            pass_fds=(self.claim,),
            start_new_session=True,
        )
        threading.Thread(target=lambda: self.events.put(ReaperEnded(reaper, reaper.wait())), daemon=True).start()
        self.reaper = reaper
        for child in self.children:
            if child.process is not None:
                self._announce(child, child.process)
        return reaper

    def say(self, text: str, name: str = "up") -> None:
        names = [child.name for child in self.children]
        prefix = f"{name:>8} | " if self.has_prefix else ""
        if self.has_prefix and self.has_colour:
            colour = COLOURS[names.index(name) % len(COLOURS)] if name in names else "1"
            prefix = f"\x1b[{colour}m{prefix}\x1b[0m"
        try:
            with self.writing:
                print(prefix + text, file=self.out, flush=True)
        except (OSError, ValueError):
            pass  # nobody reads any more; the children matter more than their logs

    def listen(self) -> None:
        """From here on signals become events."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda received, _frame: self.events.put(Asked(received)))

    def start(self, child: Child) -> subprocess.Popen[str]:
        if child not in self.children:
            self.children.append(child)
        child.process = subprocess.Popen(
            child.command,
            env={**os.environ, **child.environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C reaches us alone, and a group can be killed as a whole
        )
        child.started_at = time.monotonic()
        self._announce(child, child.process)
        threading.Thread(target=self._relay, args=(child, child.process), daemon=True).start()
        return child.process

    def _announce(self, child: Child, process: subprocess.Popen[str]) -> None:
        self._tell_reaper(f"+ {process.pid} {int(child.stop_signal)}")

    def _tell_reaper(self, line: str) -> None:
        try:
            assert self.reaper.stdin is not None
            self.reaper.stdin.write(line + "\n")
        except (BrokenPipeError, OSError):
            pass  # it was killed; its successor is told everything

    def _relay(self, child: Child, process: subprocess.Popen[str]) -> None:
        """Copy a child's lines until the last holder of its output ends, then report its end."""
        waiter = threading.Thread(target=lambda: self.events.put(Ended(child, process, process.wait())), daemon=True)
        waiter.start()
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self.say(line.rstrip("\n"), child.name)

    def watch(self) -> tuple[int, str]:
        """Keep everything running until a signal or the end of a vital child; returns exit code and reason."""
        while True:
            for child in [child for child in self.children if self.restarts.get(child.name, 0) <= time.monotonic()]:
                if self.restarts.pop(child.name, None) is not None:
                    self.start(child)
            due = min(self.restarts.values(), default=None)
            try:
                event = self.events.get(timeout=None if due is None else max(0.0, due - time.monotonic()))
            except queue.Empty:
                continue
            if isinstance(event, Asked):
                if event.signal == signal.SIGHUP:
                    self._hand_on_reload()
                    continue
                self.is_stopping = True
                return 0, "interrupt" if event.signal == signal.SIGINT else "drain"
            if isinstance(event, ReaperEnded):
                if event.process is self.reaper:
                    self.say(f"the reaper ended ({describe(event.code)}); it starts again")
                    self._start_reaper()
                continue
            if event.child.process is event.process and self._ended(event):
                return 1, f"{event.child.name} ended"

    def _hand_on_reload(self) -> None:
        for child in self.children:
            if child.name == "web" and child.process is not None:
                self.say("SIGHUP: web processes are replaced one after another")
                child.process.send_signal(signal.SIGHUP)

    def _ended(self, event: Ended) -> bool:
        """Plan the restart of a child that ended by itself; True when all must stop."""
        child = event.child
        self.sweep(event.process.pid)
        if child.is_vital:
            self.say(f"{child.name} ended ({describe(event.code)}); everything stops. Start again with ./run")
            return True
        if time.monotonic() - child.started_at > STEADY_AFTER_S:
            child.backoff_s = 1.0
        self.say(f"{child.name} ended ({describe(event.code)}); it starts again in {child.backoff_s:.0f} s")
        self.restarts[child.name] = time.monotonic() + child.backoff_s
        child.backoff_s = min(LONGEST_BACKOFF_S, child.backoff_s * 2)
        return False

    def sweep(self, group: int) -> None:
        """End what a dead child left of its process group: workers that still hold its port, for instance."""
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._tell_reaper(f"- {group}")

    def stop(self, steps: Sequence[Sequence[str]], patience_s: Callable[[str], float]) -> None:
        """Stop children step by step; those named in one step stop together."""
        for step in steps:
            running = [
                (child, child.process)
                for child in self.children
                if child.name in step and child.process is not None and child.process.poll() is None
            ]
            for child, process in running:
                process.send_signal(child.stop_signal)
            until = time.monotonic() + max((patience_s(child.name) for child, _ in running), default=0)
            for child, process in running:
                try:
                    process.wait(max(0.0, until - time.monotonic()))
                except subprocess.TimeoutExpired:
                    self.say(f"{child.name} did not stop in time and is killed")
                    self.sweep(process.pid)  # now: the next step must not find it at work
        for child in self.children:
            if child.process is not None:
                self.sweep(child.process.pid)
                child.process.wait()

    def close(self) -> None:
        """End the reaper and release the data folder."""
        if self.reaper.stdin is not None:
            try:
                self.reaper.stdin.close()
            except BrokenPipeError:
                pass  # it was killed
        self.reaper.wait()
        os.close(self.claim)


def describe(code: int) -> str:
    """
    >>> describe(-9), describe(3)
    ('killed by SIGKILL', 'exit code 3')
    """
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
