"""In charge of what the child may do once it begins to read a file: compute, and nothing else."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import threading
import time
from typing import Any

NOBODY = 65534
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
# By itself, should the one who would kill it be gone.
ALONE_S = 5
WATCHED_EVERY_S = 0.05
# What the parent takes for "too much memory", when the child had to end at once.
OUT_OF_MEMORY = 87


def confine(limits: dict[str, Any]) -> None:
    """From here on no file, socket or process can be opened, on any platform: there are no descriptors left.

    So every module and codec must have been imported before.
    """
    leave_network()
    signal.alarm(int(limits["wall_s"]) + ALONE_S)
    is_limited = limit(resource.RLIMIT_AS, limits["memory"])
    if not is_limited or sys.platform == "darwin":  # there the limit can be set and is not kept
        watch_memory(limits["memory"])
    become_nobody()
    for which, most in (
        (resource.RLIMIT_CPU, limits["cpu_s"]),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 3),
    ):
        limit(which, most)


def limit(which: int, most: int) -> bool:
    """Whether the platform has this limit."""
    try:
        resource.setrlimit(which, (most, most))
    except (ValueError, OSError):
        return False
    return True


def leave_network() -> None:
    """A network namespace of its own, with nothing in it, where Linux permits."""
    if not sys.platform.startswith("linux"):
        return
    try:
        wanted = CLONE_NEWNET if os.geteuid() == 0 else CLONE_NEWNET | CLONE_NEWUSER
        ctypes.CDLL(None, use_errno=True).unshare(wanted)
    except (OSError, AttributeError):
        pass  # no descriptor is left for a socket either


def become_nobody() -> None:
    if os.getuid() == 0:  # root is above most limits
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        except OSError:
            pass  # a container without such a user


def watch_memory(most: int) -> None:
    threading.Thread(target=end_above, args=(most,), daemon=True).start()


def end_above(most: int) -> None:
    unit = 1 if sys.platform == "darwin" else 1024
    while True:
        time.sleep(WATCHED_EVERY_S)
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit > most:
            os._exit(OUT_OF_MEMORY)
