"""PostgreSQL and Valkey servers that several hosts share; each can be stopped and started."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from cryptography.fernet import Fernet

from config.runtime.data_folder import DataFolder
from config.runtime.embedded_servers import Postgres, Valkey, wait_until_ready
from config.runtime.supervisor import Child, Supervisor
from tests.config.stack import Stack

ComponentStarter = Callable[[str], Stack]
SIGNING_KEY = "T8vYp2-qLr5xWn9cZk3mJd7hBf4gQs6aEu1oRi0t"
ENCRYPTION_KEY = Fernet.generate_key().decode()

# Test data does not have to survive a power failure, so writes do not wait for the disk.
FAST_OPTIONS = ("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")


class SharedServers:
    """Both servers in one data folder. The reaper ends them even if the test run is killed."""

    def __init__(self, root: Path, postgres_class: type[Postgres] = Postgres) -> None:
        self.folder = DataFolder(root)
        self.folder.prepare()
        self.postgres, self.valkey = postgres_class(self.folder), Valkey(self.folder)
        lock = self.folder.lock("up")
        self.null_output = open(os.devnull, "w")  # noqa: SIM115  (closed in `end`)
        self.supervisor = Supervisor(lock, out=self.null_output)
        self.children: dict[str, Child] = {}

    def start_postgres(self, *options: str) -> "SharedServers":
        self.postgres.initialize()
        self._start("postgres", self.postgres, [*self.postgres.command(), *FAST_OPTIONS, *options])
        self.postgres.create_database()
        return self

    def start_valkey(self, *options: str) -> "SharedServers":
        self.valkey.initialize()
        self._start("valkey", self.valkey, [*self.valkey.command(), *options])
        return self

    def _start(self, name: str, server: Postgres | Valkey, command: list[str]) -> None:
        child = self.children.setdefault(name, Child(name, command, stop_signal=server.stop_signal))
        assert wait_until_ready(server, self.supervisor.start(child)), f"{name} did not start"

    def stop(self, name: str, signal_number: int | None = None) -> None:
        process = self.process(name)
        process.send_signal(signal_number or self.children[name].stop_signal)
        process.wait(30)

    def process(self, name: str) -> "subprocess.Popen[bytes]":
        process = self.children[name].process
        assert process is not None
        return process

    @property
    def environ(self) -> dict[str, str]:
        """The environment of every host: the same servers and keys."""
        return {
            "DATABASE_URL": self.postgres.url,
            "REDIS_URL": self.valkey.url,
            "SECRET_KEY": SIGNING_KEY,
            "SVC_SECRET_KEYS": ENCRYPTION_KEY,
        }

    def end(self) -> None:
        self.supervisor.stop((("valkey", "postgres"),), lambda name: 10.0)
        self.supervisor.close()
        self.null_output.close()
