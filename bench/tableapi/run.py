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
from bench.tableapi.measure import Comparison, Contender, Measurement, add_slices, compare
from bench.tableapi.product import FloorServer, Product, check_out
from bench.tableapi.queries import compare_queries
from config.env import ROOT

SETTINGS_WITH_DRF = "bench.tableapi.project.settings"
# Columns whose ids differ between installations.
INSTALLATION_IDS = {"sys_db_table_id"}
Pair = tuple[Contender, Contender]


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench tableapi", description=__doc__)
    parser.add_argument("--against", metavar="COMMIT", help="compare with this commit instead of with DRF")
    parser.add_argument("--combined", action="store_true", help="compare batches and bulk requests with single ones")
    parser.add_argument("--servicenow", action="store_true", help="compare the ServiceNow dialect with the Table API")
    parser.add_argument("--queries", action="store_true", help="compare statistics and exports with the same SQL")
    parser.add_argument("--rows", type=int, default=1_000_000, help="task records (default %(default)s)")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--runs", type=int, default=3, help="the ratio is their median (default %(default)s)")
    parser.add_argument("--slices", type=int, default=8, help="of each product in a run (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a slice (default %(default)s)")
    return parser.parse_args(argv)


@contextmanager
def running_products(*products: Product) -> Iterator[None]:
    try:
        for product in products:
            product.start()
        yield
    finally:
        for product in products:
            product.stop()


def pairs_with_commit(current: Product, baseline: Product) -> list[Pair]:
    if current.task_ids != baseline.task_ids:
        raise SystemExit("the two products have different records")
    table_api_cases = cases.table_api_cases(current.task_ids)
    for case in table_api_cases:
        check_case(case, current, baseline)
    return [(Contender(current, case), Contender(baseline, case)) for case in table_api_cases]


def check_case(case: Case, current: Product, baseline: Product) -> None:
    """Requires the same rows in the same order. Times of different responses cannot be compared."""
    for path in case.paths[:50]:
        body = case.body.replace(load.COUNTER_PLACEHOLDER.decode(), "first")
        rows, baseline_rows = (product.call(case.method, path, body)["data"] for product in (current, baseline))
        if case.method != "GET":
            check_write(case, rows, current)
            check_write(case, baseline_rows, baseline)
        elif [row.get("sys_id", row.get("number")) for row in rows] != [
            row.get("sys_id", row.get("number")) for row in baseline_rows
        ]:
            raise SystemExit(f"{case.name}: {path} returns different records from the baseline")
        elif columns := differing_columns(rows, baseline_rows):
            print(f"note: {case.name} responses differ in {', '.join(sorted(columns))}", flush=True)
            return


def differing_columns(rows: Sequence[dict[str, Any]], baseline_rows: Sequence[dict[str, Any]]) -> set[str]:
    """
    >>> sorted(differing_columns([{"a": 1, "b": 2}], [{"a": 1, "b": 3, "c": 4}]))
    ['b', 'c']
    """
    return {
        name
        for row, baseline_row in zip(rows, baseline_rows, strict=True)
        for name in (row.keys() | baseline_row.keys()) - INSTALLATION_IDS
        if row.get(name) != baseline_row.get(name) or (name in row) != (name in baseline_row)
    }


def check_write(case: Case, rows: Sequence[dict[str, Any]], product: Product) -> None:
    """Requires that the record contains the values that were sent."""
    (stored_record,) = product.call("GET", f"{cases.TASKS_PATH}/{rows[0]['sys_id']}")["data"]
    if cases.EXPECTED_VALUES[case.name].items() - {name: str(value) for name, value in stored_record.items()}.items():
        raise SystemExit(f"{product.name}: {case.name} did not store what was sent: {stored_record}")


def pairs_with_drf(product: Product, floor_server: Product) -> list[Pair]:
    cases_by_name = {case.name: case for case in cases.table_api_cases(product.task_ids)}
    pairs = [(cases_by_name[case.name], case) for case in cases.drf_cases(product.task_ids)]
    for case, drf_case in pairs:
        if case.name in ("R1", "R2", "R4"):  # R3 has other names of dot-walked fields
            drf_response = product.call("GET", drf_case.paths[0])
            if drf_response.get("results", [drf_response]) != product.call("GET", case.paths[0])["data"]:
                raise SystemExit(f"the Table API and DRF respond differently to {case.name}")
    drf_pairs = [(Contender(product, case), Contender(product, drf_case, "DRF")) for case, drf_case in pairs]
    return [*drf_pairs, (Contender(product, cases_by_name["R1"]), Contender(floor_server, cases.floor_case()))]


