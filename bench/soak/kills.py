"""Kills processes at random moments of a soak, also while the product recovers from the previous kill."""

import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

from bench.soak.faults import FaultInjector
from bench.soak.tally import Tally
from tests.config.shared_servers import SharedServers
from tests.config.stack import Stack, eventually

# Often enough to tell which kill the product did not recover from.
KILLS_PER_RECOVERY = 10
MAX_OUTAGE_S = 3.0
START_TIMEOUT_S = 120.0
# Rarely, because the supervisor waits up to 30 s before it starts the next parent.
PARENT_KILL_RATE = 0.1


class KillInjector(FaultInjector):
    """The seed decides when each kill happens and which process it hits."""

    def __init__(self, servers: SharedServers, stack: Stack, tally: Tally, kill: "Kill", seed: int) -> None:
        super().__init__(servers, stack, tally)
        self.kill_once, self.rng = kill, random.Random(seed)
        self.seen_processes: set[psutil.Process] = set()

    def run(self, interval_s: float, stop_event: threading.Event, max_faults: int | None = None) -> None:
        expected_counts = self.count_expected_processes()
        with self.tally.outage("kills"):
            while len(self.results) < (max_faults or 1) and not stop_event.wait(self.rng.expovariate(1 / interval_s)):
                self.record_processes()
                # The chosen process may have just ended.
                with suppress(psutil.NoSuchProcess, AssertionError, IndexError):
                    self.results.append(self.kill_once(self))
                    if len(self.results) % KILLS_PER_RECOVERY == 0:
                        self.wait_until_recovered(expected_counts)
            self.wait_until_recovered(expected_counts)

    def record_processes(self) -> None:
        self.seen_processes |= self.processes()

    def processes(self) -> set[psutil.Process]:
        processes = set()
        for pid in (self.stack.process.pid, self.servers.process("postgres").pid):
            with suppress(psutil.NoSuchProcess):
                processes |= {*psutil.Process(pid).children(recursive=True)}
        return processes

    def orphans(self) -> list[str]:
        """Processes that lost their parent and still run."""
        return [
            " ".join(process.cmdline())
            for process in self.seen_processes - self.processes()
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        ]

    def choose_process(self, processes: list[psutil.Process]) -> psutil.Process:
        return self.rng.choice(sorted(processes, key=lambda process: process.pid))


Kill = Callable[[KillInjector], str]


def kill_worker(injector: KillInjector) -> str:
    """Kills one worker process or the parent of all; then the supervisor kills the others."""
    if injector.rng.random() < PARENT_KILL_RATE:
        injector.stack.child(" worker ").kill()
        return "the parent of the workers"
    injector.choose_process(injector.working_processes(" worker ")).kill()
    return "a worker process"


def kill_postgres(injector: KillInjector) -> str:
    """Kills one process of PostgreSQL, its first process, or all of them."""
    signal_number = injector.rng.choice([None, signal.SIGKILL, signal.SIGQUIT])
    if signal_number is None:
        injector.choose_process(psutil.Process(injector.servers.process("postgres").pid).children()).kill()
        return "a process of PostgreSQL"
    injector.servers.stop("postgres", signal_number)
    time.sleep(injector.rng.uniform(0, MAX_OUTAGE_S))
    eventually(lambda: try_start_postgres(injector.servers), START_TIMEOUT_S)
    return f"PostgreSQL, with {signal_number.name}"


def try_start_postgres(servers: SharedServers) -> bool:
    """Returns False if PostgreSQL cannot start yet, because a process of the killed server is still running."""
    try:
        servers.start_postgres()
    except AssertionError:
        return False
    return True
