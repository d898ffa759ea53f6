"""In charge of one slice: what was answered in it, and the CPU that application and database took for that."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import psutil


class Counted(Protocol):
    @property
    def requests(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def median_ms(self) -> float: ...


@dataclass(frozen=True)
class Slice:
    """Per second, milliseconds of CPU per request, and what a client waits."""

    rate: float
    app_ms: float
    database_ms: float
    median_ms: float

    @property
    def cpu_ms(self) -> float:
        return self.app_ms + self.database_ms


@dataclass(frozen=True)
class Figures:
    """The median of several slices; the spread is that of the CPU, from least to most, as a part of its median."""

    rate: float
    app_ms: float
    database_ms: float
    cpu_ms: float
    median_ms: float
    spread: float


def figures(slices: Iterable[Slice]) -> Figures:
    found = list(slices)
    cpu = [each.cpu_ms for each in found]
    return Figures(
        median(each.rate for each in found),
        median(each.app_ms for each in found),
        median(each.database_ms for each in found),
        median(cpu),
        median(each.median_ms for each in found),
        (max(cpu) - min(cpu)) / median(cpu),
    )


def process_cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def database_cpu_s(postmaster: psutil.Process) -> float:
    """Of all processes of the server; those that have ended are in what the postmaster inherited."""
    while True:
        times = postmaster.cpu_times()
        inherited = times.children_user + times.children_system
        try:
            return float(inherited + sum(_precisely(each) for each in postmaster.children()))
        except psutil.NoSuchProcess:
            continue  # one ended while it was looked at, and is inherited now


def _precisely(backend: psutil.Process) -> float:
    """A backend takes less than a tick for many a slice; it has one thread, whose nanoseconds Linux tells."""
    try:
        return int(Path(f"/proc/{backend.pid}/schedstat").read_text().split()[0]) / 1e9
    except (OSError, IndexError):
        return process_cpu_s(backend)


def measured(work: Callable[[], Counted], app_cpu_s: Callable[[Any], float], postmaster: psutil.Process) -> Slice:
    """`app_cpu_s` is asked before with None, and after with what was done."""
    app, database = app_cpu_s(None), database_cpu_s(postmaster)
    done = work()
    app, database = app_cpu_s(done) - app, database_cpu_s(postmaster) - database
    per_request = 1000 / done.requests
    return Slice(done.requests / done.seconds, app * per_request, database * per_request, done.median_ms)