def pairs_with_single_requests(product: Product) -> list[Pair]:
    single_cases = {case.name: case for case in cases.table_api_cases(product.task_ids)}
    return [
        (Contender(product, case, "combined"), Contender(product, single_cases[case.name], "single"))
        for case in cases.combined_cases(product.task_ids)
    ]


def pairs_with_servicenow(product: Product) -> list[Pair]:
    pairs = cases.servicenow_cases(product.task_ids)
    for case, native_case in pairs:
        result = product.call("GET", case.paths[0])["result"]
        records = result if isinstance(result, list) else [result]
        native_records = product.call("GET", native_case.paths[0])["data"]
        if [record["sys_id"] for record in records] != [record["sys_id"] for record in native_records]:
            raise SystemExit(f"{case.name} returns different records")
    return [(Contender(product, case, "ServiceNow"), Contender(product, native, "native")) for case, native in pairs]


def measure_pairs(pairs: Sequence[Pair], arguments: argparse.Namespace) -> dict[Pair, list[Comparison]]:
    """Each run has new processes, because two processes of the same code can differ by a few percent. A product
    starts before the floor, which uses its database."""
    comparisons_by_pair = defaultdict(list)
    products = {contender.product.name: contender.product for pair in pairs for contender in pair}
    for number in range(arguments.runs):
        print(f"run {number + 1} of {arguments.runs}", flush=True)
        for product in products.values():
            product.restart()
            with product.database() as connection:
                connection.execute("CHECKPOINT")
        for pair in pairs:
            comparisons_by_pair[pair].append(
                compare(
                    *pair,
                    client_count=arguments.clients,
                    duration_s=arguments.seconds,
                    slice_count=arguments.slices,
                )
            )
    return comparisons_by_pair


def report(comparisons_by_pair: dict[Pair, list[Comparison]]) -> None:
    """Milliseconds of CPU for one request by part, and the ratio in each run."""
    column_titles = f"{'web':>8}{'database':>9}{'log':>7}{'CPU ms':>8}{'others':>8}{'req/s':>8}{'p50 ms':>8}"
    print(f"\n{'':<33}{'':<12}{column_titles}")
    for (contender, baseline), runs in comparisons_by_pair.items():
        print(table_row(contender, add_slices([slice_ for run in runs for slice_ in run.first_slices])))
        print(table_row(baseline, add_slices([slice_ for run in runs for slice_ in run.second_slices])))
    print("\nCPU of web, database and log relay, current / other; median of the runs")
    for (_, baseline), runs in comparisons_by_pair.items():
        case, ratios = baseline.case, " ".join(f"{run.ratio:.3f}" for run in runs)
        print(f"{case.name} {case.description:<32}{median(run.ratio for run in runs):7.3f}   ({ratios})")


def table_row(contender: Contender, measurement: Measurement) -> str:
    case = contender.case
    web_ms, postgres_ms, log_ms = map(measurement.ms_per_request, ("web", "postgres", "supervisor"))
    requests_per_s = measurement.request_count / measurement.duration_s
    cpu_columns = f"{web_ms:8.3f}{postgres_ms:9.3f}{log_ms:7.3f}{measurement.cpu_ms_per_request:8.3f}"
    other_columns = f"{measurement.other_ms_per_request:8.3f}{requests_per_s:8,.0f}{measurement.median_ms:8.1f}"
    return f"{f'{case.name} {case.description}':<33}{contender.name[:11]:<12}{cpu_columns}{other_columns}"


def main(argv: list[str]) -> None:
    arguments = parse_arguments(argv)
    # The products run in their own sessions, and must end with this process even if it is terminated.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="servicebase-bench-") as scratch_folder:
        folder = Path(scratch_folder)
        if arguments.against:
            short_name = check_out(arguments.against, folder / "code")
            products = [
                Product("current", ROOT, folder / "current"),
                Product(short_name, folder / "code", folder / "baseline"),
            ]
        else:
            products = [Product("current", ROOT, folder / "current", DJANGO_SETTINGS_MODULE=SETTINGS_WITH_DRF)]
        with running_products(*products):
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda product: product.fill_database(arguments.rows), products))
            print(f"{arguments.rows:,} tasks, {arguments.clients} clients, caller {seed.CALLER_LOGIN}", flush=True)
            if arguments.against:
                report(measure_pairs(pairs_with_commit(*products), arguments))
                return
            if arguments.queries:
                compare_queries(products[0], arguments.runs * arguments.slices)
                return
            if arguments.combined:
                report(measure_pairs(pairs_with_single_requests(products[0]), arguments))
                return
            if arguments.servicenow:
                report(measure_pairs(pairs_with_servicenow(products[0]), arguments))
                return
            floor_server = FloorServer(products[0])
            with running_products(floor_server):
                report(measure_pairs(pairs_with_drf(products[0], floor_server), arguments))
