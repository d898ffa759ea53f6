"""Helpers for programs that some tests need: the error if one is missing, and an installation lock."""

import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class MissingProgram(Exception):
    """A program that tests need is missing; the message explains how to get it."""


@contextmanager
def installation_lock(name: str) -> Iterator[None]:
    """Lets one test process install at a time; the others wait and then find the program."""
    with (Path(tempfile.gettempdir()) / f"servicebase-{os.getuid()}-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def command_succeeds(command: Sequence[str], timeout_s: float = 600) -> bool:
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
