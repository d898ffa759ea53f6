"""In charge of the child process that reads a file: started with nothing of ours, limited, killed with its group."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from math import inf
from pathlib import Path

from .parsers.common.failures import DAMAGED
from .results import MEGABYTE, Limits, Unreadable

PROGRAM = Path(__file__).parent / "parsers" / "program.py"
# Said by the child when not even an answer fits into its memory (`parsers.confinement`).
OUT_OF_MEMORY = 87
LENGTH = 8
# A character takes six bytes at most in JSON; headings and pages are limited apart.
BYTES_PER_CHARACTER = 6
REST = 16 * MEGABYTE
# Ended for time: by us, by the limit on CPU, by its own clock. By memory: what libraries do who cannot go on.
OF_TIME = (signal.SIGKILL, signal.SIGXCPU, signal.SIGALRM)
OF_MEMORY = (signal.SIGABRT, signal.SIGTRAP, signal.SIGILL)
# Who had less of a processor than this, while its time went by, was kept from working by others.
LEAST_SHARE = 0.3


def run(parser: str, data: bytes, limits: Limits, *, deadline: float) -> bytes:
    """The answer of one parser about one file, as it wrote it; or Unreadable when it did not come to an answer."""
    process = start(parser)
    began = time.monotonic()
    try:
        with killed_at(process, deadline) as is_late:
            output = talk(process, data, limits)
            # Before it is waited for: nothing is known of it afterwards.
            is_starved = cpu_s(process.pid) < (time.monotonic() - began) * LEAST_SHARE
            code = process.wait() if output is None else 0
    finally:
        kill(process)
    if output is not None:
        return output
    if is_late.is_set() or -code in OF_TIME:
        raise Unreadable("limit_time", "Reading the file takes too long.", may_pass=is_late.is_set() and is_starved)
    if -code in OF_MEMORY or code == OUT_OF_MEMORY:
        raise Unreadable("limit_memory", "Reading the file needs too much memory.")
    raise Unreadable("damaged", DAMAGED)


def start(parser: str) -> subprocess.Popen[bytes]:
    """-I -S and an empty environment: no folder, variable or secret of the product's comes along."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", str(PROGRAM), *package_folders(), parser],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        cwd="/",
        start_new_session=True,
    )


def package_folders() -> list[str]:
    """Where the libraries are."""
    paths = sysconfig.get_paths()
    return sorted({paths["purelib"], paths["platlib"]})


def cpu_s(pid: int) -> float:
    """Processor time of a child that is not waited for yet; where the system does not tell, as if it had it all."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return inf
    # The name before it, in brackets, may hold anything.
    user, system = state.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def talk(process: subprocess.Popen[bytes], data: bytes, limits: Limits) -> bytes | None:
    """Give it the file, read its answer as far as an answer may go; None when it ended before."""
    assert process.stdin is not None and process.stdout is not None
    try:
        with process.stdin as stdin:
            stdin.write(json.dumps(asdict(limits)).encode() + b"\n")
            stdin.write(data)
    except BrokenPipeError:
        return None
    length = int.from_bytes(process.stdout.read(LENGTH), "big")
    if length > limits.max_characters * BYTES_PER_CHARACTER + REST:
        raise Unreadable("limit_characters", "The file holds more text than is accepted.")
    output = process.stdout.read(length)
    return output if output and len(output) == length else None


def kill(process: subprocess.Popen[bytes]) -> None:
    """All of its group; it is not waited for before, so its number cannot be another's."""
    if process.returncode is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            process.kill()  # it ended, or has not made its group yet
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None and not pipe.closed:
            try:
                pipe.close()
            except BrokenPipeError:
                pass


@contextmanager
def killed_at(process: subprocess.Popen[bytes], deadline: float) -> Iterator[threading.Event]:
    is_late = threading.Event()

    def stop() -> None:
        is_late.set()
        process.kill()

    clock = threading.Timer(max(0.0, deadline - time.monotonic()), stop)
    clock.daemon = True
    clock.start()
    try:
        yield is_late
    finally:
        clock.cancel()
