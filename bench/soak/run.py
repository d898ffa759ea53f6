"""Runs a soak: the product on its own servers, callers, faults in turn, and a check of the result."""

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
from bench.soak.faults import Faults
from bench.soak.memory import Memory, watched
from bench.soak.people import People
from bench.soak.sign_ins import provider_of_new_people
from bench.soak.tally import Tally, Timing, part
from bench.soak.work import Work
from tests.collections_app.ingest.stack.product import UNFINISHED
from tests.config.shared import SharedServers
from tests.config.stack import Stack, eventually, manage

FAILED = "SELECT count(*) FROM document_version WHERE state IN ('empty', 'failed')"
OURS = "SELECT count(*) FROM records.task WHERE short_description LIKE 'caller%'"
DEFERRED = "SELECT count(*) FROM records.sys_indication WHERE name LIKE 'caller%'"
QUEUED = "SELECT count(*) FROM tableapi_deferred_record"
PERSONS = "SELECT count(*), count(DISTINCT lower(login)) FROM public.user WHERE login LIKE 'person%'"
DONE_WITHIN_S = 300.0


@dataclass(frozen=True)
class Soak:
    """How it went."""

    tally: Tally
    timings: dict[str, list[Timing]]
    faults: Sequence[str]
    memory: Memory
    works: Sequence[Work]
    signed_in: int
    elapsed_s: float

    @property
    def acknowledged(self) -> int:
        return sum(work.acknowledged for work in self.works)


@contextmanager
def product(root: Path) -> Iterator[tuple[SharedServers, Stack]]:
    """What is acknowledged is on the disk, as far as the end of a process can tell."""
    servers = SharedServers(root / "servers").start_postgres("-c", "synchronous_commit=on").start_valkey()
    more = {**servers.environ, "SVC_WEB_PROCESSES": "2", "SVC_ALLOW_HTTP_IDP": "1"}
    stack = Stack(root / "host", **more)
    try:
        yield servers, stack.start().wait_until_up()
    finally:
        if stack.process.poll() is None:
            stack.stop()
        stack.end()
        servers.end()


def soak(
    servers: SharedServers,
    stack: Stack,
    *,
    callers: int,
    seconds: float,
    every_s: float,
    most: int | None = None,
    make_faults: Callable[[SharedServers, Stack, Tally], Faults] = Faults,
) -> Soak:
    """For so many seconds, or until so many faults were overcome."""
    tally = Tally()
    key = manage("key", "admin", "soak", env=stack.env).stdout.strip()
    faults = make_faults(servers, stack, tally)
    with provider_of_new_people(stack) as idp, watched(stack) as memory:
        signing_in = People(stack, idp, tally)
        works = [
            Work(f"caller{number}", Caller(stack.port, key, tally), signing_in.sign_in) for number in range(callers)
        ]
        works[0].loads()  # which makes the collection
        signing_in.sign_in()
        started, finished = time.monotonic(), threading.Event()
        with ThreadPoolExecutor(callers + 1) as pool:
            working = [pool.submit(work.go_on_until, finished) for work in works]
            causing = pool.submit(faults.go_on, every_s, finished, most)
            wait([causing, *working], timeout=seconds, return_when=FIRST_COMPLETED)
            finished.set()
            for each in (causing, *working):
                each.result()
        elapsed_s, timings = time.monotonic() - started, tally.times_so_far()
        with psycopg.connect(servers.postgres.url, autocommit=True) as link:
            check(link, tally, works, signing_in.signed_in)
    return Soak(tally, timings, faults.done, memory, works, signing_in.signed_in, elapsed_s)


def check(link: psycopg.Connection, tally: Tally, works: Sequence[Work], signed_in: int) -> None:
    """Once the worker is done: by the product's own answers, and nothing twice in the database."""
    eventually(lambda: [link.execute(each).fetchone() for each in (UNFINISHED, QUEUED)] == [(0,), (0,)], DONE_WITHIN_S)
    for work in works:
        work.checks_all()
    ((failed,), (records,), (deferred,), (persons, different)) = [
        link.execute(each).fetchone() or () for each in (FAILED, OURS, DEFERRED, PERSONS)
    ]
    for stored, expected, what in (
        (records, sum(len(work.records) for work in works), "records"),
        (deferred, sum(len(work.deferred) for work in works), "deferred records"),
    ):
        if stored != expected:
            tally.is_wrong(f"{stored} {what} of callers, not {expected}")
    if failed:
        tally.is_wrong(f"{failed} loads failed")
    if persons < signed_in or persons != different:
        tally.is_wrong(f"{signed_in} signed in, {persons} people were made, {different} of them different")


def report(result: Soak) -> None:
    answers = sum(map(len, result.timings.values()))
    print(f"{answers:,} answers in {result.elapsed_s:.0f} s, {answers / result.elapsed_s:.0f} a second")
    print(f"{result.acknowledged:,} writes acknowledged, {result.signed_in:,} sign-ins")
    print(
        f"\n{'milliseconds':<14}{'number':>8}{'median':>9}{'p95':>9}{'p99':>9}   with all tries{'p99':>9}{'longest':>9}"
    )
    for kind, timings in sorted(result.timings.items()):
        answers_ms, whole_ms = [timing.answer_ms for timing in timings], [timing.whole_ms for timing in timings]
        shares = "".join(f"{part(answers_ms, share):9.0f}" for share in (0.5, 0.95, 0.99))
        print(f"{kind:<14}{len(timings):>8}{shares}{'':>17}{part(whole_ms, 0.99):9.0f}{max(whole_ms):9.0f}")
    print(f"\n{'MB, largest of':<16}  2nd quarter    last  at most")
    print("\n".join(result.memory.report_lines()))
    for title, lines in (
        ("What was done to it", result.faults),
        ("Told to come back, or not answered, while something was away", _counted(result.tally.late)),
        ("The same while nothing was away", _counted(result.tally.unexpected)),
        ("Wrong", result.tally.wrong[:20]),
    ):
        print(f"\n{title}: {'' if lines else 'none'}")
        print("\n".join(f"  {line}" for line in lines))


def _counted(seen: dict[str, int]) -> list[str]:
    return [f"{count:>6} {name}" for name, count in sorted(seen.items(), key=lambda each: -each[1])]


def options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench soak", description=__doc__)
    parser.add_argument("--callers", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--every", type=float, default=15.0, help="seconds from one thing that goes wrong to the next")
    return parser.parse_args(words)


def main(words: list[str]) -> None:
    arguments = options(words)
    with (
        tempfile.TemporaryDirectory(prefix="servicebase-bench-") as root,
        tempfile.NamedTemporaryFile("w", prefix="servicebase-bench-soak-", suffix=".log", delete=False) as log,
        product(Path(root)) as (servers, stack),
    ):
        try:
            result = soak(
                servers, stack, callers=arguments.callers, seconds=60 * arguments.minutes, every_s=arguments.every
            )
            report(result)
        finally:
            log.write(stack.output)
            print(f"\nWhat the service logged: {log.name}")
    if result.tally.wrong:
        raise SystemExit(1)
