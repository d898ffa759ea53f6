"""A real worker creates each deferred record exactly once, even if it is killed."""

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

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def worker(admin: ApiCaller, start_component: ComponentStarter) -> Stack:
    admin.create_table("plan", deferred_create=True, number_prefix="PLN")
    worker_host, beat = start_component("worker"), start_component("beat")
    worker_host.wait_for("ready")
    beat.wait_for("beat_leads")
    return worker_host


def kill_worker(host: Stack) -> None:
    """Kill the worker and its children, as when memory runs out. The supervisor restarts them."""
    for child in psutil.Process(host.child(" worker ").pid).children(recursive=True):
        child.kill()
    host.child(" worker ").kill()


def test_deferred_record_exists_after_the_worker_ran(worker: Stack, admin: ApiCaller, database: psycopg.Connection):
    (created_record,) = admin.send("POST", "plan", {"name": "first"}).records
    path = f"plan/{created_record['sys_id']}"

    eventually(lambda: admin.send("GET", path).status == 200)
    (record,) = admin.send("GET", path).records
    assert {name: record[name] for name in ("name", "number", "sys_created_by")} == {
        name: created_record[name] for name in ("name", "number", "sys_created_by")
    }
    assert database.execute("SELECT count(*) FROM tableapi_deferred_record").fetchone() == (0,)


def test_killed_worker_creates_the_record_once(
    worker: Stack, admin: ApiCaller, servers: SharedServers, database: psycopg.Connection
):
    # Only in the worker, as the request tries the same insert first and rolls it back.
    worker_condition = "current_setting('application_name') = 'servicebase worker'"
    create_write_trigger(database, "plan", f"IF {worker_condition} THEN {WAIT_AT_GATE}; END IF")
    with closed_gate(servers):
        (created_record,) = admin.send("POST", "plan", {"name": "second"}).records
        blocked_pid = wait_for_blocked_connection(database, "worker")
        kill_worker(worker)
    wait_for_closed_connection(database, blocked_pid)

    path = f"plan/{created_record['sys_id']}"
    eventually(lambda: admin.send("GET", path).status == 200)
    (record,) = admin.send("GET", path).records
    assert (record["name"], record["number"], record["sys_version"]) == ("second", created_record["number"], 0)
    record_count_query = "SELECT count(*) FROM records.plan WHERE name = 'second'"
    counts_query = f"SELECT ({record_count_query}), (SELECT count(*) FROM tableapi_deferred_record)"
    eventually(lambda: database.execute(counts_query).fetchone() == (1, 0))
