"""Our SQL in a loop without HTTP: the same statements, prepared, and their rows fetched."""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

import psycopg


@dataclass(frozen=True)
class Run:
    """One statement with its values; whether its placeholders are PostgreSQL's own."""

    sql: bytes
    values: Any
    is_raw: bool


@dataclass(frozen=True)
class LoopJob:
    url: str
    runs: Sequence[Run]
    seconds: float


@dataclass(frozen=True)
class LoopDone:
    requests: int
    seconds: float
    cpu_s: float  # of this process
    median_ms: float


@cache
def connected(url: str) -> "psycopg.Connection[Any]":
    return psycopg.connect(url, autocommit=True)


def run(job: LoopJob) -> LoopDone:
    turns = [(each.sql, each.values) for each in job.runs]
    kind = psycopg.RawCursor if job.runs[0].is_raw else psycopg.Cursor
    began, own = time.perf_counter(), time.process_time()
    took: list[float] = []
    now = began
    with kind(connected(job.url)) as cursor:
        for sql, values in itertools.cycle(turns):
            cursor.execute(sql, values, prepare=True)
            fetch(cursor)
            before, now = now, time.perf_counter()
            took.append(now - before)
            if now - began >= job.seconds:
                break
    return LoopDone(len(took), now - began, time.process_time() - own, 1000 * median(took))


def fetch(cursor: "psycopg.Cursor[Any]") -> None:
    """As the product does: values as the database wrote them."""
    result = cursor.pgresult
    assert result is not None
    for row in range(result.ntuples):
        for column in range(result.nfields):
            result.get_value(row, column)
