"""Stops the processes of a supervisor that was killed, so that none is left behind.

Reads lines "+ GROUP SIGNAL" and "- GROUP" from standard input; its end means that the supervisor is gone.
It also inherits the lock on the data folder, so a new start is refused until all old processes have ended.
Started as a script, without site packages, so that it needs only about 9 MB.
"""

import os
import signal
import sys
import time

STOP_TIMEOUT_S = 8.0


def is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def stop(groups: dict[int, int]) -> None:
    """Signal every group in reverse order of start, and kill what is still alive after the timeout."""
    for group, stop_signal in reversed(groups.items()):
        if is_alive(group):
            os.killpg(group, stop_signal)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    running_groups = list(groups)
    while running_groups and time.monotonic() < deadline:
        running_groups = [group for group in running_groups if is_alive(group)]
        time.sleep(0.05)
    for group in running_groups:
        if is_alive(group):
            os.killpg(group, signal.SIGKILL)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: dict[int, int] = {}
    for line in sys.stdin:
        operation, group, *stop_signal = line.split()
        if operation == "+":
            groups[int(group)] = int(stop_signal[0])
        else:
            groups.pop(int(group), None)
    stop(groups)


if __name__ == "__main__":
    main()
