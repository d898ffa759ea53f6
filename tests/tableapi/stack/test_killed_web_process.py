"""A web process that dies during a write: with an `Idempotency-Key` the request can be repeated."""

import http.client
import os
import signal
from typing import Any

import psycopg
import pytest

from tests.config.shared import SharedServers
from tests.config.stack import Stack, eventually
from tests.tableapi.stack.callers import (
    AT_THE_GATE,
    Answer,
    Caller,
    gate_closed,
    wait_until_gone,
    wait_until_one_waits,
    while_written,
)
from tests.tableapi.stack.killing import HEADER

pytestmark = pytest.mark.stack

GONE = (http.client.HTTPException, OSError)


@pytest.fixture(scope="module")
def order(admin: Caller) -> str:
    return admin.design("sales_order", number_prefix="ORD")


@pytest.fixture
def orders(order: str, sql: psycopg.Connection) -> None:
    sql.execute("DROP TRIGGER IF EXISTS of_test ON records.sales_order")
    sql.execute("DELETE FROM records.sales_order")


def again(admin: Caller, *what: Any) -> Answer:
    """The same request, until a process is there to answer it."""

    def sent() -> Answer | None:
        try:
            return admin.send(*what)
        except GONE:
            return None

    result: Answer = eventually(sent)
    return result


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
def test_retry_after_the_commit_gets_the_first_response(
    orders: None, admin: Caller, sql: psycopg.Connection, method: str
):  # B54
    (old,) = admin.send("POST", "sales_order", {"name": "old"}).records
    path = "sales_order" if method == "POST" else f"sales_order/{old['sys_id']}"
    key = {"Idempotency-Key": f"killed-{method}"}
    what = (method, path, None if method == "DELETE" else {"name": "new"})
    text = "SELECT body::text, status FROM tableapi_idempotent_answer WHERE key = %s"

    with pytest.raises(GONE):
        admin.send(*what, {**key, HEADER: "1"})
    body, status = sql.execute(text, list(key.values())).fetchone()  # type: ignore[misc]  # it was committed
    before = admin_sees(admin)

    for _ in range(2):
        response = again(admin, *what, key)
        assert (response.content.decode(), response.status) == (body, status)
    assert admin_sees(admin) == before
    assert before == {"POST": [("old", 0), ("new", 0)], "PATCH": [("new", 1)], "DELETE": []}[method]


def admin_sees(admin: Caller) -> list[tuple[str, int]]:
    response = again(admin, "GET", "sales_order?sysparm_fields=name,sys_version")
    return [(record["name"], record["sys_version"]) for record in response.records]


def test_retry_before_the_commit_creates_the_record(
    orders: None, web: Stack, admin: Caller, servers: SharedServers, sql: psycopg.Connection
):  # B54
    while_written(sql, "sales_order", AT_THE_GATE)
    with gate_closed(servers):
        what = ("POST", "sales_order", {"name": "new"}, {"Idempotency-Key": "before"})
        link = admin.leave(*what)
        waiting = wait_until_one_waits(sql, "web")
        kill_the_one_that_serves(web)
        with pytest.raises(GONE):
            link.getresponse()
        link.close()
    wait_until_gone(sql, waiting)

    text = "SELECT count(*) FROM tableapi_idempotent_answer WHERE key = 'before'"
    count = f"SELECT (SELECT count(*) FROM records.sales_order), ({text})"
    assert sql.execute(count).fetchone() == (0, 0)
    response = again(admin, *what)
    assert response.status == 201
    assert again(admin, *what).content == response.content
    assert sql.execute(count).fetchone() == (1, 1)


def kill_the_one_that_serves(web: Stack) -> None:
    (serving,) = web.child("web_server").children(recursive=True)
    os.kill(serving.pid, signal.SIGKILL)
