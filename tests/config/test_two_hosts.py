"""Two complete hosts, each with web, worker and beat, over TCP with one PostgreSQL and one Valkey."""

import re
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from accounts.authentication.access_keys import CACHE_TTL_S
from bench.soak.sign_ins import Browser, provider_with_new_users
from tests.collections_app.ingest.stack.product import UNFINISHED
from tests.config.shared_servers import SharedServers
from tests.config.stack import Stack, StackResponse, eventually, manage
from tests.config.tcp_proxy import TcpProxy

pytestmark = pytest.mark.stack

TABLES_PATH, COLUMNS_PATH, RULES_PATH = [
    f"/rest/v1/table/{name}" for name in ("sys_db_table", "sys_db_column", "sys_acl")
]
TASKS_PATH = "/rest/v1/table/task"
PASSWORD = "correct horse 42"
CREATE_USER_SCRIPT = f"from accounts.models import User; User.objects.create_user('somebody', '{PASSWORD}')"
# Other workers get the documents of killed workers when their leases have expired.
EXPIRE_LEASES_QUERY = "UPDATE document_version SET lease_until = now() WHERE lease_until IS NOT NULL"


class Host:
    """One of the two hosts, with its own connections to the servers."""

    def __init__(self, folder: Path, servers: SharedServers, **variables: str) -> None:
        self.postgres_proxy = TcpProxy(servers.folder.sockets / ".s.PGSQL.5432")
        self.valkey_proxy = TcpProxy(servers.valkey.socket)
        server_urls = {
            "DATABASE_URL": f"postgresql://servicebase@127.0.0.1:{self.postgres_proxy.port}/servicebase",
            "REDIS_URL": f"redis://127.0.0.1:{self.valkey_proxy.port}/0",
        }
        self.stack = Stack(folder, **{**servers.environ, **server_urls, **variables})

    def disconnect(self) -> None:
        self.postgres_proxy.disconnect()
        self.valkey_proxy.disconnect()

    def reconnect(self) -> None:
        self.valkey_proxy.reconnect()
        self.postgres_proxy.reconnect()

    @property
    def leadership_count(self) -> int:
        return self.stack.output.count("beat_leads")

    @property
    def is_leader(self) -> bool:
        """Whether the last status of its beat in the log is that it leads."""
        return re.findall("beat_(leads|follows|cannot_lead)", self.stack.output)[-1:] == ["leads"]

    def end(self) -> None:
        with suppress(subprocess.TimeoutExpired):
            if self.stack.process.poll() is None:
                self.stack.stop()
        self.stack.end()
        self.postgres_proxy.end()
        self.valkey_proxy.end()


@dataclass
class Hosts:
    servers: SharedServers
    first: Host
    second: Host
    key: str = ""

    def leader_and_standby(self) -> tuple[Host, Host]:
        """The host whose beat leads, and the other host."""
        eventually(lambda: self.first.is_leader != self.second.is_leader)
        return (self.first, self.second) if self.first.is_leader else (self.second, self.first)

    def execute(self, query: str) -> list[Any]:
        with psycopg.connect(self.servers.postgres.url, autocommit=True) as connection:
            cursor = connection.execute(query)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """Two hosts that start at the same time with an empty database."""
    servers = SharedServers(tmp_path_factory.mktemp("servers")).start_postgres("-c", "synchronous_commit=on")
    servers.start_valkey()
    root = tmp_path_factory.mktemp("hosts")
    both_hosts = [Host(root / name, servers, SVC_ALLOW_HTTP_IDP="1") for name in ("first", "second")]
    hosts = Hosts(servers, both_hosts[0], both_hosts[1])
    try:
        for host in both_hosts:
            host.stack.env["SVC_BASE_URL"] = hosts.first.stack.url  # like requests through one proxy
            host.stack.start()
        for host in both_hosts:
            host.stack.wait_until_up()
            host.stack.wait_for("beat_(leads|follows)")
        eventually(lambda: all(host.stack.get("/readyz") == 200 for host in both_hosts))
        hosts.key = manage("key", "admin", "test", env=hosts.first.stack.env).stdout.strip()
        assert manage("shell", "-c", CREATE_USER_SCRIPT, env=hosts.first.stack.env).returncode == 0
        yield hosts
    finally:
        for host in both_hosts:
            host.end()
        servers.end()


