"""Responses while PostgreSQL or Valkey is unavailable or has no free connections, and the recovery."""

import http.client
import json
import signal
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import psutil
import psycopg
import pytest

from tests.config.shared_servers import ComponentStarter, SharedServers
from tests.config.stack import Stack, eventually, manage

pytestmark = pytest.mark.stack

PATHS = ("/api/me", "/rest/v1/auth/login", "/", "/login/", "/account/", "/admin/", "/api/schema", "/metrics", "/readyz")


@dataclass(frozen=True)
class TimedResponse:
    status: int
    headers: dict[str, str]
    body: str
    elapsed_s: float


@dataclass(frozen=True)
class Hosts:
    servers: SharedServers
    web: Stack
    worker: Stack
    beat: Stack
    key: str

    def get(self, path: str, authorization: str = "", accept: str = "*/*") -> TimedResponse:
        """Sends a request on a new connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.web.port, timeout=20)
        started_at = time.monotonic()
        try:
            connection.request("GET", path, headers={"Authorization": authorization, "Accept": accept})
            response = connection.getresponse()
            body = response.read().decode()
        finally:
            connection.close()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return TimedResponse(response.status, headers, body, time.monotonic() - started_at)

    def me(self) -> TimedResponse:
        return self.get("/api/me", f"Bearer {self.key}")

    def readiness(self) -> dict[str, str]:
        document: dict[str, str] = json.loads(self.get("/readyz").body)
        return document

    def processes(self) -> dict[int, psutil.Process]:
        """The processes of web, worker and beat, except children of the worker, which may end to free memory."""
        return {
            child.pid: child
            for host in (self.web, self.worker, self.beat)
            for child in psutil.Process(host.process.pid).children(recursive=host is not self.worker)
        }


@pytest.fixture(scope="module")
def hosts(servers: SharedServers, start_component: ComponentStarter) -> Hosts:
    web_stack, worker_stack, beat_stack = start_component("web"), start_component("worker"), start_component("beat")
    web_stack.wait_until_up()
    worker_stack.wait_for("ready")
    beat_stack.wait_for("beat_leads")
    key = manage("key", "admin", "test", env=web_stack.env).stdout.strip()
    hosts = Hosts(servers, web_stack, worker_stack, beat_stack, key)
    eventually(lambda: is_everything_ready(hosts))
    return hosts


def is_everything_ready(hosts: Hosts) -> bool:
    readiness = hosts.readiness()
    checks = ("database", "migrations", "vector", "broker", "worker", "beat")
    is_ready = readiness["status"] == "ready" and all(readiness[name] == "ok" for name in checks)
    return is_ready and hosts.me().status == 200


def is_retry_response(response: TimedResponse) -> bool:
    """Whether the response is a 503 that tells programs when to retry."""
    return (
        response.status == 503
        and int(response.headers["retry-after"]) > 0
        and response.headers["content-type"] == "application/json"
        and json.loads(response.body)["errors"][0]["code"] == "unavailable"
    )


def test_three_hosts_with_one_component_each_form_one_service(hosts: Hosts):
    assert is_everything_ready(hosts)


OUTAGES = [
    pytest.param(signal.SIGINT, 0, id="stopped"),
    pytest.param(signal.SIGQUIT, 0, id="crashed"),
    # Long enough that growing delays between retries would be noticed.
    pytest.param(signal.SIGINT, 20, id="long", marks=pytest.mark.nightly),
]


@pytest.mark.parametrize(("signal_number", "outage_s"), OUTAGES)
def test_requests_return_503_while_postgresql_is_down(hosts: Hosts, signal_number: int, outage_s: int):
    # C38
    processes_before = hosts.processes()
    outage_ends_at = time.monotonic() + outage_s
    hosts.servers.stop("postgres", signal_number)
    try:
        eventually(lambda: is_retry_response(hosts.me()), timeout_s=10)
        # The last result of a probe is cached for a second.
        eventually(lambda: hosts.get("/readyz").status == 503, timeout_s=5)
        responses = {path: hosts.get(path, accept="text/html") for path in PATHS}
        assert hosts.get("/healthz").status == 200
        assert responses["/"].status == 503 and "<html" in responses["/"].body and responses["/"].headers["retry-after"]
        assert {path: response.status for path, response in responses.items() if response.status == 500} == {}
        assert max(response.elapsed_s for response in responses.values()) < 3
        eventually(lambda: hosts.me().status == 503 and time.monotonic() > outage_ends_at)
    finally:
        hosts.servers.start_postgres()

    eventually(lambda: hosts.me().status == 200, timeout_s=6)
    eventually(lambda: is_everything_ready(hosts))
    recovered_at = database_time(hosts)
    eventually(lambda: min(heartbeat_times(hosts).values()) > recovered_at)
    assert processes_before.keys() - hosts.processes().keys() == set(), "a process was restarted"


def heartbeat_times(hosts: Hosts) -> dict[str, float]:
    with psycopg.connect(hosts.servers.postgres.url) as connection:
        return dict(connection.execute("SELECT name, extract(epoch FROM at)::float FROM system_heartbeat").fetchall())


def database_time(hosts: Hosts) -> float:
    with psycopg.connect(hosts.servers.postgres.url) as connection:
        row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float").fetchone()
    assert row is not None
    return float(row[0])


def test_requests_work_without_valkey_and_tasks_run_afterwards(hosts: Hosts):
    hosts.servers.stop("valkey", signal.SIGKILL)
    try:
        eventually(lambda: hosts.readiness()["broker"] == "away", timeout_s=10)
        assert hosts.get("/readyz").status == 200
        assert hosts.me().status == 200
        # X21: failed attempts are counted in PostgreSQL.
        statuses = [hosts.get("/api/me", f"Basic {b64encode(b'nobody:wrong').decode()}").status for _ in range(11)]
        assert statuses == [401] * 10 + [429]
    finally:
        hosts.servers.start_valkey()

    recovered_at = database_time(hosts)
    eventually(lambda: min(heartbeat_times(hosts).values()) > recovered_at)
    eventually(lambda: is_everything_ready(hosts))


@contextmanager
def exhausted_connections(hosts: Hosts) -> Iterator[Callable[[], bool]]:
    """Takes all connections of PostgreSQL; the yielded function repeats this, as a task may have freed one."""
    url = hosts.servers.postgres.url
    with ExitStack() as connections:
        first_connection = connections.enter_context(psycopg.connect(url, autocommit=True))

        def has_no_free_connection() -> bool:
            web_connections_query = "FROM pg_stat_activity WHERE application_name = 'servicebase web'"
            first_connection.execute(f"SELECT pg_terminate_backend(pid) {web_connections_query}")
            take_all_connections(connections, url)
            return first_connection.execute(f"SELECT 1 {web_connections_query}").fetchone() is None

        eventually(has_no_free_connection, timeout_s=20)
        yield has_no_free_connection


def take_all_connections(connections: ExitStack, url: str) -> None:
    while connection := take_one_connection(url):
        connections.enter_context(connection)


def take_one_connection(url: str) -> "psycopg.Connection[Any] | None":
    try:
        return psycopg.connect(url)
    except psycopg.OperationalError:
        return None


def test_exhausted_connections_return_503_within_two_seconds(hosts: Hosts):  # X07
    with exhausted_connections(hosts) as exhaust:
        responses = {
            "a probe": hosts.get("/healthz"),
            "no credentials": hosts.get("/api/me"),
            "a key of another form": hosts.get("/api/me", "Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln"),
            "no Base64": hosts.get("/api/me", "Basic !!"),
            "a long query": hosts.get("/api/me?" + "q" * 17_000, f"Bearer {hosts.key}"),
        }
        # A key is cached for a second.
        refusal = eventually(lambda: exhaust() and (response := hosts.me()).status != 200 and response, timeout_s=10)

    assert {name: response.status for name, response in responses.items()} == {
        "a probe": 200,
        "no credentials": 401,
        "a key of another form": 401,
        "no Base64": 401,
        "a long query": 414,
    }
    assert max(response.elapsed_s for response in responses.values()) < 1
    assert is_retry_response(refusal) and refusal.elapsed_s < 3
    eventually(lambda: hosts.me().status == 200, timeout_s=10)


def test_request_waits_at_most_two_seconds_for_a_lock(hosts: Hosts):
    with psycopg.connect(hosts.servers.postgres.url) as connection:
        connection.execute("LOCK TABLE accounts_access_key IN ACCESS EXCLUSIVE MODE")
        eventually(lambda: hosts.me().status != 200, timeout_s=10)  # a key is cached for a second
        refusal = hosts.me()
        connection.rollback()

    assert is_retry_response(refusal) and 1.5 < refusal.elapsed_s < 3
    assert hosts.me().status == 200
