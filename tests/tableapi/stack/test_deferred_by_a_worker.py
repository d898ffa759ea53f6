"""A real worker creates the records of deferred tables, each once, whatever happens in the meantime."""

import psutil
import psycopg
import pytest

from tests.config.shared import SharedServers
from tests.config.stack import Stack, eventually
from tests.tableapi.stack.callers import (
    WAIT_AT_GATE,
    ApiCaller,
    ComponentStarter,
    closed_gate,
    wait_until_gone,
    wait_until_one_waits,
    write_trigger,
)

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def worker(admin: ApiCaller, start_component: ComponentStarter) -> Stack:
    admin.design("plan", deferred_create=True, number_prefix="PLN")
    started, beat = start_component("worker"), start_component("beat")
    started.wait_for("ready")
    beat.wait_for("beat_leads")
    return started


def kill_all(host: Stack) -> None:
    """The worker and its children, as when memory runs out; what supervises them starts them again."""
    for child in psutil.Process(host.child(" worker ").pid).children(recursive=True):
        child.kill()
    host.child(" worker ").kill()


def test_deferred_record_exists_after_the_worker_ran(worker: Stack, admin: ApiCaller, sql: psycopg.Connection):
    (created,) = admin.send("POST", "plan", {"name": "first"}).records
    path = f"plan/{created['sys_id']}"

    eventually(lambda: admin.send("GET", path).status == 200)
    (record,) = admin.send("GET", path).records
    assert {name: record[name] for name in ("name", "number", "sys_created_by")} == {
        name: created[name] for name in ("name", "number", "sys_created_by")
    }
    assert sql.execute("SELECT count(*) FROM tableapi_deferred_record").fetchone() == (0,)


def test_killed_worker_creates_the_record_once(
    worker: Stack, admin: ApiCaller, servers: SharedServers, sql: psycopg.Connection
):
    # Only in the worker: the request tries the same insert first, and undoes it.
    worker_condition = "current_setting('application_name') = 'servicebase worker'"
    write_trigger(sql, "plan", f"IF {worker_condition} THEN {WAIT_AT_GATE}; END IF")
    with closed_gate(servers):
        (created,) = admin.send("POST", "plan", {"name": "second"}).records
        blocked_pid = wait_until_one_waits(sql, "worker")
        kill_all(worker)
    wait_until_gone(sql, blocked_pid)

    path = f"plan/{created['sys_id']}"
    eventually(lambda: admin.send("GET", path).status == 200)
    (record,) = admin.send("GET", path).records
    assert (record["name"], record["number"], record["sys_version"]) == ("second", created["number"], 0)
    count_query = "SELECT count(*) FROM records.plan WHERE name = 'second'"
    count = f"SELECT ({count_query}), (SELECT count(*) FROM tableapi_deferred_record)"
    eventually(lambda: sql.execute(count).fetchone() == (1, 0))
