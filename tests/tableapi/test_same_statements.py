"""A hidden record and a missing one cost the same work, so response times reveal nothing."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from accounts.models import User
from tests.tableapi.database_statements import statements
from tests.tableapi.world import Api, api, failed, field, record, rule, table

pytestmark = pytest.mark.django_db

MISSING = "179999999900000000"


def conditional(caller: Api, path: str, *, method: str, headers: dict[str, str]) -> Any:
    return caller.send(method, path, {"name": "x"} if method in ("PATCH", "PUT") else None, headers)


WAYS: dict[str, Callable[[Api, str], Any]] = {
    "GET": lambda caller, path: caller.get(path),
    "GET of some fields": lambda caller, path: caller.get(path, fields="name,owner.login", display_value="all"),
    "PATCH": lambda caller, path: caller.patch(path, {"name": "x"}),
    "PATCH with a key": lambda caller, path: caller.patch(path, {"name": "x"}, headers={"Idempotency-Key": path}),
    "PUT": lambda caller, path: caller.put(path, {"name": "x"}),
    "DELETE": lambda caller, path: caller.delete(path),
    "HEAD": lambda caller, path: caller.head(path),
    **{
        f"{method} with {name}: {tag}": partial(conditional, method=method, headers={name: tag})
        for name, methods in (("If-None-Match", ("GET", "HEAD")), ("If-Match", ("PATCH", "PUT", "DELETE")))
        for method in methods
        for tag in ('"0-x"', '"1-x"', "*", 'W/"0-x", "7-y"')
    },
}


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
def test_hidden_and_missing_records_run_the_same_statements(
    hidden: str, bob: User, way: Callable[[Api, str], Any]
):  # B21
    caller = api(bob, by="key")
    way(caller, "device/1")  # what a process does once
    with statements() as of_hidden:
        unreadable = way(caller, f"device/{hidden}")
    with statements() as of_missing:
        missing = way(caller, f"device/{MISSING}")

    assert unreadable.status_code == 404
    assert not unreadable.content or failed(unreadable) == (404, "record_not_found", None)
    assert (unreadable.content, unreadable.get("ETag")) == (missing.content, None)
    assert len(of_hidden) > 0 and of_hidden == of_missing


def test_hidden_and_missing_references_run_the_same_statements(hidden: str, bob: User):  # B21
    field("device", "twin", to="device")
    lamp = record("device", name="Other")
    caller = api(bob, by="key")
    results = []
    for target in ("1", hidden, MISSING):
        with statements() as result:
            assert failed(caller.patch(f"device/{lamp}", {"twin": target})) == (422, "invalid_value", "twin")
        results.append(result)
    assert results[1] == results[2]


class TestHiddenVersion:
    """Without `sys_version`, nothing tells how often a record was changed."""

    @pytest.fixture
    def lamps(self, hidden: str) -> list[str]:
        """Two that look alike to Bob; one of them has been changed."""
        rule("read", "device", "sys_version", roles=["keeper"])
        return [record("device", name="x", sys_version=version) for version in (0, 3)]

    @pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
    def test_changed_record_is_like_an_unchanged_one(self, lamps: list[str], bob: User, way: Callable[[Api, str], Any]):
        caller = api(bob, by="key")
        way(caller, "device/1")  # what a process does once
        results = []
        for lamp in lamps:
            with statements() as result:
                response = way(caller, f"device/{lamp}")
            same = response.content.replace(lamp.encode(), b"id")
            results.append(
                (response.status_code, re.sub(rb"\d\d:\d\d:\d\d", b"time", same), response.get("ETag"), result)
            )
        assert results[0] == results[1]
        assert results[0][2] is None and results[0][0] in (200, 412)


def test_comparison_detects_a_difference(hidden: str, bob: User):
    """It would be worth nothing if it found everything alike."""
    caller = api(bob, by="key")
    caller.get("device/1")
    with statements() as one:
        caller.get("device/1")
    with statements() as other:
        caller.get("device/1", fields="name")
    assert one != other
