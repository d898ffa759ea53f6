"""Samples the memory of the largest process of each kind during a soak."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from statistics import median

import psutil

from tests.config.stack import Stack

SAMPLE_INTERVAL_S = 2.0
COMMAND_PATTERNS = {"web process": "web_server", "worker process": " worker "}
MB = 2**20


class MemorySampler:
    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.samples_mb: dict[str, list[float]] = {kind: [] for kind in COMMAND_PATTERNS}

    def take_sample(self) -> None:
        for kind, pattern in COMMAND_PATTERNS.items():
            # A process that was just killed counts in the next sample.
            with suppress(psutil.Error, AssertionError, ValueError):
                parent = self.stack.child(pattern)
                process_mb = [child.memory_info().rss / MB for child in (*parent.children(recursive=True), parent)]
                self.samples_mb[kind].append(max(process_mb))

    def report_lines(self) -> list[str]:
        """Medians of the second and last quarter, and the maximum. In the first quarter, code is still loaded."""
        lines = []
        for kind, samples in self.samples_mb.items():
            quarter = max(1, len(samples) // 4)
            early_mb, late_mb = samples[quarter : 2 * quarter] or samples, samples[-quarter:]
            if samples:
                lines.append(f"  {kind:<16} {median(early_mb):8.0f} {median(late_mb):8.0f} {max(samples):8.0f}")
        return lines


@contextmanager
def sample_memory(stack: Stack) -> Iterator[MemorySampler]:
    sampler, stop_event = MemorySampler(stack), threading.Event()

    def take_samples() -> None:
        while not stop_event.wait(SAMPLE_INTERVAL_S):
            sampler.take_sample()

    thread = threading.Thread(target=take_samples)
    thread.start()
    try:
        yield sampler
    finally:
        stop_event.set()
        thread.join()
