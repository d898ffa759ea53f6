"""Plants secrets in every kind of input, then searches all places that unauthorized users could read."""

import json
import urllib.request
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
import redis

from bench.soak.run import running_product
from bench.soak.sign_ins import Browser, create_connection
from tests.accounts.callers import basic_auth
from tests.config.shared_servers import SharedServers
from tests.config.stack import Stack, manage
from tests.providers.hostile import HostileProvider

pytestmark = pytest.mark.stack

HISTORY_TABLES_QUERY = """
    SELECT format('%I.%I', schemaname, tablename)
    FROM pg_tables WHERE tablename ~ 'historical|admin_log|sign_in|deleted|deletion|undo|periodic'
        AND schemaname IN ('public', 'records')
"""
LOAD_PATH = "/load_text_to_collection?collection_name=canaries&doc_id="


@dataclass
class Canaries:
    """The planted secrets by name, and the responses of refused requests."""

    servers: SharedServers
    stack: Stack
    key: str
    secrets: dict[str, str] = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)
    broker_text: str = ""

    def plant(self, name: str) -> str:
        self.secrets[name] = f"canary-{name.replace(' ', '-')}-7Zq"
        return self.secrets[name]

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        response = self.stack.call(method, path, body, **{"key": self.key, **headers})
        if response.status >= 400:
            self.refusals.append(json.dumps(response.body))
        return response.body

    def create(self, path: str, body: Any) -> dict[str, Any]:
        record: dict[str, Any] = self.request("POST", f"/rest/v1/table/{path}", body)["data"][0]
        return record


@pytest.fixture(scope="module")
def canaries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Canaries]:
    with running_product(tmp_path_factory.mktemp("canaries")) as (servers, stack):
        key = manage("key", "admin", "canary", env=stack.env).stdout.strip()
        canaries = Canaries(servers, stack, key, {"a key": key})
        for plant in (plant_in_users, plant_in_single_sign_on, plant_in_columns, plant_in_documents, plant_in_urls):
            plant(canaries)
        yield canaries


def plant_in_users(canaries: Canaries) -> None:
    first_password = (canaries.stack.data_folder / "secrets" / "admin-password").read_text().strip()
    canaries.secrets["the first password"] = first_password
    credentials = {"username": "admin", "password": first_password}
    login = canaries.request("POST", "/rest/v1/auth/login", credentials)
    canaries.secrets["a key of a sign-in"] = login["data"]["auth_key"]
    wrong_password = canaries.plant("a wrong password")
    canaries.request("POST", "/rest/v1/auth/login", {**credentials, "password": wrong_password})
    headers = basic_auth("admin", wrong_password)
    canaries.secrets["a header"] = headers["Authorization"].removeprefix("Basic ")
    canaries.request("GET", "/api/me", **headers)
    canaries.request("GET", "/api/me", key=canaries.plant("a wrong key"))
    canaries.request("POST", "/rest/v1/table/user", {"login": "x" * 300, "password": canaries.plant("a new password")})


def plant_in_single_sign_on(canaries: Canaries) -> None:
    """Signs in through a correct provider, and once with an unknown code."""
    with HostileProvider() as idp:
        idp.client_secret = ""
        create_connection(canaries.stack, idp)
        idp.id_token = lambda claims: canaries.secrets.setdefault("an ID token", idp.sign({**claims, "at_hash": ...}))
        browser = Browser(canaries.stack)
        browser.sign_in(idp)
        canaries.secrets["a session"] = browser.cookies["servicebase_session"]
        _, page = browser.get(f"/sso/callback/?code={canaries.plant('a code')}&state={canaries.plant('a state')}")
        canaries.refusals.append(page)
    table = "oidc_setting"
    (record,) = canaries.request("GET", f"/rest/v1/table/{table}")["data"]
    payload = {"authorization_type": "code", "client_secret": canaries.plant("a client secret")}
    record_path = f"/rest/v1/table/{table}/{record['sys_id']}"
    canaries.request("PATCH", record_path, {**payload, "realm": "../x"})
    canaries.request("PATCH", record_path, {**payload, "colour": "red"})
    canaries.request("PATCH", record_path, payload)
    canaries.request("DELETE", record_path)


