"""How long a newcomer waits for the first page, and how much memory the idle product uses."""

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

from bench.tableapi.product import Product, check_out, part_of
from config.env import ROOT

PORT = 8766
URL = f"http://127.0.0.1:{PORT}/login/"
WITHIN_S = 300
# Idle times before memory is measured: after a first start, the worker loads documents.
FIRST_IDLE_S = 25.0
IDLE_S = 8.0


def copy_project(target: Path) -> None:
    """What a clone has: the files that git knows."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def environment(cache: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SVC_", "VIRTUAL_ENV"))}
    return {**inherited, "SVC_PORT": str(PORT), "UV_CACHE_DIR": str(cache / "uv"), "PIP_CACHE_DIR": str(cache / "pip")}


def first_page(project: Path, env: dict[str, str]) -> tuple["subprocess.Popen[bytes]", float]:
    """Start and wait for the first page; returns the running product and the seconds it took."""
    started = time.monotonic()
    process = subprocess.Popen(
        [str(project / "run")], cwd=project, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
    )
    while time.monotonic() - started < WITHIN_S:
        try:
            with urllib.request.urlopen(URL, timeout=5):
                return process, time.monotonic() - started
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    raise SystemExit("the product did not start")


def stop(process: "subprocess.Popen[bytes]") -> float:
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.wait(30)
    return time.monotonic() - started


def memory(process: "subprocess.Popen[bytes]") -> dict[str, float]:
    """Proportional memory by part, in MB: pages that processes share are counted once."""
    memory_mb: dict[str, float] = {}
    parent = psutil.Process(process.pid)
    parts = {process_.pid: part_of(" ".join(process_.cmdline())) for process_ in parent.children()}
    for process_ in [parent, *parent.children(recursive=True)]:
        ancestor = process_
        while ancestor.pid not in parts and ancestor.pid != parent.pid:
            ancestor = ancestor.parent() or parent
        name = parts.get(ancestor.pid, "supervisor")
        memory_mb[name] = memory_mb.get(name, 0.0) + process_.memory_full_info().pss / 2**20
    return memory_mb


class Started(NamedTuple):
    """What one start cost, with the processes that it left running."""

    wall_s: float
    cpu_s: float
    memory_mb: float


def start(product: Product, idle_s: float) -> Started:
    began = time.monotonic()
    product.start()
    wall_s = time.monotonic() - began
    time.sleep(idle_s)
    assert product.process
    parent = psutil.Process(product.process.pid)
    while True:
        with suppress(psutil.NoSuchProcess):  # one ended while it was looked at
            # Times of processes that have ended are in those of their parents.
            cpu_s = sum(sum(each.cpu_times()[:4]) for each in [parent, *parent.children(recursive=True)])
            return Started(wall_s, cpu_s, sum(memory(product.process).values()))


def round_of(product: Product, started: dict[str, list[Started]]) -> None:
    shutil.rmtree(product.data, ignore_errors=True)
    for kind, idle_s in (("first start", FIRST_IDLE_S), ("restart", IDLE_S), ("restart", IDLE_S)):
        started[kind].append(start(product, idle_s))
        product.stop()


def compare(commit: str, rounds: int) -> None:
    """First starts and restarts of the present code and of a commit, in turn and in random order."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="servicebase-bench-") as scratch:
        root = Path(scratch)
        name = check_out(commit, root / "code")
        # With the settings of a newcomer, except for the port.
        plain = {"SVC_ENV": "development", "SVC_WEB_PROCESSES": "2"}
        products = [
            Product("present", ROOT, root / "present", **plain),
            Product(name, root / "code", root / "earlier", **plain),
        ]
        started: dict[str, dict[str, list[Started]]] = {each.name: defaultdict(list) for each in products}
        try:
            for product in products:
                product.manage("--version")  # installs the packages
                product.start()  # compiles all modules
                product.stop()
            for _ in range(rounds):
                for product in random.sample(products, len(products)):
                    round_of(product, started[product.name])
        finally:
            for product in products:
                product.stop()
    print(f"medians of {rounds} rounds{'':<17}{'present':>10}{name:>10}{'ratio':>8}")
    for kind in ("first start", "restart"):
        for index, what in enumerate(("s to /readyz 200", "s of CPU in all", "MB of memory (PSS)")):
            present, earlier = (median(each[index] for each in started[who][kind]) for who in ("present", name))
            print(f"{kind:<12} {what:<24}{present:>10.2f}{earlier:>10.2f}{present / earlier:>8.2f}")


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="./run bench start", description=__doc__)
    parser.add_argument("--against", metavar="COMMIT", help="compare starts with this commit instead")
    parser.add_argument("--rounds", type=int, default=5, help="each has one first start and two restarts")
    arguments = parser.parse_args(words)
    if arguments.against:
        compare(arguments.against, arguments.rounds)
    else:
        measure_clone()


def measure_clone() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        cache, project = Path(scratch) / "cache", Path(scratch) / "clone"
        copy_project(project)
        env = environment(cache)
        process, cold = first_page(project, env)
        stop(process)
        for name in (".venv", "var"):
            shutil.rmtree(project / name)
        process, warm = first_page(project, env)
        stop(process)
        process, again = first_page(project, env)
        time.sleep(20)  # idle: caches filled, start-up work done
        held_values = memory(process)
        stopping = stop(process)
    print(f"clone to first page, nothing cached   {cold:6.1f} s")
    print(f"clone to first page, packages cached  {warm:6.1f} s")
    print(f"second start to first page            {again:6.1f} s")
    print(f"Ctrl-C to the end                     {stopping:6.1f} s")
    for name, size in sorted(held_values.items(), key=lambda part: -part[1]):
        print(f"idle memory, {name:<11}              {size:6.0f} MB")
    print(f"idle memory, all                      {sum(held_values.values()):6.0f} MB")
