"""`./run bench tableapi`: CPU of a request, compared with idiomatic DRF and the floor, or with an earlier commit."""

import argparse
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.tableapi import cases, load, seed
from bench.tableapi.cases import Case
from bench.tableapi.measure import Comparison, Contender, Measurement, compare, total
from bench.tableapi.product import Floor, Product, check_out
from config.env import ROOT

SETTINGS_WITH_DRF = "bench.tableapi.project.settings"
# Ids that each installation makes for itself.
OWN_IDS = {"sys_db_table_id"}
Pair = tuple[Contender, Contender]


def options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench tableapi", description=__doc__)
    parser.add_argument("--against", metavar="COMMIT", help="compare with this commit instead of with DRF")
    parser.add_argument("--rows", type=int, default=1_000_000, help="task records (default %(default)s)")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--runs", type=int, default=3, help="the ratio is their median (default %(default)s)")
    parser.add_argument("--slices", type=int, default=8, help="of each product in a run (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a slice (default %(default)s)")
    return parser.parse_args(words)


@contextmanager
def running(*products: Product) -> Iterator[None]:
    try:
        for product in products:
            product.start()
        yield
    finally:
        for product in products:
            product.stop()


def pairs_with_commit(present: Product, earlier: Product) -> list[Pair]:
    if present.tasks != earlier.tasks:
        raise SystemExit("the two products hold different records")
    all_cases = cases.requests(present.tasks)
    for case in all_cases:
        check_case(case, present, earlier)
    return [(Contender(present, case), Contender(earlier, case)) for case in all_cases]


def check_case(case: Case, present: Product, earlier: Product) -> None:
    """The same rows in the same order, and equal values: figures of different answers say nothing."""
    for path in case.paths[:50]:
        body = case.body.replace(load.COUNTER.decode(), "first")
        ours, theirs = (product.call(case.method, path, body)["data"] for product in (present, earlier))
        if case.method != "GET":
            check_write(case, ours, present)
            check_write(case, theirs, earlier)
        elif [row.get("sys_id", row.get("number")) for row in ours] != [
            row.get("sys_id", row.get("number")) for row in theirs
        ]:
            raise SystemExit(f"{case.name}: {path} answers other records than before")
        elif columns := differing_columns(ours, theirs):
            print(f"note: {case.name} answers differ in {', '.join(sorted(columns))}", flush=True)
            return


def differing_columns(ours: Sequence[dict[str, Any]], theirs: Sequence[dict[str, Any]]) -> set[str]:
    """
    >>> sorted(differing_columns([{"a": 1, "b": 2}], [{"a": 1, "b": 3, "c": 4}]))
    ['b', 'c']
    """
    return {
        name
        for one, other in zip(ours, theirs, strict=True)
        for name in (one.keys() | other.keys()) - OWN_IDS
        if one.get(name) != other.get(name) or (name in one) != (name in other)
    }


def check_write(case: Case, data: Sequence[dict[str, Any]], product: Product) -> None:
    """What is read afterwards is what was sent."""
    (stored,) = product.call("GET", f"{cases.TABLE}/{data[0]['sys_id']}")["data"]
    if cases.CHECKED[case.name].items() - {name: str(value) for name, value in stored.items()}.items():
        raise SystemExit(f"{product.name}: {case.name} did not store what was sent: {stored}")


def pairs_with_drf(product: Product, floor: Product) -> list[Pair]:
    own = {case.name: case for case in cases.requests(product.tasks)}
    pairs = [(own[case.name], case) for case in cases.idiomatic(product.tasks)]
    for ours, theirs in pairs:
        if ours.name in ("R1", "R2", "R4"):  # R3 has other names of walked fields
            compared = product.call("GET", theirs.paths[0])
            if compared.get("results", [compared]) != product.call("GET", ours.paths[0])["data"]:
                raise SystemExit(f"the Table API and DRF answer {ours.name} differently")
    of_drf = [(Contender(product, ours), Contender(product, theirs, "DRF")) for ours, theirs in pairs]
    return [*of_drf, (Contender(product, own["R1"]), Contender(floor, cases.floor()))]


def measure(pairs: Sequence[Pair], arguments: argparse.Namespace) -> dict[Pair, list[Comparison]]:
    """Each run has fresh processes: two of the same code can differ by some per cent as long as they live. A product
    starts before the floor, which uses its database."""
    results = defaultdict(list)
    products = {way.product.name: way.product for pair in pairs for way in pair}
    for number in range(arguments.runs):
        print(f"run {number + 1} of {arguments.runs}", flush=True)
        for product in products.values():
            product.restart()
            with product.database() as connection:
                connection.execute("CHECKPOINT")
        for pair in pairs:
            results[pair].append(
                compare(*pair, clients=arguments.clients, seconds=arguments.seconds, slices=arguments.slices)
            )
    return results


def report(results: dict[Pair, list[Comparison]]) -> None:
    """Milliseconds of CPU for one request by part, and the ratio in each run."""
    head = f"{'web':>8}{'database':>9}{'log':>7}{'CPU ms':>8}{'others':>8}{'req/s':>8}{'p50 ms':>8}"
    print(f"\n{'':<33}{'':<12}{head}")
    for (first, second), runs in results.items():
        print(line(first, total([result for run in runs for result in run.first])))
        print(line(second, total([result for run in runs for result in run.second])))
    print("\nCPU of web, database and log relay, present / other; median of the runs")
    for (_, other), runs in results.items():
        result = " ".join(f"{run.ratio:.3f}" for run in runs)
        print(f"{other.case.name} {other.case.what:<32}{median(run.ratio for run in runs):7.3f}   ({result})")


def line(contender: Contender, spent: Measurement) -> str:
    case = contender.case
    parts = f"{spent.ms('web'):8.3f}{spent.ms('postgres'):9.3f}{spent.ms('supervisor'):7.3f}{spent.cpu_ms:8.3f}"
    rest = f"{spent.rest_ms:8.3f}{spent.requests / spent.seconds:8,.0f}{spent.median_ms:8.1f}"
    return f"{f'{case.name} {case.what}':<33}{contender.name[:11]:<12}{parts}{rest}"


def main(words: list[str]) -> None:
    arguments = options(words)
    # The products run in sessions of their own and must end with this, also when it is terminated.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="servicebase-bench-") as scratch:
        root = Path(scratch)
        if arguments.against:
            name = check_out(arguments.against, root / "code")
            products = [Product("present", ROOT, root / "present"), Product(name, root / "code", root / "earlier")]
        else:
            products = [Product("present", ROOT, root / "present", DJANGO_SETTINGS_MODULE=SETTINGS_WITH_DRF)]
        with running(*products):
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda product: product.fill(arguments.rows), products))
            print(f"{arguments.rows:,} tasks, {arguments.clients} clients, caller {seed.CALLER}", flush=True)
            if arguments.against:
                report(measure(pairs_with_commit(*products), arguments))
                return
            floor = Floor(products[0])
            with running(floor):
                report(measure(pairs_with_drf(products[0], floor), arguments))
