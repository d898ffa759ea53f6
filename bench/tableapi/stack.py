"""In charge of the servers of one run: PostgreSQL, Valkey, and a web process for each database, as the product does."""

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg
from cryptography.fernet import Fernet

from config.env import ROOT, Environment
from config.runtime.data_folder import DataFolder
from config.runtime.embedded_servers import DATABASE, Postgres, Valkey, wait_until_ready
from config.runtime.supervisor import Child, Supervisor
from config.runtime.up import WEB_MEMORY, web_command

WITHIN_S = 60.0
# Lines of the log that tell of no fault.
ORDINARY = ('"event": "request_finished"', '"event": "index_changed"')
SETTINGS = "bench.tableapi.project.settings"


@dataclass(frozen=True)
class Web:
    """One web process that answers from one database."""

    port: int
    process: psutil.Process


class Stack:
    """The servers, in a folder of their own; nothing is left of them when it is stopped or killed."""

    def __init__(self, root: Path) -> None:
        self.folder = DataFolder(root)
        self.folder.prepare()
        self.log = open(root / "log", "w")  # noqa: SIM115  (open as long as the servers)
        claim = self.folder.hold("up")
        self.supervisor = Supervisor(claim, out=self.log)
        self.keys = {"SECRET_KEY": Fernet.generate_key().decode(), "SVC_SECRET_KEYS": Fernet.generate_key().decode()}

    def start(self) -> None:
        for name, server in (("postgres", Postgres(self.folder)), ("valkey", Valkey(self.folder))):
            server.initialise()
            process = self.supervisor.start(Child(name, server.command(), stop_signal=server.stop_signal))
            if not wait_until_ready(server, process):
                raise SystemExit(f"{name} did not start")
        Postgres(self.folder).make_database()

    def stop(self) -> None:
        webs = [child.name for child in self.supervisor.children if child.name.startswith("web")]
        self.supervisor.stop([webs, ["valkey"], ["postgres"]], lambda name: 10.0)
        self.supervisor.close()
        self.log.close()

    def faults(self) -> str:
        """The last lines of the log, without the ordinary ones."""
        lines = (self.folder.root / "log").read_text().splitlines()
        return "\n".join([line for line in lines if not any(word in line for word in ORDINARY)][-30:])

    def url(self, database: str) -> str:
        return f"postgresql://{DATABASE}@/{database}?host={quote(str(self.folder.sockets), safe='')}"

    def administer(self, statement: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def copy_database(self, name: str) -> str:
        self.administer(f'CREATE DATABASE "{name}" TEMPLATE "{DATABASE}"')
        return name

    @property
    def postmaster(self) -> psutil.Process:
        return psutil.Process(int((self.folder.postgres / "postmaster.pid").read_text().splitlines()[0]))

    def environ(self, database: str, **more: str) -> dict[str, str]:
        """Of a production process: what differs from development, the form of its log lines, costs differently."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SVC_", "DJANGO_"))}
        given = {
            "SVC_ENV": "production",
            "SVC_DATA_DIR": str(self.folder.root),
            "DATABASE_URL": self.url(database),
            "REDIS_URL": Valkey(self.folder).url,
            "DJANGO_SETTINGS_MODULE": SETTINGS,
            "DEBUG": "0",
            "ALLOWED_HOSTS": "127.0.0.1",
        }
        return {**kept, **given, **self.keys, **more}

    def manage(self, database: str, *words: str, given: str = "", **more: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT, env=self.environ(database, **more), input=given, text=True,
            stdout=subprocess.PIPE, stderr=self.log, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise SystemExit(f"manage.py {words[0]} failed")
        return done.stdout

    def web(self, name: str, database: str, port: int) -> Web:
        metrics = self.folder.run / f"metrics-{name}"
        metrics.mkdir(mode=0o700)
        own: Mapping[str, Any] = {
            **WEB_MEMORY,
            "SVC_PROCESS": "web",
            "SVC_PORT": str(port),
            "SVC_BASE_URL": f"http://127.0.0.1:{port}",
            "PROMETHEUS_MULTIPROC_DIR": str(metrics),
            "PYTHONUNBUFFERED": "1",
        }
        command = web_command(Environment(port=port, web_processes=1))
        process = self.supervisor.start(Child(f"web {name}", command, self.environ(database, **own)))
        wait_until_answers(port)
        (worker,) = [each for each in psutil.Process(process.pid).children() if "resource_tracker" not in _words(each)]
        return Web(port, worker)


def _words(process: psutil.Process) -> str:
    return " ".join(process.cmdline())


def wait_until_answers(port: int) -> None:
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
                return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("a web process did not start")
