"""The parent's side of the sandbox: starts the child, sends the input, reads the output and enforces the deadline."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from math import inf
from pathlib import Path

from . import child

CHILD = Path(child.__file__)
# The signals with which libraries abort a process that is out of memory.
MEMORY_SIGNALS = (signal.SIGABRT, signal.SIGTRAP, signal.SIGILL)
TIME_SIGNALS = (signal.SIGKILL, signal.SIGXCPU, signal.SIGALRM)
# A child with a smaller share of a processor was starved by other processes.
MIN_CPU_SHARE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """The limits of a child. `run_s` starts when the child is ready."""

    memory: int
    cpu_s: int
    run_s: float
    output: int


class Ending(Enum):
    DONE = "done"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    TOO_LARGE = "output too large"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a run ended. `was_starved`: it was killed after hardly any CPU time, so it may succeed later."""

    ending: Ending
    output: bytes = b""
    was_ready: bool = True
    was_killed: bool = False
    was_starved: bool = False
    run_s: float = 0.0
    cpu_s: float = 0.0


def run(program: Path, arguments: Sequence[str], data: bytes, limits: RunLimits, *, deadline: float = inf) -> Result:
    """Runs the program on the data. `deadline` (monotonic clock) also bounds the start of the interpreter.

    Raises OSError if the machine has no memory or process for a child.
    """
    process = start(program, arguments, limits)
    began = time.monotonic()
    output: bytes | None = None
    is_ready = is_too_large = False
    try:
        with killed_at(process, deadline) as killed:
            is_ready = read(process, len(child.READY)) == child.READY
            if not is_ready:
                wait_for_exit(process)
        if is_ready:
            began = time.monotonic()
            with killed_at(process, min(deadline, began + limits.run_s)) as killed:
                length, output = exchange(process, data, limits.output)
                is_too_large = length > limits.output
                if output is None and not is_too_large:
                    wait_for_exit(process)
    finally:
        run_s = time.monotonic() - began
        code, cpu_s = kill(process)
    if output is not None:
        return Result(ending=Ending.DONE, output=output, run_s=run_s, cpu_s=cpu_s)
    return Result(
        ending=Ending.TOO_LARGE if is_too_large else ending_of(code, killed.is_set()),
        was_ready=is_ready,
        was_killed=killed.is_set(),
        was_starved=killed.is_set() and cpu_s < run_s * MIN_CPU_SHARE,
        run_s=run_s,
        cpu_s=cpu_s,
    )


def start(program: Path, arguments: Sequence[str], limits: RunLimits) -> subprocess.Popen[bytes]:
    """-I, -S and an empty environment keep folders, variables and secrets of the product from the child."""
    bounds = json.dumps({"memory": limits.memory, "cpu_s": limits.cpu_s, "run_s": limits.run_s})
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", str(CHILD), str(program), bounds, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        cwd="/",
        start_new_session=True,
    )


def exchange(process: subprocess.Popen[bytes], data: bytes, most: int) -> tuple[int, bytes | None]:
    """Writes the input and reads the output, with its announced length; None if the output is not complete."""
    assert process.stdin is not None
    try:
        with process.stdin as stdin:
            stdin.write(data)
    except BrokenPipeError:
        return 0, None
    length = int.from_bytes(read(process, child.LENGTH_BYTES), "big")
    if length > most:
        return length, None
    output = read(process, length)
    return length, output if output and len(output) == length else None


def read(process: subprocess.Popen[bytes], count: int) -> bytes:
    assert process.stdout is not None
    return process.stdout.read(count)


def ending_of(code: int, was_killed: bool) -> Ending:
    if was_killed or -code in TIME_SIGNALS:
        return Ending.TIMED_OUT
    if -code in MEMORY_SIGNALS or code == child.OUT_OF_MEMORY:
        return Ending.OUT_OF_MEMORY
    return Ending.FAILED


def wait_for_exit(process: subprocess.Popen[bytes]) -> None:
    """Waits for the child to end, for its exit code, without reaping it, so that its process ID is not reused."""
    if hasattr(os, "waitid"):
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def kill(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    """Kills the child and its group; returns the exit code and the CPU time that it used."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        os.kill(process.pid, signal.SIGKILL)  # it has ended or has not created its group yet
    # Not `process.wait`, which would discard the CPU time.
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                pass
    return process.returncode, usage.ru_utime + usage.ru_stime


@contextmanager
def killed_at(process: subprocess.Popen[bytes], deadline: float) -> Iterator[threading.Event]:
    """Kills the child at the deadline; the event is set if that happened."""
    killed = threading.Event()

    def stop() -> None:
        killed.set()
        os.kill(process.pid, signal.SIGKILL)

    timer = threading.Timer(min(max(0.0, deadline - time.monotonic()), threading.TIMEOUT_MAX), stop)
    timer.daemon = True
    timer.start()
    try:
        yield killed
    finally:
        timer.cancel()
        timer.join()  # otherwise it could kill another process that reuses this ID
