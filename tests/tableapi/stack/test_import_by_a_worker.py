"""A real worker imports a file. If it is killed in the middle, the next one continues, and nothing is written twice."""

import http.client
import json
from typing import Any

import psutil
import psycopg
import pytest

from tests.config.shared_servers import SharedServers
from tests.config.stack import Stack, eventually
from tests.tableapi.stack.callers import (
    WAIT_AT_GATE,
    ApiCaller,
    ComponentStarter,
    closed_gate,
    create_write_trigger,
    wait_for_blocked_connection,
    wait_for_closed_connection,
)

pytestmark = [pytest.mark.stack, pytest.mark.nightly]
LINES = 5_000
# A lease of a killed worker expires after a minute; a busy machine undoes a few hundred lines in a second.
TIMEOUT_S = 400.0


def send(admin: ApiCaller, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", admin.web.port, timeout=30)
    headers = {"Authorization": f"Bearer {admin.key}", "Content-Type": "text/csv"}
    connection.request(method, f"/rest/v1/import/{path}", body, headers)
    response = connection.getresponse()
    content = json.loads(response.read())
    connection.close()
    assert response.status in (200, 202), content
    return dict(content["data"][0])


def kill_worker(host: Stack) -> None:
    for child in psutil.Process(host.child(" worker ").pid).children(recursive=True):
        child.kill()
    host.child(" worker ").kill()


@pytest.fixture(scope="module")
def worker(start_component: ComponentStarter) -> Stack:
    worker_host, beat = start_component("worker"), start_component("beat")
    worker_host.wait_for("ready")
    beat.wait_for("beat_leads")
    return worker_host


@pytest.mark.parametrize("on_error", ["continue", "stop"])
def test_killed_worker_writes_each_line_once(
    worker: Stack, admin: ApiCaller, servers: SharedServers, database: psycopg.Connection, on_error: str
):
    table = f"crate_{on_error}"
    admin.create_table(table)
    create_write_trigger(database, table, f"IF NEW.name = 'n3500' THEN {WAIT_AT_GATE}; END IF")
    content = "name\n" + "".join(f"n{number}\n" for number in range(LINES))
    with closed_gate(servers):
        job = send(admin, "POST", f"{table}?on_error={on_error}", content.encode())
        blocked_pid = wait_for_blocked_connection(database, "worker")
        progress = send(admin, "GET", f"{table}/{job['sys_id']}")
        assert progress["state"] == "writing" and (on_error == "stop" or progress["processed"] == 3_000)
        kill_worker(worker)
    wait_for_closed_connection(database, blocked_pid)
    eventually(lambda: send(admin, "GET", f"{table}/{job['sys_id']}")["state"] == "done", TIMEOUT_S)
    rows = database.execute(f"SELECT count(*), count(DISTINCT name) FROM records.{table}").fetchone()
    assert rows == (LINES, LINES)
    assert send(admin, "GET", f"{table}/{job['sys_id']}")["created"] == LINES
    send(admin, "POST", f"{table}/{job['sys_id']}/undo")
    eventually(lambda: send(admin, "GET", f"{table}/{job['sys_id']}")["state"] == "undone", TIMEOUT_S)
    assert database.execute(f"SELECT count(*) FROM records.{table}").fetchone() == (0,)
