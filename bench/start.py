"""Measures the time from a clone to the first page, and the memory of the idle product."""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psutil

from bench.tableapi.product import Product, check_out, part_name
from config.env import ROOT

PORT = 8766
URL = f"http://127.0.0.1:{PORT}/login/"
START_TIMEOUT_S = 300
# Idle times before memory is measured: after a first start, the worker loads documents.
FIRST_IDLE_S = 25.0
IDLE_S = 8.0


def copy_project(target: Path) -> None:
    """Copies what a clone contains: the files that git tracks, and new ones."""
    git_files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in git_files.stdout.splitlines():
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def clone_environment(cache_folder: Path) -> dict[str, str]:
    inherited_env = {name: value for name, value in os.environ.items() if not name.startswith(("SVC_", "VIRTUAL_ENV"))}
    return {
        **inherited_env,
        "SVC_PORT": str(PORT),
        "UV_CACHE_DIR": str(cache_folder / "uv"),
        "PIP_CACHE_DIR": str(cache_folder / "pip"),
    }


def wait_for_first_page(project_folder: Path, env: dict[str, str]) -> tuple["subprocess.Popen[bytes]", float]:
    """Starts the product and waits for its first page; returns the process and the time in seconds."""
    started_at = time.monotonic()
    process = subprocess.Popen(
        [str(project_folder / "run")], cwd=project_folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
    )
    while time.monotonic() - started_at < START_TIMEOUT_S:
        try:
            with urllib.request.urlopen(URL, timeout=5):
                return process, time.monotonic() - started_at
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    raise SystemExit("the product did not start")


def stop(process: "subprocess.Popen[bytes]") -> float:
    started_at = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.wait(30)
    return time.monotonic() - started_at


def memory_by_part_mb(process: "subprocess.Popen[bytes]") -> dict[str, float]:
    """Proportional memory of each part: pages that processes share are counted once."""
    memory_mb: dict[str, float] = {}
    parent = psutil.Process(process.pid)
    part_names = {child.pid: part_name(" ".join(child.cmdline())) for child in parent.children()}
    for child in [parent, *parent.children(recursive=True)]:
        ancestor = child
        while ancestor.pid not in part_names and ancestor.pid != parent.pid:
            ancestor = ancestor.parent() or parent
        name = part_names.get(ancestor.pid, "supervisor")
        memory_mb[name] = memory_mb.get(name, 0.0) + child.memory_full_info().pss / 2**20
    return memory_mb


class StartCost(NamedTuple):
    """The cost of one start, including the processes that it started."""

    wall_s: float
    cpu_s: float
    memory_mb: float


def measure_start(product: Product, idle_s: float) -> StartCost:
    started_at = time.monotonic()
    product.start()
    wall_s = time.monotonic() - started_at
    time.sleep(idle_s)
    assert product.process
    parent = psutil.Process(product.process.pid)
    while True:
        with suppress(psutil.NoSuchProcess):  # a process ended in between
            # The times of ended processes are included in those of their parents.
            cpu_s = sum(sum(process.cpu_times()[:4]) for process in [parent, *parent.children(recursive=True)])
            return StartCost(wall_s, cpu_s, sum(memory_by_part_mb(product.process).values()))


def measure_round(product: Product, costs: dict[str, list[StartCost]]) -> None:
    shutil.rmtree(product.data_folder, ignore_errors=True)
    for kind, idle_s in (("first start", FIRST_IDLE_S), ("restart", IDLE_S), ("restart", IDLE_S)):
        costs[kind].append(measure_start(product, idle_s))
        product.stop()


def compare(commit: str, round_count: int) -> None:
    """Compares first starts and restarts of the current code and of a commit, in random order."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="servicebase-bench-") as scratch_folder:
        folder = Path(scratch_folder)
        short_name = check_out(commit, folder / "code")
        # The settings of a fresh clone, except for the port.
        settings = {"SVC_ENV": "development", "SVC_WEB_PROCESSES": "2"}
        products = [
            Product("current", ROOT, folder / "current", **settings),
            Product(short_name, folder / "code", folder / "baseline", **settings),
        ]
        costs: dict[str, dict[str, list[StartCost]]] = {product.name: defaultdict(list) for product in products}
        try:
            for product in products:
                product.manage("--version")  # installs the packages
                product.start()  # compiles all modules
                product.stop()
            for _ in range(round_count):
                for product in random.sample(products, len(products)):
                    measure_round(product, costs[product.name])
        finally:
            for product in products:
                product.stop()
    print(f"medians of {round_count} rounds{'':<17}{'current':>10}{short_name:>10}{'ratio':>8}")
    for kind in ("first start", "restart"):
        for column, label in enumerate(("s to /readyz 200", "s of CPU in total", "MB of memory (PSS)")):
            current, baseline = (
                median(cost[column] for cost in costs[product_name][kind]) for product_name in ("current", short_name)
            )
            print(f"{kind:<12} {label:<24}{current:>10.2f}{baseline:>10.2f}{current / baseline:>8.2f}")


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="./run bench start", description=__doc__)
    parser.add_argument("--against", metavar="COMMIT", help="compare starts with this commit instead")
    parser.add_argument("--rounds", type=int, default=5, help="each has one first start and two restarts")
    arguments = parser.parse_args(argv)
    if arguments.against:
        compare(arguments.against, arguments.rounds)
    else:
        measure_clone()


def measure_clone() -> None:
    with tempfile.TemporaryDirectory() as scratch_folder:
        cache_folder, project_folder = Path(scratch_folder) / "cache", Path(scratch_folder) / "clone"
        copy_project(project_folder)
        env = clone_environment(cache_folder)
        process, cold_start_s = wait_for_first_page(project_folder, env)
        stop(process)
        for name in (".venv", "var"):
            shutil.rmtree(project_folder / name)
        process, warm_start_s = wait_for_first_page(project_folder, env)
        stop(process)
        process, second_start_s = wait_for_first_page(project_folder, env)
        time.sleep(20)  # until caches are filled and start-up work is done
        memory_mb = memory_by_part_mb(process)
        stop_s = stop(process)
    print(f"clone to first page, nothing cached   {cold_start_s:6.1f} s")
    print(f"clone to first page, packages cached  {warm_start_s:6.1f} s")
    print(f"second start to first page            {second_start_s:6.1f} s")
    print(f"Ctrl-C to the end                     {stop_s:6.1f} s")
    for name, size_mb in sorted(memory_mb.items(), key=lambda item: -item[1]):
        print(f"idle memory, {name:<11}              {size_mb:6.0f} MB")
    print(f"idle memory, all                      {sum(memory_mb.values()):6.0f} MB")