def call_and_check(host: Host, method: str, path: str, body: Any = None, *, key: str, **headers: str) -> StackResponse:
    response = host.stack.call(method, path, body, key=key, **headers)
    assert response.status < 300, response
    return response


def only_record(response: StackResponse) -> dict[str, Any]:
    record: dict[str, Any]
    (record,) = response.body["data"]
    return record


def test_new_tables_and_columns_are_visible_on_the_other_host(hosts: Hosts):
    key = hosts.key
    assert hosts.second.stack.call("GET", "/rest/v1/table/incident", key=key).status == 404

    table = only_record(
        call_and_check(hosts.first, "POST", TABLES_PATH, {"name": "incident", "label": "Incident"}, key=key)
    )
    assert call_and_check(hosts.second, "GET", "/rest/v1/table/incident", key=key).body["data"] == []

    column = {"table": table["sys_id"], "name": "cause", "label": "Cause", "type": "string"}
    call_and_check(hosts.second, "POST", COLUMNS_PATH, column, key=key)
    response = call_and_check(hosts.first, "POST", "/rest/v1/table/incident", {"cause": "A filter is clogged"}, key=key)
    assert only_record(response)["cause"] == "A filter is clogged"

    call_and_check(hosts.second, "DELETE", f"/rest/v1/table/incident/{only_record(response)['sys_id']}", key=key)
    call_and_check(hosts.first, "DELETE", f"{TABLES_PATH}/{table['sys_id']}", key=key)
    assert hosts.second.stack.call("GET", "/rest/v1/table/incident", key=key).status == 404


def test_new_rules_apply_on_the_other_host(hosts: Hosts):
    user_key = manage("key", "somebody", "rules", env=hosts.first.stack.env).stdout.strip()
    (task_table_id,) = hosts.execute("SELECT sys_id FROM sys_db_table WHERE name = 'task'")[0]
    assert hosts.second.stack.call("GET", f"{TASKS_PATH}?sysparm_query=priority=1", key=user_key).body["data"] == []

    rule = {"operation": "read", "table": str(task_table_id), "condition": "priority=1"}
    created_rule = only_record(call_and_check(hosts.first, "POST", RULES_PATH, rule, key=hosts.key))
    assert call_and_check(hosts.second, "GET", f"{TASKS_PATH}?sysparm_query=priority=1", key=user_key).body["data"]

    call_and_check(hosts.second, "PATCH", f"{RULES_PATH}/{created_rule['sys_id']}", {"active": False}, key=hosts.key)
    assert call_and_check(hosts.first, "GET", f"{TASKS_PATH}?sysparm_query=priority=1", key=user_key).body["data"] == []


def test_key_revoked_on_one_host_is_refused_on_the_other_within_a_second(hosts: Hosts):
    user_key = manage("key", "somebody", "gone", env=hosts.first.stack.env).stdout.strip()
    assert call_and_check(hosts.second, "GET", "/api/me", key=user_key).body["login"] == "somebody"

    hosts.execute("DELETE FROM accounts_access_key WHERE name = 'gone'")
    time.sleep(CACHE_TTL_S)  # as long as the key may be cached

    assert hosts.second.stack.call("GET", "/api/me", key=user_key).status == 401


def test_user_deactivated_on_one_host_is_refused_on_the_other_within_a_second(hosts: Hosts):
    user_key = manage("key", "somebody", "inactive", env=hosts.first.stack.env).stdout.strip()
    assert call_and_check(hosts.second, "GET", "/api/me", key=user_key).body["login"] == "somebody"
    (user_id,) = hosts.execute("SELECT sys_id FROM public.user WHERE login = 'somebody'")[0]
    user_path = f"/rest/v1/table/user/{user_id}"

    call_and_check(hosts.first, "PATCH", user_path, {"active": False}, key=hosts.key)
    time.sleep(CACHE_TTL_S)

    assert hosts.second.stack.call("GET", "/api/me", key=user_key).status == 401
    call_and_check(hosts.second, "PATCH", user_path, {"active": True}, key=hosts.key)