def plant_in_columns(canaries: Canaries) -> None:
    """A secret column of a designed table."""
    table_id = canaries.create("sys_db_table", {"name": "device", "label": "Device"})["sys_id"]
    for column in ({"name": "pin", "type": "password"}, {"name": "amount", "type": "integer"}):
        canaries.create("sys_db_column", {"table": table_id, "label": "L", **column})
    pin = canaries.plant("a secret column")
    record_id = canaries.create("device", {"pin": pin})["sys_id"]
    canaries.request("POST", "/rest/v1/table/device", {"pin": pin, "amount": "many"})
    canaries.request("PATCH", f"/rest/v1/table/device/{record_id}", {"pin": pin + " later"})
    canaries.request("GET", f"/rest/v1/table/device?sysparm_query=pin={pin}")
    canaries.request("DELETE", f"/rest/v1/table/device/{record_id}")


def plant_in_documents(canaries: Canaries) -> None:
    body = {"text": f"{canaries.plant('a text')} printer", "metadata": {"note": canaries.plant("metadata")}}
    canaries.request("POST", LOAD_PATH + "first", {**body, "wait": True})
    canaries.request("POST", LOAD_PATH + "second", {**body, "wait": "perhaps"})
    canaries.request("POST", LOAD_PATH + "third", {**body, "metadata": {"": body["text"]}})
    canaries.request("GET", f"/get_relevant_documents?collection_names=canaries&query={canaries.plant('a question')}")
    canaries.request(
        "GET", f"/get_relevant_documents?collection_names=canaries&query={canaries.secrets['a question']}&k=no"
    )
    with paused_worker(canaries.stack):  # its messages stay in the broker
        for doc_id in ("fourth", "fifth"):  # the worker has already received the first message
            canaries.request("POST", LOAD_PATH + doc_id, {**body, "wait": False})
        canaries.broker_text = broker_contents(canaries.servers)
    canaries.request("DELETE", "/delete_document_from_collection?collection_name=canaries&id_value=first")


def plant_in_urls(canaries: Canaries) -> None:
    """Secrets that users enter into a URL or the form of another page by mistake."""
    secret = canaries.plant("a URL parameter")
    for path in ("/nowhere", "/rest/v1/table/task", "/login/", "/sso/callback/", "/healthz", "/admin/"):
        _, page = Browser(canaries.stack).get(f"{path}?password={secret}&token={secret}")
        canaries.refusals.append(page)


@contextmanager
def paused_worker(stack: Stack) -> Iterator[None]:
    parent = stack.child(" worker ")
    processes = [parent, *parent.children(recursive=True)]
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        for process in processes:
            process.resume()


def broker_contents(servers: SharedServers) -> str:
    """The messages in the broker."""
    with redis.Redis.from_url(servers.valkey.url) as connection:
        messages: list[Any] = connection.lrange("servicebase", 0, -1)
    assert messages
    return "".join(str(message) + b64decode(json.loads(message)["body"]).decode() for message in messages)


def metrics_text(canaries: Canaries) -> str:
    request = urllib.request.Request(
        f"{canaries.stack.url}/metrics", headers={"Authorization": f"Bearer {canaries.key}"}
    )
    with urllib.request.urlopen(request, timeout=20) as response:
        text: str = response.read().decode()
    return text


def history_text(servers: SharedServers) -> str:
    with psycopg.connect(servers.postgres.url) as connection:
        table_names = [row[0] for row in connection.execute(HISTORY_TABLES_QUERY)]
        assert len(table_names) > 3
        queries = [f"SELECT row_to_json(t)::text FROM {name} t" for name in table_names]
        return "\n".join(str(connection.execute(query).fetchall()) for query in queries)


def log_text(stack: Stack) -> str:
    """The log lines of the processes, without what `up` prints to the terminal, such as the first password."""
    return "".join(line for line in stack.lines if " | " in line[:12])


def test_logs_broker_metrics_history_and_errors_contain_no_secret(canaries: Canaries):
    places = {
        "log": log_text(canaries.stack),
        "broker": canaries.broker_text,
        "metrics": metrics_text(canaries),
        "histories": history_text(canaries.servers),
        "refusals": "\n".join(canaries.refusals),
    }

    assert all(len(text) > 1000 for text in places.values())
    assert len(canaries.refusals) > 10 and len(canaries.secrets) > 12
    leaks = {
        (name, place) for name, secret in canaries.secrets.items() for place, text in places.items() if secret in text
    }
    assert leaks == set()


def test_files_contain_only_the_secrets_stored_there(canaries: Canaries):
    data_folder = canaries.stack.data_folder
    contents_by_path = {
        path: path.read_bytes() for path in data_folder.rglob("*") if path.is_file() and path.parent.name != "secrets"
    }

    assert contents_by_path
    leaks = {
        (name, str(path.relative_to(data_folder)))
        for name, secret in canaries.secrets.items()
        for path, content in contents_by_path.items()
        if secret.encode() in content
    }
    assert leaks == set()
