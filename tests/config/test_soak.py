"""The short form of `./run bench soak`: callers of all kinds while parts are killed, and what is so afterwards."""

import json
import urllib.request
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest
import redis

from bench.soak.run import Soak, product, soak
from bench.soak.tally import SETTLED_AFTER_S, Tally
from bench.soak.work import COLLECTION, TABLE
from tests.config.shared import SharedServers
from tests.config.stack import Stack

pytestmark = pytest.mark.stack

HISTORIES = """
    SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
    WHERE tablename ~ 'historical|admin_log|sign_in_log|deleted|undo' AND schemaname IN ('public', 'records')
"""


@dataclass(frozen=True)
class Soaked:
    servers: SharedServers
    stack: Stack
    found: Soak


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Soaked]:
    with product(tmp_path_factory.mktemp("soak")) as (servers, stack):
        yield Soaked(servers, stack, soak(servers, stack, callers=6, seconds=180, every_s=SETTLED_AFTER_S + 1, most=4))


def test_what_was_acknowledged_is_there_once_although_parts_were_killed_meanwhile(soaked: Soaked):  # C33, C36, C38
    found = soaked.found
    assert found.tally.wrong == []
    assert found.tally.unexpected == {}, "refused although nothing was away"
    assert (len(found.faults), found.signed_in > 0) == (4, True)
    assert all(work.acknowledged for work in found.works)


def test_its_checks_notice_what_is_lost(soaked: Soaked):
    found = soaked.found.works[0]
    work = replace(found, caller=replace(found.caller, tally=Tally()))
    work.creates()
    lost = next(reversed(work.records))
    work.caller.call("delete", "DELETE", f"{TABLE}/{lost}")

    work.checks_all()

    assert any(lost in each for each in work.caller.tally.wrong)


def test_nothing_confidential_is_in_logs_broker_metrics_or_histories(soaked: Soaked):
    work = soaked.found.works[0]
    secrets = {
        "a key": work.caller.key,
        "a password": (soaked.stack.data / "secrets" / "admin-password").read_text().strip(),
        "a text": work.mark(next(iter(work.documents))),
    }
    places = {
        # What `up` says itself, the first password once, goes to the terminal.
        "log": "".join(line for line in soaked.stack.lines if " | " in line[:12]),
        "broker": broker_with_loads(soaked),
        "metrics": metrics(soaked.stack.url, work.caller.key),
        "histories": histories(soaked.servers),
    }

    assert all(len(text) > 1000 for text in places.values())
    seen = {(name, place) for name, secret in secrets.items() for place, text in places.items() if secret in text}
    assert seen == set()


def metrics(url: str, key: str) -> str:
    asked = urllib.request.Request(f"{url}/metrics", headers={"Authorization": f"Bearer {key}"})
    with urllib.request.urlopen(asked, timeout=20) as answer:
        text: str = answer.read().decode()
    return text


@contextmanager
def worker_paused(stack: Stack) -> Iterator[None]:
    """So that what is sent to it lies in the broker."""
    main = stack.child(" worker ")
    processes = [main, *main.children(recursive=True)]
    for each in processes:
        each.suspend()
    try:
        yield
    finally:
        for each in processes:
            each.resume()


def broker_with_loads(soaked: Soaked) -> str:
    """The messages that lie in it."""
    work = soaked.found.works[0]
    loads = {"text": work.mark(next(iter(work.documents))), "metadata": {}, "wait": False}
    with redis.Redis.from_url(soaked.servers.valkey.url) as link, worker_paused(soaked.stack):
        for doc_id in ("first", "second"):  # the worker waits for the first with a hand outstretched
            query = {"collection_name": COLLECTION, "doc_id": doc_id}
            assert work.caller.call("load", "POST", "/load_text_to_collection", loads, query=query).status == 202
        messages: list[Any] = link.lrange("servicebase", 0, -1)
    assert messages
    return "".join(str(message) + b64decode(json.loads(message)["body"]).decode() for message in messages)


def histories(servers: SharedServers) -> str:
    with psycopg.connect(servers.postgres.url) as link:
        tables = [row[0] for row in link.execute(HISTORIES)]
        assert len(tables) > 3
        return "\n".join(str(link.execute(f"SELECT row_to_json(t)::text FROM {name} t").fetchall()) for name in tables)
