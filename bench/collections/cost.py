"""Measures one question: elapsed time, and CPU of the database backend."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection


@dataclass(frozen=True)
class Cost:
    """Of one question, on the average."""

    wall_ms: float
    cpu_ms: float


def backend_cpu_s() -> float:
    """Of this connection's process in the database, to the nanosecond."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = cursor.fetchone()[0]
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9


def cost(work: Callable[[Any], Any], inputs: Sequence[Any]) -> Cost:
    for item in inputs[:5]:
        work(item)
    cpu, started = backend_cpu_s(), time.perf_counter()
    for item in inputs:
        work(item)
    elapsed_s, cpu_s = time.perf_counter() - started, backend_cpu_s() - cpu
    return Cost(1000 * elapsed_s / len(inputs), 1000 * cpu_s / len(inputs))
