"""Runs a soak: the product on its own servers, with callers, faults in turn, and a check of the result."""

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.soak.caller import Caller
from bench.soak.faults import FaultInjector
from bench.soak.feed_reader import FeedReader
from bench.soak.memory import MemorySampler, sample_memory
from bench.soak.new_users import NewUsers
from bench.soak.sign_ins import provider_with_new_users
from bench.soak.tally import Tally, Timing, percentile
from bench.soak.workload import Workload
from tests.collections_app.ingest.stack.product import UNFINISHED
from tests.config.shared_servers import SharedServers
from tests.config.stack import Stack, eventually, manage

FAILED_LOADS_QUERY = "SELECT count(*) FROM document_version WHERE state IN ('empty', 'failed')"
CALLER_RECORDS_QUERY = "SELECT count(*) FROM records.task WHERE short_description LIKE 'caller%'"
DEFERRED_RECORDS_QUERY = "SELECT count(*) FROM records.sys_indication WHERE name LIKE 'caller%'"
QUEUE_LENGTH_QUERY = "SELECT count(*) FROM tableapi_deferred_record"
NEW_USERS_QUERY = "SELECT count(*), count(DISTINCT lower(login)) FROM public.user WHERE login LIKE 'person%'"
COMPLETION_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class SoakResult:
    """The results of a soak."""

    tally: Tally
    timings: dict[str, list[Timing]]
    fault_lines: Sequence[str]
    memory_sampler: MemorySampler
    workloads: Sequence[Workload]
    sign_in_count: int
    elapsed_s: float

    @property
    def acknowledged_write_count(self) -> int:
        return sum(workload.acknowledged_write_count for workload in self.workloads)


@contextmanager
def running_product(root: Path) -> Iterator[tuple[SharedServers, Stack]]:
    """Runs the product with synchronous commits, so that acknowledged writes survive the end of a process."""
    servers = SharedServers(root / "servers").start_postgres("-c", "synchronous_commit=on").start_valkey()
    settings = {**servers.environ, "SVC_WEB_PROCESSES": "2", "SVC_ALLOW_HTTP_IDP": "1"}
    stack = Stack(root / "host", **settings)
    try:
        yield servers, stack.start().wait_until_up()
    finally:
        if stack.process.poll() is None:
            stack.stop()
        stack.end()
        servers.end()


def run_soak(
    servers: SharedServers,
    stack: Stack,
    *,
    caller_count: int,
    duration_s: float,
    fault_interval_s: float,
    max_faults: int | None = None,
    injector_factory: Callable[[SharedServers, Stack, Tally], FaultInjector] = FaultInjector,
) -> SoakResult:
    """Runs for this many seconds, or until the product has recovered from this many faults."""
    tally = Tally()
    key = manage("key", "admin", "soak", env=stack.env).stdout.strip()
    injector = injector_factory(servers, stack, tally)
    with provider_with_new_users(stack) as idp, sample_memory(stack) as memory_sampler:
        new_users = NewUsers(stack, idp, tally)
        workloads = [
            Workload(f"caller{number}", Caller(stack.port, key, tally), new_users.sign_in)
            for number in range(caller_count)
        ]
        feed_reader = FeedReader(Caller(stack.port, key, tally))
        workloads[0].load_document()  # creates the collection
        new_users.sign_in()
        started_at, stop_event = time.monotonic(), threading.Event()
        with ThreadPoolExecutor(caller_count + 2) as pool:
            workload_futures = [pool.submit(workload.run_until, stop_event) for workload in workloads]
            workload_futures.append(pool.submit(feed_reader.run_until, stop_event))
            fault_future = pool.submit(injector.run, fault_interval_s, stop_event, max_faults)
            wait([fault_future, *workload_futures], timeout=duration_s, return_when=FIRST_COMPLETED)
            stop_event.set()
            for future in (fault_future, *workload_futures):
                future.result()
        elapsed_s, timings = time.monotonic() - started_at, tally.copy_timings()
        with psycopg.connect(servers.postgres.url, autocommit=True) as connection:
            check_result(connection, tally, workloads, new_users.sign_in_count)
            feed_reader.check_all(connection)
    return SoakResult(tally, timings, injector.results, memory_sampler, workloads, new_users.sign_in_count, elapsed_s)


