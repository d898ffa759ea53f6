"""The short form of `./run bench soak`: callers of all kinds while parts are killed, and what is so afterwards."""

import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
import redis

from bench.soak.run import Soak, product, soak
from bench.soak.work import TABLE
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
        yield Soaked(servers, stack, soak(servers, stack, callers=6, seconds=16, every_s=1))


def test_what_was_acknowledged_is_there_once_although_parts_were_killed_meanwhile(soaked: Soaked):  # C33, C36, C38
    found = soaked.found
    assert found.tally.wrong == []
    assert found.tally.unexpected == {}, "refused although nothing was away"
    assert len(found.faults) >= 3 and found.acknowledged > 30 and found.signed_in > 0


def test_its_checks_notice_what_is_lost(soaked: Soaked):
    work = soaked.found.works[0]
    work.creates()
    lost = next(reversed(work.records))
    work.caller.call("delete", "DELETE", f"{TABLE}/{lost}")
    before = len(work.caller.tally.wrong)

    work.checks_all()

    assert any(lost in each for each in work.caller.tally.wrong[before:])


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
        "log of PostgreSQL": "".join(path.read_text() for path in soaked.servers.folder.root.rglob("*.log")),
        "broker": broker(soaked.servers),
        "metrics": metrics(soaked.stack.url, work.caller.key),
        "histories": histories(soaked.servers),
    }

    assert all(len(places[name]) > 1000 for name in ("log", "metrics", "histories"))
    seen = {(name, place) for name, secret in secrets.items() for place, text in places.items() if secret in text}
    assert seen == set()


def metrics(url: str, key: str) -> str:
    asked = urllib.request.Request(f"{url}/metrics", headers={"Authorization": f"Bearer {key}"})
    with urllib.request.urlopen(asked, timeout=20) as answer:
        text: str = answer.read().decode()
    return text


def broker(servers: SharedServers) -> str:
    """Whatever it holds, of any type."""
    with redis.Redis.from_url(servers.valkey.url) as link:
        held = {key: link.dump(key) for key in link.scan_iter()}
    return str(held)


def histories(servers: SharedServers) -> str:
    with psycopg.connect(servers.postgres.url) as link:
        tables = [row[0] for row in link.execute(HISTORIES)]
        assert len(tables) > 3
        return "\n".join(str(link.execute(f"SELECT row_to_json(t)::text FROM {name} t").fetchall()) for name in tables)
