"""Time of an import as a ratio to COPY of the same rows into the same indexed table, and the memory that it needs."""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil

from config.env import ROOT

ROWS = 1_000_000
SHOP_COUNT = 1_000
SAMPLE_INTERVAL_S = 0.2
START = datetime(2024, 1, 1, tzinfo=UTC)
HEADER = ("name", "code", "quantity", "price", "state", "bought_on", "checked_at", "shop")
WORDS = ("printer", "laptop", "phone", "display", "keyboard", "router", "cable", "dock", "scanner", "camera")


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="./run bench imports", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--profile", action="store_true", help="show where the importing process spends its time")
    parser.add_argument("--undo", action="store_true", help="also undo the import")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.measure:
        measure(arguments.rows, arguments.profile, arguments.undo)
        return
    from tests.config.shared_servers import SharedServers  # noqa: PLC0415
    from tests.config.stack import environment, free_port  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="servicebase-bench-") as root:
        servers = SharedServers(Path(root) / "servers").start_postgres().start_valkey()
        environ = {**environment(Path(root) / "host", free_port(), SVC_DEMO="0"), **servers.environ}
        environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        try:
            subprocess.run([sys.executable, "manage.py", "prepare"], cwd=ROOT, env=environ, check=True)
            command = [sys.executable, "-m", "bench", "imports", "--measure", *argv]
            subprocess.run(command, cwd=ROOT, env=environ, check=True)
        finally:
            servers.end()


def file_row(number: int) -> list[str]:
    """A row as in a spreadsheet: labels, display values and local dates."""
    day = START + timedelta(minutes=number)
    name = f"{WORDS[number % 10]} {WORDS[number // 7 % 10]} {number}"
    state = ("New", "In use", "Retired")[number % 3]
    dates = [day.strftime("%d.%m.%Y"), day.strftime("%Y-%m-%d %H:%M:%S")]
    return [
        name,
        f"C{number:07}",
        str(number % 100),
        f"{number % 1000}.50",
        state,
        *dates,
        f"Shop {number % SHOP_COUNT}",
    ]


def table_row(number: int, fixed: list[str], shop_ids: list[str]) -> list[str]:
    """The same row as it is stored."""
    row = file_row(number)
    row[4], row[5] = str(1 + number % 3), row[6][:10]
    row[7] = shop_ids[number % SHOP_COUNT]
    return [f"160{number:015}", *fixed, *row]


def measure(row_count: int, is_profiled: bool, is_undone: bool) -> None:
    import django  # noqa: PLC0415

    django.setup()
    from django.db import connection  # noqa: PLC0415

    from accounts.models import User  # noqa: PLC0415
    from tableapi.design import index_builder  # noqa: PLC0415
    from tableapi.models import Import  # noqa: PLC0415
    from tests.tableapi import world  # noqa: PLC0415

    design_table(world)
    index_builder.build_indexes()
    user = User.objects.get(login="admin")
    shop_ids = [world.record("shop", name=f"Shop {number}") for number in range(SHOP_COUNT)]
    with tempfile.TemporaryDirectory(prefix="servicebase-bench-") as folder:
        import_file, copy_file = Path(folder) / "import.csv", Path(folder) / "copy.csv"
        with connection.cursor() as cursor:
            cursor.execute("SELECT sys_db_table_id FROM records.shop LIMIT 1")
            cursor.execute("SELECT sys_id FROM public.sys_db_table WHERE name = 'item'")
            ((table_id,),) = cursor.fetchall()
        now = START.isoformat()
        fixed = [now, now, user.pk, user.pk, "0", table_id]
        write_file(import_file, HEADER, (file_row(number) for number in range(row_count)))
        write_file(copy_file, (), (table_row(number, fixed, shop_ids) for number in range(row_count)))
        print(f"{row_count:,} rows, {import_file.stat().st_size / 1e6:.0f} MB of CSV", flush=True)
        copy_s = copy_rows(connection, copy_file)
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE records.item")
            cursor.execute("CHECKPOINT")
        connection.close()
        with profiling(is_profiled), measured_memory() as peaks:
            started_at = time.perf_counter()
            run_import(user, import_file)
            import_s = time.perf_counter() - started_at
    job = Import.objects.get()
    assert job.counts["created"] == row_count, (job.state, job.counts, job.error)
    print(f"COPY {copy_s:.1f} s; import {import_s:.1f} s, {row_count / import_s:,.0f} rows/s")
    print(f"ratio {import_s / copy_s:.1f}")
    print(f"memory of the importing process: {peaks['start']:.0f} MB at the start, at most {peaks['own']:.0f} MB")
    print(f"memory of the sandbox: at most {peaks['child']:.0f} MB")
    if is_undone:
        with profiling(is_profiled):
            started_at = time.perf_counter()
            undo_import(user, job)
            print(f"undo {row_count / (time.perf_counter() - started_at):,.0f} rows/s")


