"""A record that is hidden and one that is not there cost the same work: the time tells no more than the answer."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from accounts.models import User
from tests.tableapi.world import Api, api, failed, field, record, rule, table

pytestmark = pytest.mark.django_db

MISSING = "179999999900000000"
WAYS: dict[str, Callable[[Api, str], Any]] = {
    "GET": lambda caller, path: caller.get(path),
    "GET of some fields": lambda caller, path: caller.get(path, fields="name,owner.login", display_value="all"),
    "PATCH": lambda caller, path: caller.patch(path, {"name": "x"}),
    "PATCH with a key": lambda caller, path: caller.patch(path, {"name": "x"}, headers={"Idempotency-Key": path}),
    "PUT": lambda caller, path: caller.put(path, {"name": "x"}),
    "DELETE": lambda caller, path: caller.delete(path),
    "If-Match": lambda caller, path: caller.patch(path, {"name": "x"}, headers={"If-Match": '"0-x"'}),
}


@contextmanager
def statements(monkeypatch: Any) -> Iterator[list[str]]:
    """What goes to the database, by whichever cursor, without its values."""
    found: list[str] = []
    execute = psycopg.Cursor.execute

    def noting(cursor: Any, query: Any, *positional: Any, **named: Any) -> Any:
        found.append(re.sub(r"\d+", "N", str(query)))
        return execute(cursor, query, *positional, **named)

    with monkeypatch.context() as patched:
        patched.setattr(psycopg.Cursor, "execute", noting)
        yield found


@pytest.fixture
def hidden(bob: User) -> str:
    """A device that a rule hides from Bob, who may do everything with the others."""
    table("device")
    field("device", "name")
    field("device", "owner", to="user")
    for operation in ("read", "write", "delete"):
        rule(operation, "device", condition="name!=hidden")
    record("device", name="Lamp")
    return record("device", name="hidden")


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_hidden_and_missing_ask_the_database_the_same(
    hidden: str, bob: User, monkeypatch: Any, way: Callable[[Api, str], Any]
):  # B21
    caller = api(bob, by="key")
    way(caller, "device/1")  # what a process does once
    with statements(monkeypatch) as of_hidden:
        unreadable = way(caller, f"device/{hidden}")
    with statements(monkeypatch) as of_missing:
        missing = way(caller, f"device/{MISSING}")

    assert failed(unreadable) == (404, "record_not_found", None)
    assert unreadable.content == missing.content
    assert len(of_hidden) > 0 and of_hidden == of_missing


def test_a_hidden_and_a_missing_reference_ask_the_database_the_same(hidden: str, bob: User, monkeypatch: Any):  # B21
    field("device", "twin", to="device")
    lamp = record("device", name="Other")
    caller = api(bob, by="key")
    found = []
    for target in ("1", hidden, MISSING):
        with statements(monkeypatch) as asked:
            assert failed(caller.patch(f"device/{lamp}", {"twin": target})) == (422, "invalid_value", "twin")
        found.append(asked)
    assert found[1] == found[2]


def test_the_comparison_sees_a_difference(hidden: str, bob: User, monkeypatch: Any):
    """It would be worth nothing if it found everything alike."""
    caller = api(bob, by="key")
    caller.get("device/1")
    with statements(monkeypatch) as one:
        caller.get("device/1")
    with statements(monkeypatch) as other:
        caller.get("device/1", fields="name")
    assert one != other
