"""A real worker creates the records of deferred tables, each once, whatever happens in the meantime."""

import psutil
import psycopg
import pytest

from tests.config.shared import SharedServers
from tests.config.stack import Stack, eventually
from tests.tableapi.stack.callers import (
    AT_THE_GATE,
    Begin,
    Caller,
    gate_closed,
    wait_until_gone,
    wait_until_one_waits,
    while_written,
)

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def worker(admin: Caller, begin: Begin) -> Stack:
    admin.design("plan", deferred_create=True, number_prefix="PLN")
    started, beat = begin("worker"), begin("beat")
    started.wait_for("ready")
    beat.wait_for("beat_leads")
    return started


def kill_all(host: Stack) -> None:
    """The worker and its children, as when memory runs out; what supervises them starts them again."""
    for child in psutil.Process(host.child(" worker ").pid).children(recursive=True):
        child.kill()
    host.child(" worker ").kill()


def test_deferred_record_exists_after_the_worker_ran(worker: Stack, admin: Caller, sql: psycopg.Connection):
    (created,) = admin.send("POST", "plan", {"name": "first"}).records
    path = f"plan/{created['sys_id']}"

    eventually(lambda: admin.send("GET", path).status == 200)
    (read,) = admin.send("GET", path).records
    assert {name: read[name] for name in ("name", "number", "sys_created_by")} == {
        name: created[name] for name in ("name", "number", "sys_created_by")
    }
    assert sql.execute("SELECT count(*) FROM tableapi_deferred_record").fetchone() == (0,)


def test_killed_worker_creates_the_record_once(
    worker: Stack, admin: Caller, servers: SharedServers, sql: psycopg.Connection
):
    # Only in the worker: the request tries the same insert first, and undoes it.
    only = "current_setting('application_name') = 'servicebase worker'"
    while_written(sql, "plan", f"IF {only} THEN {AT_THE_GATE}; END IF")
    with gate_closed(servers):
        (created,) = admin.send("POST", "plan", {"name": "second"}).records
        waiting = wait_until_one_waits(sql, "worker")
        kill_all(worker)
    wait_until_gone(sql, waiting)

    path = f"plan/{created['sys_id']}"
    eventually(lambda: admin.send("GET", path).status == 200)
    (read,) = admin.send("GET", path).records
    assert (read["name"], read["number"], read["sys_version"]) == ("second", created["number"], 0)
    made_ones = "SELECT count(*) FROM records.plan WHERE name = 'second'"
    count = f"SELECT ({made_ones}), (SELECT count(*) FROM tableapi_deferred_record)"
    eventually(lambda: sql.execute(count).fetchone() == (1, 0))
