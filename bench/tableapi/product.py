"""Runs one version of the product as `./run` starts it, and measures it from outside."""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
from cryptography.fernet import Fernet

from bench.tableapi import seed
from config.env import ROOT
from config.runtime.embedded_servers import DATABASE
from tests.config.stack import free_port

START_TIMEOUT_S = 600.0
# The parts that work on responses; a thread of the supervisor relays the log lines.
MEASURED_PARTS = ("web", "postgres", "supervisor")
WEB_THREADS = 4  # in a web process, as in `system.http.gateway`, which cannot be imported without settings


class Product:
    """One running `./run` with its own data folder and port."""

    def __init__(self, name: str, code_folder: Path, data_folder: Path, **settings: str) -> None:
        self.name, self.code_folder, self.data_folder = name, code_folder, data_folder
        self.port = free_port()
        inherited_env = {key: value for key, value in os.environ.items() if not key.startswith(("SVC_", "DJANGO_"))}
        for key in ("DATABASE_URL", "DATABASE_REPLICA_URL", "REDIS_URL", "VIRTUAL_ENV"):
            inherited_env.pop(key, None)
        # Production settings, because logging and checks in development mode would distort the measurements.
        self.env = {
            **inherited_env,
            "SVC_ENV": "production",
            "SVC_ALLOW_EMBEDDED": "1",
            "SVC_DEMO": "1",
            "SVC_DATA_DIR": str(data_folder),
            "SVC_PORT": str(self.port),
            "SVC_BASE_URL": f"http://127.0.0.1:{self.port}",
            "SVC_WEB_PROCESSES": "1",
            "ALLOWED_HOSTS": "127.0.0.1",
            "DEBUG": "0",
            "PYTHONHASHSEED": "0",  # random dictionary layouts differ by a few percent
            "SECRET_KEY": Fernet.generate_key().decode(),
            "SVC_SECRET_KEYS": Fernet.generate_key().decode(),
            **settings,
        }
        self.log_path = data_folder.with_suffix(".log")
        self.process: subprocess.Popen[bytes] | None = None
        self.key = ""
        self.task_ids: list[str] = []

    @property
    def command(self) -> list[str]:
        return [str(self.code_folder / "run")]

    def start(self) -> None:
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, cwd=self.code_folder, env=self.env, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5):
                    return
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"{self.name} did not start:\n" + self.log_path.read_text()[-3000:])

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()  # its reaper ends the child processes

    def restart(self) -> None:
        self.stop()
        self.start()

    def manage(self, *arguments: str) -> str:
        command = [str(self.code_folder / "run"), "manage", *arguments]
        completed = subprocess.run(command, cwd=self.code_folder, env=self.env, capture_output=True, text=True)
        if completed.returncode != 0:
            raise SystemExit(f"{self.name}: manage {arguments[0]} failed: {completed.stderr[-2000:]}")
        return completed.stdout.strip()

    def socket_folder(self) -> str:
        """The folder that contains the database socket."""
        (pid_file,) = self.data_folder.rglob("postmaster.pid")
        return pid_file.read_text().splitlines()[4]

    @contextmanager
    def database(self) -> Iterator["psycopg.Connection[Any]"]:
        with psycopg.connect(host=self.socket_folder(), dbname=DATABASE, user=DATABASE, autocommit=True) as connection:
            yield connection

    def fill_database(self, row_count: int) -> None:
        """Creates the records and the caller's key, then restarts, so that caches are empty."""
        started_at = time.monotonic()
        with self.database() as connection:
            index_count = seed.wait_for_indexes(connection)
            fill_started_at = time.monotonic()
            seed.create_records(connection, row_count)
            self.task_ids = seed.sample_task_ids(connection)
        self.key = self.manage("key", seed.CALLER_LOGIN, "bench").rpartition("\n")[2]
        self.restart()
        with self.database() as connection:
            if seed.wait_for_indexes(connection, quiet_s=5) != index_count:
                raise SystemExit(f"{self.name}: the indexes of the tasks changed after the records were created")
        summary = f"{row_count:,} tasks, {index_count} indexes created in {time.monotonic() - fill_started_at:.0f} s"
        print(f"{self.name}: {summary}, ready after {time.monotonic() - started_at:.0f} s", flush=True)

    def call(self, method: str, path: str, body: str = "") -> Any:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, body.encode() or None, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                text = response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                raise SystemExit(f"{self.name}: {method} {path} returned {error.code} {error.read()[:500]!r}") from None
        return json.loads(text.replace(f"127.0.0.1:{self.port}", "host"))

    def cpu_s(self) -> Counter[str]:
        """CPU seconds by part. The times of ended processes are included in those of their parents."""
        assert self.process
        supervisor = psutil.Process(self.process.pid)
        while True:
            cpu_times = supervisor.cpu_times()
            seconds_by_part = Counter({"supervisor": cpu_times.user + cpu_times.system})
            try:
                for child in supervisor.children():
                    processes = [child, *child.children(recursive=True)]
                    part = part_name(" ".join(child.cmdline()))
                    seconds_by_part[part] += sum(sum(process.cpu_times()[:4]) for process in processes)
            except psutil.NoSuchProcess:
                continue  # a process ended in between
            return seconds_by_part


class FloorServer(Product):
    """`bench.tableapi.floor` in the same web server, with the same threads and the database of a product."""

    def __init__(self, product: Product) -> None:
        super().__init__("floor", ROOT, product.data_folder)
        self.product = product

    @property
    def command(self) -> list[str]:
        return [
            sys.executable, "-m", "granian", "--interface", "wsgi", "--runtime-mode", "mt", "--http", "1", "--no-ws",
            "--port", str(self.port), "--workers", "1", "--blocking-threads", str(WEB_THREADS),
            "--log-level", "warning",
            "bench.tableapi.floor:application",
        ]  # fmt: skip

    def start(self) -> None:
        self.env |= {"PGHOST": self.product.socket_folder(), "PGDATABASE": DATABASE, "PGUSER": DATABASE}
        super().start()

    def cpu_s(self) -> Counter[str]:
        assert self.process
        server = psutil.Process(self.process.pid)
        processes = [server, *server.children(recursive=True)]
        web_cpu_s = sum(sum(process.cpu_times()[:4]) for process in processes)
        return Counter({"web": web_cpu_s, "postgres": self.product.cpu_s()["postgres"]})


def check_out(commit: str, target: Path) -> str:
    """Extracts the files of a commit and returns its short name. Unlike a worktree, this leaves no entry in .git."""
    short_name = subprocess.run(
        ["git", "rev-parse", "--short", "--verify", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    if not short_name:
        raise SystemExit(f"there is no commit {commit} here")
    git_archive = subprocess.run(["git", "archive", short_name], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    with tarfile.open(fileobj=io.BytesIO(git_archive.stdout)) as archive:
        archive.extractall(target, filter="data")
    return short_name


def part_name(command: str) -> str:
    for pattern, name in (
        ("web_server", "web"),
        (" worker ", "worker"),
        (" beat ", "beat"),
        ("valkey", "valkey"),
        ("postgres", "postgres"),
        ("reaper", "reaper"),
    ):
        if pattern in command:
            return name
    return command[:30]
