"""Programs that some tests need: the message if one is missing, and one installation at a time."""

import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class ProgramMissing(Exception):
    """One sentence that says how to get it."""


@contextmanager
def installation(name: str) -> Iterator[None]:
    """Test processes take turns; the second finds what the first one installed."""
    with (Path(tempfile.gettempdir()) / f"servicebase-{os.getuid()}-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def succeeds(command: Sequence[str], timeout_s: float = 600) -> bool:
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
