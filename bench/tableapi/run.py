"""`./run bench tableapi`: makes the records, then measures every case in turn, round after round, and reports."""

import argparse
import dataclasses
import json
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.tableapi import cases, report
from bench.tableapi.cases import OURS
from bench.tableapi.measure import Slice, figures
from bench.tableapi.report import Place
from bench.tableapi.stack import Stack, Web
from bench.tableapi.turns import Size, Turn, Turns
from config.runtime.embedded_servers import DATABASE

PORT = 8770
WARM_UP_S = 0.5
PROFILED_ROWS = 10_000


def numbers(text: str) -> list[int]:
    return sorted(int(word) for word in text.split(","))


def options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench tableapi", description=__doc__)
    parser.add_argument("--rows", type=numbers, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--clients", type=numbers, default=[1, 8, 16])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each case is measured in a round")
    parser.add_argument("--quick", action="store_true", help="10,000 and 200,000 rows, 8 clients, 3 rounds of 1 s")
    parser.add_argument("--profile", action="store_true", help="show where the application's CPU goes instead")
    found = parser.parse_args(words)
    if found.quick:
        found.rows, found.clients, found.rounds, found.seconds = [10_000, 200_000], [report.CLIENTS], 3, 1.0
    return found


def make(stack: Stack, rows: int) -> tuple[str, dict[str, Any]]:
    """A database with so many tasks, and what the requests need to know of it."""
    began = time.monotonic()
    database = stack.copy_database(f"rows_{rows}")
    known = json.loads(stack.manage(database, "benchmark_data", str(rows)))
    print(f"{rows:,} tasks made in {time.monotonic() - began:.0f} s", flush=True)
    return database, known


def make_size(stack: Stack, rows: int, port: int) -> Size:
    database, known = make(stack, rows)
    return Size(rows, database, stack.web(f"{rows}", database, port), **known)


def measure(
    turns: list[Turn], rounds: int, seconds: float, after: Callable[[Turn], None]
) -> Mapping[Place, list[Slice]]:
    """All turns one after the other, in another order each round."""
    for turn in turns:
        turn.slice(WARM_UP_S)
    found: dict[Place, list[Slice]] = defaultdict(list)
    order = random.Random(1)
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", flush=True)
        for turn in order.sample(turns, len(turns)):
            found[turn.place].append(turn.slice(seconds))
            after(turn)
    return found


def megabytes(web: Web) -> float:
    """Proportional, as in `./run bench start`: pages that processes share are counted once."""
    return float(web.process.memory_full_info().pss / 2**20)


def bench(stack: Stack, given: argparse.Namespace, pool: ProcessPoolExecutor) -> None:
    sizes = [make_size(stack, rows, PORT + number) for number, rows in enumerate(given.rows)]
    most = sizes[-1]
    # A process of its own, so that the memory of the product's is the product's.
    drf = stack.web("drf", most.database, PORT + len(sizes))
    memory = [megabytes(most.web)]

    def note_memory(turn: Turn) -> None:
        if (turn.place.rows, turn.place.name, turn.place.way) == (most.rows, "R4", OURS):
            memory.append(megabytes(most.web))

    turns = list(Turns(stack, pool, sizes).all(drf, given.clients))
    print(f"{len(turns)} cases of {given.seconds:g} s in {given.rounds} rounds", flush=True)
    slices = measure(turns, given.rounds, given.seconds, note_memory)
    found = {place: figures(each) for place, each in slices.items()}
    whats = {(turn.place.name, turn.place.way): turn.what for turn in turns}
    print("\n".join(["", *report.table(found, whats), ""]))
    print(f"Aims, by the CPU of application and database per request, {report.CLIENTS} clients, {most.rows:,} rows")
    print("\n".join(aim.line() for aim in report.aims(found, most.rows, max(memory))))
    print(f"A web process held {memory[0]:.0f} MB before its first request")


def profile(stack: Stack) -> None:
    """The reads and writes of one record or page; what they cost the application does not depend on the rows."""
    database, known = make(stack, PROFILED_ROWS)
    profiled = [cases.least(), *cases.reads(known["tasks"])[:2], *cases.writes(known["tasks"])]
    asked = {"key": known["key"], "cases": [dataclasses.asdict(case) for case in profiled]}
    print(stack.manage(database, "benchmark_profile", given=json.dumps(asked), SVC_PROCESS="web"))


def main(words: list[str]) -> None:
    given = options(words)
    with tempfile.TemporaryDirectory(prefix="servicebase-bench-") as root:
        stack = Stack(Path(root))
        try:
            stack.start()
            stack.manage(DATABASE, "prepare")
            if given.profile:
                profile(stack)
                return
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                bench(stack, given, pool)
        except BaseException:
            print(stack.faults())
            raise
        finally:
            stack.stop()
