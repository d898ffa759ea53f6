"""The child process: loads a program, drops all privileges, then reads the input and writes the output.

Arguments: the program's file, the limits as JSON, and the program's own arguments. The program is a module with
`prepare(arguments)`, which imports what it needs and returns a function from input to output. If the module sets
`IS_STREAMING`, the function takes the input file instead, which is seekable, and yields non-empty parts of the output.
Standard library only: the product cannot be imported here.
"""

import ctypes
import importlib.util
import json
import os
import resource
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import Any

NOBODY_UID = 65534
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
# Seconds after which the child ends itself if its parent is gone.
ORPHANED_AFTER_S = 5
MEMORY_CHECK_INTERVAL_S = 0.05
# Written when the child is confined. The program's time limit starts then.
READY = b"\n"
LENGTH_BYTES = 8
# Exit code when memory runs out.
OUT_OF_MEMORY_EXIT_CODE = 87


def confine(limits: dict[str, Any]) -> None:
    """Apply all limits. Afterwards no file, socket or process can be opened, because no descriptors are left.

    Every module and codec must therefore be imported first.
    """
    isolate_network()
    signal.alarm(int(limits["run_s"]) + ORPHANED_AFTER_S)
    is_memory_limited = set_limit(resource.RLIMIT_AS, limits["memory"])
    if not is_memory_limited or sys.platform == "darwin":  # macOS accepts the limit and does not enforce it
        threading.Thread(target=exit_above_memory, args=(limits["memory"],), daemon=True).start()
    become_nobody()
    for limit, value in (
        (resource.RLIMIT_CPU, limits["cpu_s"]),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 3),
    ):
        set_limit(limit, value)


def set_limit(limit: int, value: int) -> bool:
    """Set a limit. Returns False if the platform does not accept it."""
    try:
        resource.setrlimit(limit, (value, value))
    except (ValueError, OSError):
        return False
    return True


def isolate_network() -> None:
    """Enter an empty network namespace if Linux permits it."""
    if not sys.platform.startswith("linux"):
        return
    with suppress(OSError, AttributeError):  # without it, no descriptor is left for a socket anyway
        flags = CLONE_NEWNET if os.geteuid() == 0 else CLONE_NEWNET | CLONE_NEWUSER
        ctypes.CDLL(None, use_errno=True).unshare(flags)


def become_nobody() -> None:
    if os.getuid() == 0:  # most limits do not apply to root
        with suppress(OSError):  # a container without such a user
            os.setgroups([])
            os.setgid(NOBODY_UID)
            os.setuid(NOBODY_UID)


def exit_above_memory(limit: int) -> None:
    bytes_per_unit = 1 if sys.platform == "darwin" else 1024
    while True:
        time.sleep(MEMORY_CHECK_INTERVAL_S)
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * bytes_per_unit > limit:
            os._exit(OUT_OF_MEMORY_EXIT_CODE)


def load_program(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("sandboxed_program", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    path, limits, *arguments = sys.argv[1:]
    module = load_program(path)
    program = module.prepare(arguments)
    confine(json.loads(limits))
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    try:
        if getattr(module, "IS_STREAMING", False):
            for part in program(sys.stdin.buffer):
                write(part)
            output = b""  # the end
        else:
            output = program(sys.stdin.buffer.read())
    except MemoryError:
        sys.exit(OUT_OF_MEMORY_EXIT_CODE)
    write(output)


def write(output: bytes) -> None:
    sys.stdout.buffer.write(len(output).to_bytes(LENGTH_BYTES, "big"))
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
