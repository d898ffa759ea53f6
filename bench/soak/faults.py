"""Faults of a soak: one at a time, each until the product is whole again."""

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
from tests.config.shared import SharedServers
from tests.config.stack import Stack

WHOLE_WITHIN_S = 120.0
AWAY_S = 3.0
LOOKS_EVERY_S = 0.5
# What `/readyz` says holds for a second.
BELIEVED_S = 1.1
PARTS = ("web_server", " worker ")  # beat is a process of the worker


class Faults:
    def __init__(self, servers: SharedServers, stack: Stack, tally: Tally) -> None:
        self.servers, self.stack, self.tally = servers, stack, tally
        self.done: list[str] = []
        self.kinds: dict[str, Callable[[], None]] = {
            "a worker process is killed": lambda: self.kill_one(" worker "),
            "PostgreSQL crashes": self.postgres,
            "a web process is killed": lambda: self.kill_one("web_server"),
            "Valkey is killed": self.valkey,
            "the whole worker is killed": lambda: self.stack.kill(" worker "),
            "rolling restart of web": self.rolling_restart,
            "beat is killed": lambda: self.stack.beat().kill(),
            "the web server is killed": lambda: self.stack.kill("web_server"),
        }

    def go_on(self, every_s: float, over: threading.Event, most: int | None = None) -> None:
        expected = self.expected_processes()
        for name, cause in islice(cycle(self.kinds.items()), most):
            if over.wait(every_s):
                return
            started = time.monotonic()
            with self.tally.something_is_away(name):
                cause()
                self.wait_until_whole(expected)
            self.done.append(f"{name}: whole again after {time.monotonic() - started:.1f} s")

    def expected_processes(self) -> dict[str, int]:
        """Before anything went wrong; later a process may be between its end, after so many tasks, and the next."""
        expected = self._processes()
        while 0 in expected.values() or expected != self._processes():
            time.sleep(LOOKS_EVERY_S)
            expected = self._processes()
        return expected

    def wait_until_whole(self, wanted: dict[str, int]) -> None:
        """As many processes as at the beginning, and all is well, twice in a row."""
        until = time.monotonic() + WHOLE_WITHIN_S
        while time.monotonic() < until:
            if self._is_whole(wanted):
                time.sleep(BELIEVED_S)
                if self._is_whole(wanted):
                    return
            time.sleep(LOOKS_EVERY_S)
        self.tally.is_wrong(f"the product was not whole again after {WHOLE_WITHIN_S:.0f} s")

    def _is_whole(self, wanted: dict[str, int]) -> bool:
        try:
            with urllib.request.urlopen(self.stack.url + "/readyz", timeout=5) as answer:
                states = {str(state) for state in json.load(answer).values()}
        except (OSError, ValueError):
            return False
        return states == {"ok", "ready"} and self._processes() == wanted

    def _processes(self) -> dict[str, int]:
        """How many each part has for its work; a part that just ended has none."""
        counts = dict.fromkeys(PARTS, 0)
        for words in PARTS:
            with suppress(AssertionError, psutil.Error):
                counts[words] = 1 + len(self.working(words))
        return counts

    def working(self, words: str) -> list[psutil.Process]:
        """A part's own processes, without the one that only counts its parent's resources."""
        workers = []
        for process_ in psutil.Process(self.stack.child(words).pid).children():
            # One that has just ended, after so many tasks, has no command line any more.
            with suppress(psutil.NoSuchProcess):
                if "resource_tracker" not in " ".join(process_.cmdline()):
                    workers.append(process_)
        return workers

    def kill_one(self, words: str) -> None:
        until = time.monotonic() + WHOLE_WITHIN_S
        while not (working := self.working(words)) and time.monotonic() < until:
            time.sleep(LOOKS_EVERY_S)
        working[0].kill()

    def rolling_restart(self) -> None:
        self.stack.process.send_signal(signal.SIGHUP)
        former = {each.pid for each in self.working("web_server")}
        until = time.monotonic() + WHOLE_WITHIN_S
        while former and time.monotonic() < until:
            time.sleep(LOOKS_EVERY_S)
            with suppress(AssertionError, psutil.Error):  # at the moment of its `exec` the parent has no command line
                former &= {each.pid for each in self.working("web_server")}

    def postgres(self) -> None:
        self.servers.stop("postgres", signal.SIGQUIT)
        time.sleep(AWAY_S)
        self.servers.start_postgres()

    def valkey(self) -> None:
        self.servers.stop("valkey", signal.SIGKILL)
        time.sleep(AWAY_S)
        self.servers.start_valkey()
