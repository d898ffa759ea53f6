"""Samples the memory of the processes during a soak: the largest process of each kind."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from statistics import median

import psutil

from tests.config.stack import Stack

EVERY_S = 2.0
KINDS = {"web process": "web_server", "worker process": " worker "}
MB = 2**20


class Memory:
    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.seen: dict[str, list[float]] = {kind: [] for kind in KINDS}

    def look(self) -> None:
        for kind, words in KINDS.items():
            # One that was just killed is looked at the next time.
            with suppress(psutil.Error, AssertionError, ValueError):
                main = self.stack.child(words)
                held = [child.memory_info().rss / MB for child in (*main.children(recursive=True), main)]
                self.seen[kind].append(max(held))

    def report_lines(self) -> list[str]:
        """In the second and the last quarter of the time: the first is for what is loaded once."""
        lines = []
        for kind, held in self.seen.items():
            quarter = max(1, len(held) // 4)
            early, late = held[quarter : 2 * quarter] or held, held[-quarter:]
            if held:
                lines.append(f"  {kind:<16} {median(early):8.0f} {median(late):8.0f} {max(held):8.0f}")
        return lines


@contextmanager
def watched(stack: Stack) -> Iterator[Memory]:
    memory, over = Memory(stack), threading.Event()

    def go_on() -> None:
        while not over.wait(EVERY_S):
            memory.look()

    watcher = threading.Thread(target=go_on)
    watcher.start()
    try:
        yield memory
    finally:
        over.set()
        watcher.join()
