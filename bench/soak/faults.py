"""In charge of what goes wrong during a soak, one thing after another, each until the product is whole again."""

import json
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from itertools import cycle

import psutil

from bench.soak.tally import Tally
from config.runtime.up import REPLACED_EVERY_S
from tests.config.shared import SharedServers
from tests.config.stack import Stack

WHOLE_WITHIN_S = 120.0
AWAY_S = 3.0


class Faults:
    def __init__(self, servers: SharedServers, stack: Stack, tally: Tally) -> None:
        self.servers, self.stack, self.tally = servers, stack, tally
        self.done: list[str] = []
        self.kinds: dict[str, Callable[[], None]] = {
            "a worker process is killed": self.worker_process,
            "PostgreSQL crashes": self.postgres,
            "a web process is killed": self.web_process,
            "Valkey is killed": self.valkey,
            "the whole worker is killed": self.worker,
            "rolling restart of web": self.rolling_restart,
            "beat is killed": self.beat,
            "the web server is killed": self.web,
        }

    def go_on_until(self, ends_at: float, every_s: float, over: threading.Event) -> None:
        """Nothing begins that could not end in time."""
        for name, cause in self._turns():
            if over.wait(every_s) or time.monotonic() > ends_at - every_s:
                return
            began = time.monotonic()
            with self.tally.something_is_away():
                cause()
                self.wait_until_whole()
            self.done.append(f"{name}: whole again after {time.monotonic() - began:.1f} s")

    def _turns(self) -> Iterator[tuple[str, Callable[[], None]]]:
        return cycle(self.kinds.items())

    def wait_until_whole(self) -> None:
        """Twice in a row: what was said last holds for a second."""
        until, in_a_row = time.monotonic() + WHOLE_WITHIN_S, 0
        while in_a_row < 2 and time.monotonic() < until:
            in_a_row = in_a_row + 1 if self.is_whole() else 0
            time.sleep(1.1)
        if in_a_row < 2:
            self.tally.is_wrong(f"the product was not whole again after {WHOLE_WITHIN_S:.0f} s")

    def is_whole(self) -> bool:
        try:
            with urllib.request.urlopen(self.stack.url + "/readyz", timeout=5) as answer:
                return {str(state) for state in json.load(answer).values()} == {"ok", "ready"}
        except (OSError, ValueError, urllib.error.HTTPError):
            return False

    def web_process(self) -> None:
        self._workers_of("web_server")[0].kill()

    def worker_process(self) -> None:
        self._workers_of(" worker ")[0].kill()

    def _workers_of(self, words: str) -> list[psutil.Process]:
        """Those that do the work, not what only counts its parent's resources."""
        return [
            each
            for each in psutil.Process(self.stack.child(words).pid).children()
            if "resource_tracker" not in " ".join(each.cmdline())
        ]

    def web(self) -> None:
        self._kill("web_server")

    def worker(self) -> None:
        self._kill(" worker ")

    def beat(self) -> None:
        self._kill(" beat ")

    def _kill(self, words: str) -> None:
        """All its processes at once; what supervises them starts them again."""
        main = self.stack.child(words)
        for each in (*main.children(recursive=True), main):
            each.kill()

    def rolling_restart(self) -> None:
        self.stack.process.send_signal(signal.SIGHUP)
        time.sleep(REPLACED_EVERY_S * len(self._workers_of("web_server")) + AWAY_S)

    def postgres(self) -> None:
        self.servers.stop("postgres", signal.SIGQUIT)
        time.sleep(AWAY_S)
        self.servers.start_postgres()

    def valkey(self) -> None:
        self.servers.stop("valkey", signal.SIGKILL)
        time.sleep(AWAY_S)
        self.servers.start_valkey()