def check_result(
    connection: psycopg.Connection, tally: Tally, workloads: Sequence[Workload], sign_in_count: int
) -> None:
    """Waits for the worker, then checks the responses of the product, and the database for duplicates."""
    queries = (UNFINISHED, QUEUE_LENGTH_QUERY)
    eventually(
        lambda: [connection.execute(query).fetchone() for query in queries] == [(0,), (0,)], COMPLETION_TIMEOUT_S
    )
    for workload in workloads:
        workload.check_all()
    ((failed_count,), (record_count,), (deferred_count,), (user_count, distinct_count)) = [
        connection.execute(query).fetchone() or ()
        for query in (FAILED_LOADS_QUERY, CALLER_RECORDS_QUERY, DEFERRED_RECORDS_QUERY, NEW_USERS_QUERY)
    ]
    for stored_count, expected_count, kind in (
        (record_count, sum(len(workload.records) for workload in workloads), "records"),
        (deferred_count, sum(len(workload.deferred_names) for workload in workloads), "deferred records"),
    ):
        if stored_count != expected_count:
            tally.add_error(f"{stored_count} {kind} of callers, not {expected_count}")
    if failed_count:
        tally.add_error(f"{failed_count} loads failed")
    if user_count < sign_in_count or user_count != distinct_count:
        tally.add_error(f"{sign_in_count} sign-ins, {user_count} users with {distinct_count} distinct logins")


def report(result: SoakResult) -> None:
    response_count = sum(map(len, result.timings.values()))
    print(f"{response_count:,} responses in {result.elapsed_s:.0f} s, {response_count / result.elapsed_s:.0f} a second")
    print(f"{result.acknowledged_write_count:,} writes acknowledged, {result.sign_in_count:,} sign-ins")
    print(
        f"\n{'milliseconds':<14}{'number':>8}{'median':>9}{'p95':>9}{'p99':>9}    with retries{'p99':>9}{'longest':>9}"
    )
    for kind, timings in sorted(result.timings.items()):
        last_try_ms, total_ms = [timing.last_try_ms for timing in timings], [timing.total_ms for timing in timings]
        columns = "".join(f"{percentile(last_try_ms, share):9.0f}" for share in (0.5, 0.95, 0.99))
        print(f"{kind:<14}{len(timings):>8}{columns}{'':>17}{percentile(total_ms, 0.99):9.0f}{max(total_ms):9.0f}")
    print(f"\n{'MB, largest of':<16}  2nd quarter    last  at most")
    print("\n".join(result.memory_sampler.report_lines()))
    for title, lines in (
        ("Faults", result.fault_lines),
        ("Refused or unanswered during an outage", _count_lines(result.tally.outage_refusals)),
        ("Refused or unanswered at other times", _count_lines(result.tally.unexpected_refusals)),
        ("Errors", result.tally.errors[:20]),
    ):
        print(f"\n{title}: {'' if lines else 'none'}")
        print("\n".join(f"  {line}" for line in lines))


def _count_lines(counts: dict[str, int]) -> list[str]:
    return [f"{count:>6} {name}" for name, count in sorted(counts.items(), key=lambda item: -item[1])]


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench soak", description=__doc__)
    parser.add_argument("--callers", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument(
        "--every", type=float, default=15.0, help="seconds from the recovery after a fault to the next fault"
    )
    return parser.parse_args(argv)


def main(argv: list[str]) -> None:
    arguments = parse_arguments(argv)
    with (
        tempfile.TemporaryDirectory(prefix="servicebase-bench-") as root,
        tempfile.NamedTemporaryFile("w", prefix="servicebase-bench-soak-", suffix=".log", delete=False) as log_file,
        running_product(Path(root)) as (servers, stack),
    ):
        try:
            result = run_soak(
                servers,
                stack,
                caller_count=arguments.callers,
                duration_s=60 * arguments.minutes,
                fault_interval_s=arguments.every,
            )
            report(result)
        finally:
            log_file.write(stack.output)
            print(f"\nLog of the product: {log_file.name}")
    if result.tally.errors:
        raise SystemExit(1)
