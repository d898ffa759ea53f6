"""Real worker processes on the test database, which can be blocked at a step and killed there."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import IO, Any
from urllib.parse import quote

import psycopg
from django.conf import settings
from django.db import connection

from config.env import ROOT
from tests.config.stack import eventually

# Processes one message like a child of a worker.
WORKER_SCRIPT = "import django; django.setup(); from collections_app import tasks; tasks.work()"
# A worker as `manage.py up` starts it, but with one child, and a queue that no other test writes to.
QUEUE_NAME = "test"
CELERY_SCRIPT = (
    "-m", "celery", "--app", "config", "--quiet", "worker", "--loglevel", "INFO", "--concurrency", "1",
    "--without-gossip", "--without-mingle", "--queues", QUEUE_NAME,
)  # fmt: skip


def database_url() -> str:
    options = connection.settings_dict
    return f"postgresql://{options['USER']}@/{options['NAME']}?host={quote(options['HOST'], safe='')}"


def worker_environment() -> dict[str, str]:
    inherited_variables = {name: value for name, value in os.environ.items() if name not in ("DJANGO_SETTINGS_MODULE",)}
    return {
        **inherited_variables,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DATABASE_URL": database_url(),
        "REDIS_URL": settings.REDIS_URL,
        "SECRET_KEY": settings.SECRET_KEY,
        "SVC_PROCESS": "worker",
        "PYTHONWARNINGS": "ignore",
    }


class WorkerProcess:
    """A worker process whose output goes to a file."""

    def __init__(self, arguments: tuple[str, ...], log_file: IO[bytes]) -> None:
        self.log_file = log_file
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=worker_environment(),
            stdout=log_file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def output(self) -> str:
        return os.pread(self.log_file.fileno(), 1_000_000, 0).decode()

    def send_signal(self, signal_number: int) -> None:
        """Sends a signal to the process and its children."""
        os.killpg(self.process.pid, signal_number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def wait(self) -> None:
        """Waits until the process has ended."""
        self.process.wait(60)


@contextmanager
def running_worker(*arguments: str) -> Iterator[WorkerProcess]:
    """Starts a worker, and stops it at the end of the block."""
    with tempfile.TemporaryFile() as log_file:
        worker = WorkerProcess(arguments or ("-c", WORKER_SCRIPT), log_file)
        try:
            yield worker
        except BaseException:
            print(worker.output)
            raise
        finally:
            if worker.process.poll() is None:
                worker.kill()


@contextmanager
def another_connection() -> Iterator[psycopg.Connection[Any]]:
    with closing(psycopg.connect(database_url(), autocommit=True)) as new_connection:
        yield new_connection


@contextmanager
def block_writes(table: str) -> Iterator[None]:
    """Locks a table against writes until the end of the block."""
    with another_connection() as blocker, blocker.transaction():
        blocker.execute(f"LOCK TABLE {table} IN SHARE MODE")
        yield


def wait_for_blocked_connection(process_name: str = "worker") -> int:
    """Waits until a connection of the process is blocked by a lock; returns its backend process ID."""
    query = "SELECT pid FROM pg_stat_activity WHERE application_name = %s AND wait_event_type = 'Lock'"
    # A separate connection, because the view does not change within a transaction.
    with another_connection() as observer:
        (pid,) = eventually(lambda: observer.execute(query, [f"servicebase {process_name}"]).fetchone())
    return int(pid)


def wait_until_gone(pid: int) -> None:
    with another_connection() as observer:
        query = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
        eventually(lambda: observer.execute(query, [pid]).fetchone() is None)
