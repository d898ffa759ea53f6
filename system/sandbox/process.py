"""The parent's side of the sandbox: starts the child, sends the input, reads the output and enforces the deadline."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from math import inf
from pathlib import Path
from typing import IO

from . import child

CHILD_SCRIPT = Path(child.__file__)
# The signals with which libraries abort a process that is out of memory.
MEMORY_SIGNALS = (signal.SIGABRT, signal.SIGTRAP, signal.SIGILL)
TIME_SIGNALS = (signal.SIGKILL, signal.SIGXCPU, signal.SIGALRM)
# A child with a smaller share of a processor was starved of CPU time by other processes.
MIN_CPU_SHARE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """The limits of a child. `run_s` starts when the child is ready."""

    memory_bytes: int
    cpu_s: int
    run_s: float
    output_bytes: int


class RunStatus(Enum):
    DONE = "done"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    TOO_LARGE = "output too large"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The result of a run. `was_starved` means that it was killed after hardly any CPU time, so a retry may succeed."""

    status: RunStatus
    output: bytes = b""
    was_ready: bool = True
    was_killed: bool = False
    was_starved: bool = False
    run_s: float = 0.0
    cpu_s: float = 0.0


class RunFailed(Exception):
    """A streaming program did not finish."""

    def __init__(self, status: RunStatus) -> None:
        super().__init__(status.value)
        self.status = status


def run(program: Path, arguments: Sequence[str], data: bytes, limits: RunLimits, *, deadline: float = inf) -> RunResult:
    """Runs the program on the data. `deadline` (monotonic clock) also bounds the start of the interpreter.

    Raises OSError if the machine has no memory or process for a child.
    """
    process = start(program, arguments, limits)
    started_at = time.monotonic()
    output: bytes | None = None
    is_ready = is_too_large = False
    try:
        with kill_at(process, deadline) as killed_event:
            is_ready = read(process, len(child.READY)) == child.READY
            if not is_ready:
                wait_for_exit(process)
        if is_ready:
            started_at = time.monotonic()
            with kill_at(process, min(deadline, started_at + limits.run_s)) as killed_event:
                length, output = exchange(process, data, limits.output_bytes)
                is_too_large = length > limits.output_bytes
                if output is None and not is_too_large:
                    wait_for_exit(process)
    finally:
        run_s = time.monotonic() - started_at
        exit_code, cpu_s = kill(process)
    if output is not None:
        return RunResult(status=RunStatus.DONE, output=output, run_s=run_s, cpu_s=cpu_s)
    return RunResult(
        status=RunStatus.TOO_LARGE if is_too_large else status_of(exit_code, killed_event.is_set()),
        was_ready=is_ready,
        was_killed=killed_event.is_set(),
        was_starved=killed_event.is_set() and cpu_s < run_s * MIN_CPU_SHARE,
        run_s=run_s,
        cpu_s=cpu_s,
    )


def stream(program: Path, arguments: Sequence[str], file: IO[bytes], limits: RunLimits) -> Iterator[bytes]:
    """Runs a streaming program on a file, and yields the parts of its output, each of at most `output_bytes`.

    Raises RunFailed after the last part if the program did not finish.
    """
    file.seek(0)
    process = start(program, arguments, limits, stdin=file.fileno())
    is_too_large = False
    try:
        with kill_at(process, time.monotonic() + limits.run_s) as killed_event:
            is_ready = read(process, len(child.READY)) == child.READY
            while is_ready and len(header := read(process, child.LENGTH_BYTES)) == child.LENGTH_BYTES:
                length = int.from_bytes(header, "big")
                if not length:
                    return
                is_too_large = length > limits.output_bytes
                part = b"" if is_too_large else read(process, length)
                if len(part) < length:
                    break
                yield part
            if not is_too_large:
                wait_for_exit(process)
    finally:
        exit_code, _ = kill(process)
    raise RunFailed(RunStatus.TOO_LARGE if is_too_large else status_of(exit_code, killed_event.is_set()))


def start(
    program: Path, arguments: Sequence[str], limits: RunLimits, stdin: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """Start the child. -I, -S and an empty environment hide the product's folders, variables and secrets."""
    limits_json = json.dumps({"memory": limits.memory_bytes, "cpu_s": limits.cpu_s, "run_s": limits.run_s})
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", str(CHILD_SCRIPT), str(program), limits_json, *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        cwd="/",
        start_new_session=True,
    )


def exchange(process: subprocess.Popen[bytes], data: bytes, max_bytes: int) -> tuple[int, bytes | None]:
    """Write the input, and read the length and the bytes of the output; None if the output is incomplete."""
    assert process.stdin is not None
    try:
        with process.stdin as stdin:
            stdin.write(data)
    except BrokenPipeError:
        return 0, None
    length = int.from_bytes(read(process, child.LENGTH_BYTES), "big")
    if length > max_bytes:
        return length, None
    output = read(process, length)
    return length, output if output and len(output) == length else None


def read(process: subprocess.Popen[bytes], count: int) -> bytes:
    assert process.stdout is not None
    return process.stdout.read(count)


def status_of(exit_code: int, was_killed: bool) -> RunStatus:
    if was_killed or -exit_code in TIME_SIGNALS:
        return RunStatus.TIMED_OUT
    if -exit_code in MEMORY_SIGNALS or exit_code == child.OUT_OF_MEMORY_EXIT_CODE:
        return RunStatus.OUT_OF_MEMORY
    return RunStatus.FAILED


def wait_for_exit(process: subprocess.Popen[bytes]) -> None:
    """Wait until the child has an exit code, without reaping it, so that its process ID is not reused."""
    if hasattr(os, "waitid"):
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def kill(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    """Kill the child and its group. Returns its exit code and CPU time."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        os.kill(process.pid, signal.SIGKILL)  # it has ended or has not created its group yet
    # Not `process.wait`, which would discard the CPU time.
    _, wait_status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(wait_status)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
    return process.returncode, usage.ru_utime + usage.ru_stime


@contextmanager
def kill_at(process: subprocess.Popen[bytes], deadline: float) -> Iterator[threading.Event]:
    """Kills the child at the deadline; the event is set if that happened."""
    killed_event = threading.Event()

    def stop() -> None:
        killed_event.set()
        os.kill(process.pid, signal.SIGKILL)

    timer = threading.Timer(min(max(0.0, deadline - time.monotonic()), threading.TIMEOUT_MAX), stop)
    timer.daemon = True
    timer.start()
    try:
        yield killed_event
    finally:
        timer.cancel()
        timer.join()  # otherwise it could kill another process that reuses this ID
