"""How long a newcomer waits for the first page, and how much memory the idle product uses."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import psutil

from config.env import ROOT

PORT = 8766
URL = f"http://127.0.0.1:{PORT}/login/"
WITHIN_S = 300


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


def part_of(command: str) -> str:
    for word, name in (
        ("web_server", "web"),
        (" worker ", "worker"),
        (" beat ", "beat"),
        ("valkey", "valkey"),
        ("postgres", "postgres"),
        ("reaper", "reaper"),
    ):
        if word in command:
            return name
    return command[:30]


def main(words: list[str]) -> None:
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
