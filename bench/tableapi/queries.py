"""Compares the time of statistics and exports with that of the same SQL, sent to the database by a plain client. Its
WHERE has the access rule of the caller, so that both count the same records."""

import time
import urllib.request
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import psycopg

from bench.tableapi import seed
from bench.tableapi.product import Product

# The read rule of `seed` for its caller.
IS_READABLE = f"(t.active OR t.caller = (SELECT sys_id FROM public.\"user\" WHERE login = '{seed.CALLER_LOGIN}'))"
COLUMNS = "sys_id,number,short_description,state,priority,urgency,impact,active,opened_at,subject"
STATISTICS = (
    (
        "count, sum by priority",
        "sysparm_count=true&sysparm_sum_fields=sys_version&sysparm_group_by=priority",
        f"SELECT priority, count(*), sum(sys_version) FROM records.task t WHERE {IS_READABLE} "
        "GROUP BY priority ORDER BY priority",
    ),
    (
        "count of active by group",
        "sysparm_query=active=true&sysparm_count=true&sysparm_group_by=assignment_group.name",
        "SELECT g.name, count(*) FROM records.task t LEFT JOIN sys_group g ON g.sys_id = t.assignment_group "
        f"WHERE t.active AND {IS_READABLE} GROUP BY g.name ORDER BY g.name",
    ),
    (
        "count by month",
        "sysparm_count=true&sysparm_group_by=opened_at:month",
        "SELECT date_trunc('month', opened_at AT TIME ZONE 'UTC') AS month, count(*) FROM records.task t "
        f"WHERE {IS_READABLE} GROUP BY month ORDER BY month",
    ),
)
COPY_QUERY = f"COPY (SELECT {COLUMNS} FROM records.task t WHERE {IS_READABLE} ORDER BY sys_id) TO STDOUT (FORMAT csv)"


def read_url(product: Product, path: str, accept: str) -> int:
    request = urllib.request.Request(
        f"http://127.0.0.1:{product.port}{path}", headers={"Authorization": f"Bearer {product.key}", "Accept": accept}
    )
    size = 0
    with urllib.request.urlopen(request, timeout=600) as response:
        while block := response.read(1 << 20):
            size += len(block)
    return size


def fetch_all(connection: "psycopg.Connection[Any]", statement: str) -> list[Any]:
    return connection.execute(statement).fetchall()


def run_copy(connection: "psycopg.Connection[Any]") -> int:
    with connection.cursor() as cursor, cursor.copy(COPY_QUERY) as blocks:
        return sum(map(len, blocks))


def measure_elapsed_s(action: Callable[[], object]) -> float:
    started_at = time.perf_counter()
    action()
    return time.perf_counter() - started_at


def compare_queries(product: Product, round_count: int) -> None:
    """Runs both in turn in each round; the ratio is the median of the rounds."""
    with product.database() as connection:
        pairs: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
            (
                f"statistics: {name}",
                partial(read_url, product, f"/rest/v1/stats/task?{query}", "application/json"),
                partial(fetch_all, connection, statement),
            )
            for name, query, statement in STATISTICS
        ]
        path = f"/rest/v1/table/task?sysparm_fields={COLUMNS}"
        csv_request = partial(read_url, product, path, "text/csv")
        pairs.append(("CSV of 10 columns, against COPY", csv_request, partial(run_copy, connection)))
        for name, send_request, run_statement in pairs:
            send_request(), run_statement()  # caches and plans
            timings = [(measure_elapsed_s(send_request), measure_elapsed_s(run_statement)) for _ in range(round_count)]
            ratios = sorted(request_s / sql_s for request_s, sql_s in timings)
            request_s, sql_s = (median(column) for column in zip(*timings, strict=True))
            spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
            print(f"{name:<42}{request_s:8.3f} s{sql_s:8.3f} s   ratio {median(ratios):.2f} ({spread})")
