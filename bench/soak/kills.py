"""Kills of a soak at random moments, also while the product recovers from the one before."""

import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

from bench.soak.faults import Faults
from bench.soak.tally import Tally
from tests.config.shared import SharedServers
from tests.config.stack import Stack, eventually

# Often enough to say which of the kills was too much.
WHOLE_AGAIN_AFTER = 10
MAX_AWAY_S = 3.0
STARTED_WITHIN_S = 120.0
# Of the workers, one in ten: the supervisor waits up to 30 s before it starts the next.
WHOLE_WORKERS = 0.1


class Kills(Faults):
    """What each kill hits and when is decided by the seed."""

    def __init__(self, servers: SharedServers, stack: Stack, tally: Tally, kill: "Kill", seed: int) -> None:
        super().__init__(servers, stack, tally)
        self.kill_something, self.chance = kill, random.Random(seed)
        self.seen: set[psutil.Process] = set()

    def go_on(self, every_s: float, over: threading.Event, most: int | None = None) -> None:
        expected = self.expected_processes()
        with self.tally.something_is_away("kills"):
            while len(self.done) < (most or 1) and not over.wait(self.chance.expovariate(1 / every_s)):
                self.note_processes()
                # What was chosen may have just ended.
                with suppress(psutil.NoSuchProcess, AssertionError, IndexError):
                    self.done.append(self.kill_something(self))
                    if len(self.done) % WHOLE_AGAIN_AFTER == 0:
                        self.wait_until_whole(expected)
            self.wait_until_whole(expected)

    def note_processes(self) -> None:
        self.seen |= self.processes()

    def processes(self) -> set[psutil.Process]:
        running = set()
        for pid in (self.stack.process.pid, self.servers.process("postgres").pid):
            with suppress(psutil.NoSuchProcess):
                running |= {*psutil.Process(pid).children(recursive=True)}
        return running

    def orphans(self) -> list[str]:
        """Processes that lost their parent and still run."""
        return [
            " ".join(each.cmdline())
            for each in self.seen - self.processes()
            if each.is_running() and each.status() != psutil.STATUS_ZOMBIE
        ]

    def one_of(self, processes: list[psutil.Process]) -> psutil.Process:
        return self.chance.choice(sorted(processes, key=lambda each: each.pid))


Kill = Callable[[Kills], str]


def worker(kills: Kills) -> str:
    """A process that works, or the parent alone, whose children the supervisor ends."""
    if kills.chance.random() < WHOLE_WORKERS:
        kills.stack.child(" worker ").kill()
        return "the parent of the workers"
    kills.one_of(kills.working(" worker ")).kill()
    return "a worker process"


def postgres(kills: Kills) -> str:
    """One of its processes, the first of them, or all at once."""
    number = kills.chance.choice([None, signal.SIGKILL, signal.SIGQUIT])
    if number is None:
        kills.one_of(psutil.Process(kills.servers.process("postgres").pid).children()).kill()
        return "a process of PostgreSQL"
    kills.servers.stop("postgres", number)
    time.sleep(kills.chance.uniform(0, MAX_AWAY_S))
    eventually(lambda: is_started(kills.servers), STARTED_WITHIN_S)
    return f"PostgreSQL, with {number.name}"


def is_started(servers: SharedServers) -> bool:
    """Not as long as a process of the one that was killed is still at its last statement."""
    try:
        servers.start_postgres()
    except AssertionError:
        return False
    return True
