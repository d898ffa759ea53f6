"""Helpers for programs that some tests need: the error if one is missing, and an installation lock."""

import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes.util import find_library
from pathlib import Path


class MissingProgram(Exception):
    """A program that tests need is missing; the message explains how to get it."""


def tesseract() -> str:
    """Returns the file of the library that reads scans."""
    library_file = find_library("tesseract")
    if library_file is None:
        raise MissingProgram("Tesseract is missing. On Debian, install it with: apt-get install tesseract-ocr")
    return library_file


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