def test_write_sent_to_both_hosts_is_executed_once(hosts: Hosts):
    headers = {"Idempotency-Key": "one-write-for-both"}
    sys_ids = [
        only_record(call_and_check(host, "POST", TASKS_PATH, {"short_description": "Once"}, key=hosts.key, **headers))[
            "sys_id"
        ]
        for host in (hosts.first, hosts.second)
    ]

    assert sys_ids[0] == sys_ids[1]


def test_sign_in_can_begin_on_one_host_and_end_on_the_other(hosts: Hosts):
    """A proxy may send each request of a browser to another host."""
    with provider_with_new_users(hosts.first.stack) as idp:
        browser = Browser(hosts.first.stack)
        start_response, _ = browser.get("/sso/start/")
        callback_url = idp.authorize(start_response.headers["Location"])
        browser.port = hosts.second.stack.port
        response, page = browser.get(callback_url.removeprefix(hosts.first.stack.url))
        assert (response.status, response.headers["Location"]) == (302, "/"), page
        browser.port = hosts.first.stack.port
        _, page = browser.get("/account/")

    assert "person" in page


def test_second_beat_takes_over_when_the_leader_is_cut_off(hosts: Hosts):  # X18
    leader, standby = hosts.leader_and_standby()
    leader_count, standby_count = leader.leadership_count, standby.leadership_count

    leader.disconnect()
    try:
        eventually(lambda: standby.is_leader)
        # The disconnected host refuses requests; the other one serves them.
        assert leader.stack.call("GET", TASKS_PATH, key=hosts.key).status == 503
        assert leader.stack.get("/healthz") == 200
        assert call_and_check(standby, "GET", TASKS_PATH, key=hosts.key)
    finally:
        leader.reconnect()

    eventually(lambda: leader.stack.call("GET", TASKS_PATH, key=hosts.key).status == 200)
    eventually(lambda: leader.stack.get("/readyz") == 200)
    eventually(lambda: not leader.is_leader)  # the host notices at its next tick
    assert (leader.leadership_count, standby.leadership_count) == (leader_count, standby_count + 1)
    assert standby.is_leader


def test_killed_host_loses_no_acknowledged_write(hosts: Hosts):  # C33
    victim, survivor = hosts.leader_and_standby()
    leadership_count_before = survivor.leadership_count
    record_ids: set[str] = set()
    doc_ids: set[str] = set()

    def write_task(number: int) -> None:
        response = victim.stack.call("POST", TASKS_PATH, {"short_description": f"Kept {number}"}, key=hosts.key)
        if response.status == 201:
            record_ids.add(only_record(response)["sys_id"])
        body = {"text": f"Sentence {number}. " * 400, "metadata": {}, "wait": False}
        path = f"/load_text_to_collection?collection_name=kept&doc_id=kept-{number}"
        if victim.stack.call("POST", path, body, key=hosts.key).status == 202:
            doc_ids.add(f"kept-{number}")

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(write_task, number) for number in range(200)]
        eventually(lambda: len(record_ids) >= 20 and len(doc_ids) >= 20)
        victim.stack.kill_all()
        for future in futures:
            future.exception()
    hosts.execute(EXPIRE_LEASES_QUERY)

    eventually(lambda: hosts.execute(UNFINISHED) == [(0,)], timeout_s=120)
    assert len(doc_ids) < 200, "the host was killed before the end"
    stored_ids = {sys_id for (sys_id,) in hosts.execute("SELECT sys_id::text FROM records.task")}
    assert record_ids <= stored_ids
    passages = call_and_check(
        survivor, "GET", "/get_content_by_tag?collection_name=kept&tag_info=&limit=200", key=hosts.key
    ).body
    assert doc_ids <= {passage["doc_id"] for passage in passages}
    eventually(lambda: survivor.leadership_count == leadership_count_before + 1)
