"""Starts the embedded servers of a test run in a temporary folder; they end with it even if it is killed."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from config.runtime.data_folder import DataFolder
from config.runtime.embedded_servers import Postgres, Valkey, wait_until_ready
from config.runtime.supervisor import Child, Supervisor


def start_servers() -> Path:
    """Starts PostgreSQL and Valkey; returns the data folder that the settings must use."""
    root = Path(tempfile.mkdtemp(prefix="servicebase-test-"))
    folder = DataFolder(root)
    folder.prepare()
    null_output = open(os.devnull, "w")  # noqa: SIM115  (open as long as the servers)
    lock = folder.lock("up")
    # The supervisor's reaper ends the servers even if this run is killed.
    supervisor = Supervisor(lock, out=null_output)
    for name, server in (("postgres", Postgres(folder)), ("valkey", Valkey(folder))):
        server.initialize()
        # Test data does not have to survive a crash, so writes do not wait for the disk.
        fast_options = ["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"]
        command = [*server.command(), *(fast_options if name == "postgres" else [])]
        process = supervisor.start(Child(name, command, stop_signal=server.stop_signal))
        if not wait_until_ready(server, process):
            raise RuntimeError(f"{name} did not start")
    Postgres(folder).create_database()
    atexit.register(stop_servers, supervisor, root)
    return root


def stop_servers(supervisor: Supervisor, root: Path) -> None:
    supervisor.stop((("valkey", "postgres"),), lambda name: 5.0)
    supervisor.close()
    shutil.rmtree(root, ignore_errors=True)
