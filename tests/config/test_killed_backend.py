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
TASKS = "/rest/v1/table/task"
BACKENDS_QUERY = "SELECT pid FROM pg_stat_activity WHERE application_name = 'servicebase web' ORDER BY pid"


@dataclass(frozen=True)
class Reply:
    sent_at: float
    status: int


@dataclass(frozen=True)
class Product:
    stack: Stack
    key: str

    @property
    def database(self) -> str:
        return Postgres(DataFolder(self.stack.data)).url

    def accepts_connections(self) -> bool:
        try:
            with psycopg.connect(self.database) as link:
                return link.execute("SELECT 1").fetchone() == (1,)
        except psycopg.OperationalError:
            return False

    def write_until(self, is_over: threading.Event, replies: list[Reply]) -> None:
        while not is_over.is_set():
            sent_at = time.monotonic()
            status = self.stack.call("POST", TASKS, {"short_description": "under load"}, key=self.key).status
            replies.append(Reply(sent_at, status))

    def processes(self) -> set[int]:
        """The process ids of the service, without PostgreSQL."""
        parents = (self.stack.child("web_server"), self.stack.child(" worker "), self.stack.beat())
        return {process.pid for part in parents for process in (part, *part.children())}


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


def test_requests_are_answered_as_soon_as_postgresql_accepts_connections(running_product: Product):
    eventually(lambda: "beat_leads" in running_product.stack.output and running_product.stack.get("/readyz") == 200)
    processes_before, is_over, replies = running_product.processes(), threading.Event(), list[Reply]()
    with ThreadPoolExecutor(CALLER_COUNT) as pool:
        futures = [pool.submit(running_product.write_until, is_over, replies) for _ in range(CALLER_COUNT)]
        try:
            eventually(lambda: len(replies) > 10 * CALLER_COUNT)
            with psycopg.connect(running_product.database) as link:
                ((victim,), *_) = link.execute(BACKENDS_QUERY).fetchall()
            psutil.Process(victim).kill()
            eventually(lambda: any(reply.status == 503 for reply in replies))
            eventually(running_product.accepts_connections, timeout_s=180)
            accepting_since = time.monotonic()
            eventually(lambda: len([reply for reply in replies if reply.sent_at > accepting_since]) > 10 * CALLER_COUNT)
        finally:
            is_over.set()
    for future in futures:
        future.result()

    assert {reply.status for reply in replies} == {201, 503}
    assert {reply.status for reply in replies if reply.sent_at > accepting_since} == {201}
    eventually(lambda: running_product.stack.get("/readyz") == 200)
    assert processes_before == running_product.processes(), "a process was restarted"


def test_embedded_postgresql_recovers_without_syncing_each_file(running_product: Product):
    with psycopg.connect(running_product.database) as link:
        row = link.execute("SHOW recovery_init_sync_method").fetchone()

    assert row == ("syncfs" if psutil.LINUX else "fsync",)
