"""Measures the elapsed time and the database CPU of one call."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection


@dataclass(frozen=True)
class Cost:
    """The average cost of one call."""

    wall_ms: float
    cpu_ms: float


def backend_cpu_s() -> float:
    """CPU time of the database process of this connection, with nanosecond resolution."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = cursor.fetchone()[0]
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9


def measure_cost(function: Callable[[Any], Any], inputs: Sequence[Any]) -> Cost:
    """The average over all inputs, after five warm-up calls."""
    for item in inputs[:5]:
        function(item)
    cpu_before_s, started_at = backend_cpu_s(), time.perf_counter()
    for item in inputs:
        function(item)
    elapsed_s, cpu_s = time.perf_counter() - started_at, backend_cpu_s() - cpu_before_s
    return Cost(1000 * elapsed_s / len(inputs), 1000 * cpu_s / len(inputs))