def design_table(world: Any) -> None:
    world.table("shop")
    world.field("shop", "name", is_display=True)
    world.table("item")
    world.field("item", "name", is_indexed=True, is_display=True)
    world.field("item", "code", is_unique=True)
    world.field("item", "quantity", "integer", is_indexed=True)
    world.field("item", "price", "decimal")
    world.field("item", "state", choices={"1": "New", "2": "In use", "3": "Retired"}, is_indexed=True)
    world.field("item", "bought_on", "date", is_indexed=True)
    world.field("item", "checked_at", "datetime")
    world.field("item", "shop", target="shop")


def write_file(path: Path, header: tuple[str, ...], rows: Iterator[list[str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        if header:
            writer.writerow(header)
        writer.writerows(rows)


def copy_rows(connection: Any, path: Path) -> float:
    names = ["sys_id", "sys_created_at", "sys_updated_at", "sys_created_by", "sys_updated_by", "sys_version"]
    columns = ", ".join([*names, "sys_db_table_id", *HEADER])
    started_at = time.perf_counter()
    statement = f"COPY records.item ({columns}) FROM STDIN (FORMAT csv)"
    with connection.cursor() as cursor, path.open("rb") as file, cursor.copy(statement) as copy:
        while block := file.read(1024 * 1024):
            copy.write(block)
    return time.perf_counter() - started_at


def run_import(user: Any, path: Path) -> None:
    """Import the file as a worker does."""
    from tableapi.imports import jobs, options, steps  # noqa: PLC0415
    from tableapi.read.context import Caller  # noqa: PLC0415

    import_options = options.ImportOptions(on_error="continue")
    with path.open("rb") as file:
        parts = iter(lambda: file.read(1024 * 1024), b"")
        job = jobs.start(Caller.of(user), "item", import_options, parts, path.name, "text/csv")
    steps.process(job.pk)


def undo_import(user: Any, job: Any) -> None:
    from tableapi.imports import jobs, steps  # noqa: PLC0415
    from tableapi.read.context import Caller  # noqa: PLC0415

    jobs.undo(Caller.of(user), "item", job.pk)
    steps.process(job.pk)


@contextmanager
def measured_memory() -> Iterator[dict[str, float]]:
    """Samples the resident memory of this process and of its children, in MB."""
    process = psutil.Process(os.getpid())
    start = process.memory_info().rss / 1e6
    peaks = {"start": start, "own": start, "child": 0.0}
    has_ended = threading.Event()

    def sample() -> None:
        while not has_ended.wait(SAMPLE_INTERVAL_S):
            peaks["own"] = max(peaks["own"], process.memory_info().rss / 1e6)
            for child in process.children(recursive=True):
                try:
                    peaks["child"] = max(peaks["child"], child.memory_info().rss / 1e6)
                except psutil.NoSuchProcess:
                    continue

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield peaks
    finally:
        has_ended.set()
        thread.join()


@contextmanager
def profiling(is_profiled: bool) -> Iterator[None]:
    import cProfile  # noqa: PLC0415
    import pstats  # noqa: PLC0415

    if not is_profiled:
        yield
        return
    profile = cProfile.Profile()
    with profile:
        yield
    pstats.Stats(profile).sort_stats("tottime").print_stats(30)
