"""Secrets are sent through every entrance, then searched for wherever an unauthorized person could look."""

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

from bench.soak.run import product
from bench.soak.sign_ins import Browser, connect
from tests.accounts.callers import basic_auth
from tests.config.shared import SharedServers
from tests.config.stack import Stack, manage
from tests.providers.hostile import HostileProvider

pytestmark = pytest.mark.stack

HISTORIES = """
    SELECT format('%I.%I', schemaname, tablename)
    FROM pg_tables WHERE tablename ~ 'historical|admin_log|sign_in|deleted|deletion|undo|periodic'
        AND schemaname IN ('public', 'records')
"""
LOAD = "/load_text_to_collection?collection_name=canaries&doc_id="


@dataclass
class Planted:
    """What was planted, by what it is, and each answer that was a refusal."""

    servers: SharedServers
    stack: Stack
    key: str
    secrets: dict[str, str] = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)
    in_broker: str = ""

    def plant(self, name: str) -> str:
        self.secrets[name] = f"canary-{name.replace(' ', '-')}-7Zq"
        return self.secrets[name]

    def asks(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        response = self.stack.call(method, path, body, **{"key": self.key, **headers})
        if response.status >= 400:
            self.refusals.append(json.dumps(response.body))
        return response.body

    def makes(self, path: str, body: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.asks("POST", f"/rest/v1/table/{path}", body)["data"][0]
        return result


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    with product(tmp_path_factory.mktemp("canaries")) as (servers, stack):
        key = manage("key", "admin", "canary", env=stack.env).stdout.strip()
        planted = Planted(servers, stack, key, {"a key": key})
        for fill in (people, signing_in, columns, documents, addresses):
            fill(planted)
        yield planted


def people(planted: Planted) -> None:
    first = (planted.stack.data / "secrets" / "admin-password").read_text().strip()
    planted.secrets["the first password"] = first
    values = {"username": "admin", "password": first}
    planted.secrets["a key of a sign-in"] = planted.asks("POST", "/rest/v1/auth/login", values)["data"]["auth_key"]
    wrong = planted.plant("a wrong password")
    planted.asks("POST", "/rest/v1/auth/login", {**values, "password": wrong})
    header = basic_auth("admin", wrong)
    planted.secrets["a header"] = header["Authorization"].removeprefix("Basic ")
    planted.asks("GET", "/api/me", **header)
    planted.asks("GET", "/api/me", key=planted.plant("a wrong key"))
    planted.asks("POST", "/rest/v1/table/user", {"login": "x" * 300, "password": planted.plant("a new password")})


def signing_in(planted: Planted) -> None:
    """By a provider that is right, and once by a code that it does not know."""
    with HostileProvider() as idp:
        idp.client_secret = ""
        connect(planted.stack, idp)
        idp.id_token = lambda claims: planted.secrets.setdefault("an ID token", idp.sign({**claims, "at_hash": ...}))
        browser = Browser(planted.stack)
        browser.sign_in(idp)
        planted.secrets["a session"] = browser.cookies["servicebase_session"]
        _, page = browser.get(f"/sso/callback/?code={planted.plant('a code')}&state={planted.plant('a state')}")
        planted.refusals.append(page)
    setting = "oidc_setting"
    (created,) = planted.asks("GET", f"/rest/v1/table/{setting}")["data"]
    secret = {"authorization_type": "code", "client_secret": planted.plant("a client secret")}
    one = f"/rest/v1/table/{setting}/{created['sys_id']}"
    planted.asks("PATCH", one, {**secret, "realm": "../x"})
    planted.asks("PATCH", one, {**secret, "colour": "red"})
    planted.asks("PATCH", one, secret)
    planted.asks("DELETE", one)


def columns(planted: Planted) -> None:
    """A secret column of a table that an administrator made."""
    table = planted.makes("sys_db_table", {"name": "device", "label": "Device"})["sys_id"]
    for column in ({"name": "pin", "type": "password"}, {"name": "amount", "type": "integer"}):
        planted.makes("sys_db_column", {"table": table, "label": "L", **column})
    pin = planted.plant("a secret column")
    record = planted.makes("device", {"pin": pin})["sys_id"]
    planted.asks("POST", "/rest/v1/table/device", {"pin": pin, "amount": "many"})
    planted.asks("PATCH", f"/rest/v1/table/device/{record}", {"pin": pin + " later"})
    planted.asks("GET", f"/rest/v1/table/device?sysparm_query=pin={pin}")
    planted.asks("DELETE", f"/rest/v1/table/device/{record}")


def documents(planted: Planted) -> None:
    text = {"text": f"{planted.plant('a text')} printer", "metadata": {"note": planted.plant("metadata")}}
    planted.asks("POST", LOAD + "first", {**text, "wait": True})
    planted.asks("POST", LOAD + "second", {**text, "wait": "perhaps"})
    planted.asks("POST", LOAD + "third", {**text, "metadata": {"": text["text"]}})
    planted.asks("GET", f"/get_relevant_documents?collection_names=canaries&query={planted.plant('a question')}")
    planted.asks("GET", f"/get_relevant_documents?collection_names=canaries&query={planted.secrets['a question']}&k=no")
    with worker_paused(planted.stack):  # what it is told lies in the broker then
        for doc_id in ("fourth", "fifth"):  # it waits for the first with a hand outstretched
            planted.asks("POST", LOAD + doc_id, {**text, "wait": False})
        planted.in_broker = broker(planted.servers)
    planted.asks("DELETE", "/delete_document_from_collection?collection_name=canaries&id_value=first")


def addresses(planted: Planted) -> None:
    """Where people put them by mistake: into the address, into a header, into a form of another page."""
    secret = planted.plant("of an address")
    for path in ("/nowhere", "/rest/v1/table/task", "/login/", "/sso/callback/", "/healthz", "/admin/"):
        _, page = Browser(planted.stack).get(f"{path}?password={secret}&token={secret}")
        planted.refusals.append(page)


@contextmanager
def worker_paused(stack: Stack) -> Iterator[None]:
    main = stack.child(" worker ")
    processes = [main, *main.children(recursive=True)]
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        for process in processes:
            process.resume()


def broker(servers: SharedServers) -> str:
    """The messages that lie in it."""
    with redis.Redis.from_url(servers.valkey.url) as link:
        messages: list[Any] = link.lrange("servicebase", 0, -1)
    assert messages
    return "".join(str(message) + b64decode(json.loads(message)["body"]).decode() for message in messages)


def metrics(planted: Planted) -> str:
    request = urllib.request.Request(f"{planted.stack.url}/metrics", headers={"Authorization": f"Bearer {planted.key}"})
    with urllib.request.urlopen(request, timeout=20) as response:
        text: str = response.read().decode()
    return text


def histories(servers: SharedServers) -> str:
    with psycopg.connect(servers.postgres.url) as link:
        tables = [row[0] for row in link.execute(HISTORIES)]
        assert len(tables) > 3
        return "\n".join(str(link.execute(f"SELECT row_to_json(t)::text FROM {name} t").fetchall()) for name in tables)


def log(stack: Stack) -> str:
    """What `up` says itself, the first password once, goes to the terminal."""
    return "".join(line for line in stack.lines if " | " in line[:12])


def test_no_secret_is_in_logs_broker_metrics_history_or_errors(planted: Planted):
    places = {
        "log": log(planted.stack),
        "broker": planted.in_broker,
        "metrics": metrics(planted),
        "histories": histories(planted.servers),
        "refusals": "\n".join(planted.refusals),
    }

    assert all(len(text) > 1000 for text in places.values())
    assert len(planted.refusals) > 10 and len(planted.secrets) > 12
    result = {
        (name, place) for name, secret in planted.secrets.items() for place, text in places.items() if secret in text
    }
    assert result == set()


def test_files_contain_only_the_secrets_stored_there(planted: Planted):
    own = planted.stack.data
    texts = {path: path.read_bytes() for path in own.rglob("*") if path.is_file() and path.parent.name != "secrets"}

    assert texts
    result = {
        (name, str(path.relative_to(own)))
        for name, secret in planted.secrets.items()
        for path, text in texts.items()
        if secret.encode() in text
    }
    assert result == set()
