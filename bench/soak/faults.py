"""Causes the faults of a soak, one at a time, and waits after each until the product has recovered."""

import json
import signal
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from itertools import cycle, islice

import psutil

from bench.soak.tally import Tally
from tests.config.shared_servers import SharedServers
from tests.config.stack import Stack

RECOVERY_TIMEOUT_S = 120.0
OUTAGE_S = 3.0
POLL_INTERVAL_S = 0.5
# The response of `/readyz` is cached for a second.
READINESS_CACHE_S = 1.1
COMMAND_PATTERNS = ("web_server", " worker ")  # beat is a child of the worker


class FaultInjector:
    def __init__(self, servers: SharedServers, stack: Stack, tally: Tally) -> None:
        self.servers, self.stack, self.tally = servers, stack, tally
        self.results: list[str] = []
        self.actions: dict[str, Callable[[], None]] = {
            "a worker process is killed": lambda: self.kill_process(" worker "),
            "PostgreSQL crashes": self.restart_postgres,
            "a web process is killed": lambda: self.kill_process("web_server"),
            "Valkey is killed": self.restart_valkey,
            "the whole worker is killed": lambda: self.stack.kill(" worker "),
            "rolling restart of web": self.rolling_restart,
            "beat is killed": lambda: self.stack.beat().kill(),
            "the web server is killed": lambda: self.stack.kill("web_server"),
        }

    def run(self, interval_s: float, stop_event: threading.Event, max_faults: int | None = None) -> None:
        expected_counts = self.count_expected_processes()
        for name, action in islice(cycle(self.actions.items()), max_faults):
            if stop_event.wait(interval_s):
                return
            started_at = time.monotonic()
            with self.tally.outage(name):
                action()
                self.wait_until_recovered(expected_counts)
            self.results.append(f"{name}: recovered after {time.monotonic() - started_at:.1f} s")

    def count_expected_processes(self) -> dict[str, int]:
        """Counted before the first fault, because later a worker process may be about to be replaced."""
        expected_counts = self._count_processes()
        while 0 in expected_counts.values() or expected_counts != self._count_processes():
            time.sleep(POLL_INTERVAL_S)
            expected_counts = self._count_processes()
        return expected_counts

    def wait_until_recovered(self, expected_counts: dict[str, int]) -> None:
        """Waits until the product is ready with all its processes, twice in a row."""
        deadline = time.monotonic() + RECOVERY_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._has_recovered(expected_counts):
                time.sleep(READINESS_CACHE_S)
                if self._has_recovered(expected_counts):
                    return
            time.sleep(POLL_INTERVAL_S)
        self.tally.add_error(f"the product did not recover within {RECOVERY_TIMEOUT_S:.0f} s")

    def _has_recovered(self, expected_counts: dict[str, int]) -> bool:
        try:
            with urllib.request.urlopen(self.stack.url + "/readyz", timeout=5) as response:
                states = {str(state) for state in json.load(response).values()}
        except (OSError, ValueError):
            return False
        return states == {"ok", "ready"} and self._count_processes() == expected_counts

    def _count_processes(self) -> dict[str, int]:
        """The number of processes of each part; 0 for a part that has just ended."""
        counts = dict.fromkeys(COMMAND_PATTERNS, 0)
        for pattern in COMMAND_PATTERNS:
            with suppress(AssertionError, psutil.Error):
                counts[pattern] = 1 + len(self.working_processes(pattern))
        return counts

    def working_processes(self, pattern: str) -> list[psutil.Process]:
        """The children of a part, without the one that only tracks its parent's resources."""
        processes = []
        for process in psutil.Process(self.stack.child(pattern).pid).children():
            # A process that has just ended has no command line.
            with suppress(psutil.NoSuchProcess):
                if "resource_tracker" not in " ".join(process.cmdline()):
                    processes.append(process)
        return processes

    def kill_process(self, pattern: str) -> None:
        deadline = time.monotonic() + RECOVERY_TIMEOUT_S
        while not (working_processes := self.working_processes(pattern)) and time.monotonic() < deadline:
            time.sleep(POLL_INTERVAL_S)
        working_processes[0].kill()

    def rolling_restart(self) -> None:
        self.stack.process.send_signal(signal.SIGHUP)
        old_pids = {process.pid for process in self.working_processes("web_server")}
        deadline = time.monotonic() + RECOVERY_TIMEOUT_S
        while old_pids and time.monotonic() < deadline:
            time.sleep(POLL_INTERVAL_S)
            with suppress(AssertionError, psutil.Error):  # during its `exec` the parent has no command line
                old_pids &= {process.pid for process in self.working_processes("web_server")}

    def restart_postgres(self) -> None:
        self.servers.stop("postgres", signal.SIGQUIT)
        time.sleep(OUTAGE_S)
        self.servers.start_postgres()

    def restart_valkey(self) -> None:
        self.servers.stop("valkey", signal.SIGKILL)
        time.sleep(OUTAGE_S)
        self.servers.start_valkey()
