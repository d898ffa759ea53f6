"""One PostgreSQL backend is killed: the embedded server restarts all of them, and the service recovers immediately."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import psutil
import psycopg
import pytest

from config.runtime.data_folder import DataFolder
from config.runtime.embedded_servers import Postgres
from tests.config.stack import Stack, eventually, manage

pytestmark = pytest.mark.stack

CALLER_COUNT = 4
TASKS_PATH = "/rest/v1/table/task"
BACKENDS_QUERY = "SELECT pid FROM pg_stat_activity WHERE application_name = 'servicebase web' ORDER BY pid"


@dataclass(frozen=True)
class TimedStatus:
    sent_at: float
    status: int


@dataclass(frozen=True)
class Product:
    stack: Stack
    key: str

    @property
    def database_url(self) -> str:
        return Postgres(DataFolder(self.stack.data_folder)).url

    def accepts_connections(self) -> bool:
        try:
            with psycopg.connect(self.database_url) as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)
        except psycopg.OperationalError:
            return False

    def write_until(self, stop_event: threading.Event, responses: list[TimedStatus]) -> None:
        while not stop_event.is_set():
            sent_at = time.monotonic()
            status = self.stack.call("POST", TASKS_PATH, {"short_description": "under load"}, key=self.key).status
            responses.append(TimedStatus(sent_at, status))

    def process_ids(self) -> set[int]:
        """The process ids of the service, without PostgreSQL."""
        parents = (self.stack.child("web_server"), self.stack.child(" worker "), self.stack.beat())
        return {process.pid for parent in parents for process in (parent, *parent.children())}


@pytest.fixture(scope="module")
def running_product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    stack = Stack(tmp_path_factory.mktemp("embedded"))
    try:
        stack.start().wait_until_up()
        yield Product(stack, manage("key", "admin", "test", env=stack.env).stdout.strip())
    finally:
        if stack.process.poll() is None:
            stack.stop()
        stack.end()


def test_requests_succeed_as_soon_as_postgresql_accepts_connections(running_product: Product):
    eventually(lambda: "beat_leads" in running_product.stack.output and running_product.stack.get("/readyz") == 200)
    pids_before, stop_event, responses = running_product.process_ids(), threading.Event(), list[TimedStatus]()
    with ThreadPoolExecutor(CALLER_COUNT) as pool:
        futures = [pool.submit(running_product.write_until, stop_event, responses) for _ in range(CALLER_COUNT)]
        try:
            eventually(lambda: len(responses) > 10 * CALLER_COUNT)
            with psycopg.connect(running_product.database_url) as connection:
                ((victim_pid,), *_) = connection.execute(BACKENDS_QUERY).fetchall()
            psutil.Process(victim_pid).kill()
            eventually(lambda: any(response.status == 503 for response in responses))
            eventually(running_product.accepts_connections, timeout_s=180)
            accepting_since = time.monotonic()
            eventually(lambda: sum(response.sent_at > accepting_since for response in responses) > 10 * CALLER_COUNT)
        finally:
            stop_event.set()
    for future in futures:
        future.result()

    assert {response.status for response in responses} == {201, 503}
    assert {response.status for response in responses if response.sent_at > accepting_since} == {201}
    eventually(lambda: running_product.stack.get("/readyz") == 200)
    assert pids_before == running_product.process_ids(), "a process was restarted"


def test_embedded_postgresql_recovers_without_syncing_each_file(running_product: Product):
    with psycopg.connect(running_product.database_url) as connection:
        row = connection.execute("SHOW recovery_init_sync_method").fetchone()

    assert row == ("syncfs" if psutil.LINUX else "fsync",)
