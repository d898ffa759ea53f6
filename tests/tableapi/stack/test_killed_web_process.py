"""A web process is killed during a write, and the client repeats the request with its `Idempotency-Key`."""

import http.client
import os
import signal
from typing import Any

import psycopg
import pytest

from tests.config.shared_servers import SharedServers
from tests.config.stack import Stack, eventually
from tests.tableapi.stack.callers import (
    WAIT_AT_GATE,
    ApiCaller,
    ApiResponse,
    closed_gate,
    create_write_trigger,
    wait_for_blocked_connection,
    wait_for_closed_connection,
)
from tests.tableapi.stack.kill_middleware import KILL_HEADER

pytestmark = pytest.mark.stack

CONNECTION_ERRORS = (http.client.HTTPException, OSError)


@pytest.fixture(scope="module")
def order_table(admin: ApiCaller) -> str:
    return admin.create_table("sales_order", number_prefix="ORD")


@pytest.fixture
def empty_order_table(order_table: str, database: psycopg.Connection) -> None:
    database.execute("DROP TRIGGER IF EXISTS of_test ON records.sales_order")
    database.execute("DELETE FROM records.sales_order")


def send_until_response(admin: ApiCaller, *request: Any) -> ApiResponse:
    """Repeat the request until a process responds."""

    def try_to_send() -> ApiResponse | None:
        try:
            return admin.send(*request)
        except CONNECTION_ERRORS:
            return None

    response: ApiResponse = eventually(try_to_send)
    return response


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
def test_retry_after_the_commit_gets_the_first_response(
    empty_order_table: None, admin: ApiCaller, database: psycopg.Connection, method: str
):  # B54
    (old_order,) = admin.send("POST", "sales_order", {"name": "old"}).records
    path = "sales_order" if method == "POST" else f"sales_order/{old_order['sys_id']}"
    key_header = {"Idempotency-Key": f"killed-{method}"}
    request = (method, path, None if method == "DELETE" else {"name": "new"})
    answers_query = "SELECT body::text, status FROM tableapi_idempotent_answer WHERE key = %s"

    with pytest.raises(CONNECTION_ERRORS):
        admin.send(*request, {**key_header, KILL_HEADER: "1"})
    body, status = database.execute(answers_query, list(key_header.values())).fetchone()  # type: ignore[misc]  # it was committed
    committed_orders = visible_orders(admin)

    for _ in range(2):
        response = send_until_response(admin, *request, key_header)
        assert (response.content.decode(), response.status) == (body, status)
    assert visible_orders(admin) == committed_orders
    assert committed_orders == {"POST": [("old", 0), ("new", 0)], "PATCH": [("new", 1)], "DELETE": []}[method]


def visible_orders(admin: ApiCaller) -> list[tuple[str, int]]:
    response = send_until_response(admin, "GET", "sales_order?sysparm_fields=name,sys_version")
    return [(record["name"], record["sys_version"]) for record in response.records]


def test_retry_before_the_commit_creates_the_record(
    empty_order_table: None, web: Stack, admin: ApiCaller, servers: SharedServers, database: psycopg.Connection
):  # B54
    create_write_trigger(database, "sales_order", WAIT_AT_GATE)
    with closed_gate(servers):
        request = ("POST", "sales_order", {"name": "new"}, {"Idempotency-Key": "before"})
        client_connection = admin.send_and_disconnect(*request)
        blocked_pid = wait_for_blocked_connection(database, "web")
        kill_serving_process(web)
        with pytest.raises(CONNECTION_ERRORS):
            client_connection.getresponse()
        client_connection.close()
    wait_for_closed_connection(database, blocked_pid)

    answers_query = "SELECT count(*) FROM tableapi_idempotent_answer WHERE key = 'before'"
    counts_query = f"SELECT (SELECT count(*) FROM records.sales_order), ({answers_query})"
    assert database.execute(counts_query).fetchone() == (0, 0)
    response = send_until_response(admin, *request)
    assert response.status == 201
    assert send_until_response(admin, *request).content == response.content
    assert database.execute(counts_query).fetchone() == (1, 1)


def kill_serving_process(web: Stack) -> None:
    (serving_process,) = web.child("web_server").children(recursive=True)
    os.kill(serving_process.pid, signal.SIGKILL)
