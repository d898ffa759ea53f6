"""Outlives the supervisor by a few seconds to stop what it left: a SIGKILLed supervisor leaves no process behind.

Reads lines "+ GROUP SIGNAL" and "- GROUP" from standard input; its end means that the supervisor is gone.
It also inherits the claim on the data folder, so a new start waits until everything old has ended.
Started as a script, without site packages: it costs about 9 MB.
"""

import os
import signal
import sys
import time

STOP_WITHIN_S = 8.0


def is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def stop(groups: dict[int, int]) -> None:
    """Ask every group in reverse order of start, then insist."""
    for group, asked in reversed(groups.items()):
        if is_alive(group):
            os.killpg(group, asked)
    until = time.monotonic() + STOP_WITHIN_S
    left = list(groups)
    while left and time.monotonic() < until:
        left = [group for group in left if is_alive(group)]
        time.sleep(0.05)
    for group in left:
        if is_alive(group):
            os.killpg(group, signal.SIGKILL)


def main() -> None:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    groups: dict[int, int] = {}
    for line in sys.stdin:
        word, group, *asked = line.split()
        if word == "+":
            groups[int(group)] = int(asked[0])
        else:
            groups.pop(int(group), None)
    stop(groups)


if __name__ == "__main__":
    main()
