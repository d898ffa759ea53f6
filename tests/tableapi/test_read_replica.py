"""Reads from a replica that may lag: the primary's rules and catalogue decide."""

import time
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError
from psycopg import errors

from accounts.models import User
from tableapi.database import catalogue_loader, statement_runner
from tableapi.design import saving
from tableapi.models import Rule
from tableapi.read import replica as replica_reads
from tests.tableapi.world import api, column, data, field, record, rule, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def reading(db: Any) -> Rule:
    """The rule that lets anybody read the notes."""
    table("note")
    field("note", "name")
    record("note", name="a")
    return rule("read", "note")


@pytest.fixture
def replica(reading: Rule, monkeypatch: Any, bob: User) -> list[str]:
    """Stays at the catalogue of now, whatever becomes of the primary's; lists where was read."""
    assert column(api(bob).get("note"), "name") == ["a"]
    behind = catalogue_loader.cached_catalogue().version
    monkeypatch.setitem(settings.DATABASES, statement_runner.REPLICA, {"ATOMIC_REQUESTS": False})
    requests: list[str] = []

    def lagging(fetch: Callable[..., Any], statement: Any, inputs: Any, alias: str = "default") -> Any:
        requests.append(alias)
        rows = fetch(statement, inputs)
        return [(behind, *row[1:]) for row in rows] if alias == statement_runner.REPLICA else rows

    for name in ("fetch", "fetch_bytes"):
        monkeypatch.setattr(statement_runner, name, partial(lagging, getattr(statement_runner, name)))
    return requests


def ask(who: User, **asked: Any) -> Any:
    return api(who).get("note", query_category="replica", **asked)


def test_up_to_date_replica_is_used(replica: list[str], bob: User):
    assert column(ask(bob, fields="name"), "name") == ["a"]
    assert statement_runner.REPLICA in replica


@pytest.mark.parametrize("again", [False, True], ids=["at_once", "after_the_process_knows"])
def test_revoked_access_applies_despite_a_lagging_replica(reading: Rule, replica: list[str], bob: User, again: bool):
    reading.active = False
    saving.save_rule(reading)
    if again:
        api(bob).get("note")
    response = ask(bob, fields="name")
    assert response.status_code in (200, 404) and b'"a"' not in response.content
    assert response.content == api(bob).get("note", fields="name").content


@pytest.mark.parametrize("again", [False, True], ids=["at_once", "after_the_process_knows"])
def test_granted_access_applies_despite_a_lagging_replica(reading: Rule, replica: list[str], bob: User, again: bool):
    reading.active = False
    saving.save_rule(reading)
    api(bob).get("note")
    reading.active = True
    saving.save_rule(reading)
    if again:
        api(bob).get("note")
    assert column(ask(bob), "name") == ["a"]


def test_group_membership_is_read_from_the_primary(reading: Rule, replica: list[str], bob: User, alice: User):
    field("note", "team", to="sys_user_group")
    reading.condition = "teamDYNAMICmy_groups"
    saving.save_rule(reading)
    api(bob).get("note")
    replica.clear()
    assert column(ask(bob), "name") == [] and statement_runner.REPLICA not in replica


def test_unavailable_replica_is_skipped(replica: list[str], bob: User, monkeypatch: Any):
    fetch = statement_runner.fetch

    def away(statement: Any, inputs: Any, alias: str = "default") -> Any:
        if alias == statement_runner.REPLICA:
            raise OperationalError("no connection")
        return fetch(statement, inputs, alias)

    monkeypatch.setattr(statement_runner, "fetch", away)
    assert column(ask(bob, fields="name"), "name") == ["a"]


def test_new_column_is_known_despite_a_lagging_replica(reading: Rule, replica: list[str], bob: User):
    field("note", "colour", default_value="red")
    assert data(ask(bob, fields="name,colour", query="colourISEMPTY")) == [{"name": "a", "colour": None}]


@pytest.fixture
def failing(replica: list[str], monkeypatch: Any) -> Callable[[Exception | None], None]:
    """The replica fails with this error when it is asked for the list."""
    right = statement_runner.fetch_bytes

    def fails(error: Exception | None) -> None:
        def fetch_bytes(statement: Any, inputs: Any, alias: str = "default") -> Any:
            if alias == statement_runner.REPLICA:
                raise OperationalError from error
            return right(statement, inputs, alias)

        monkeypatch.setattr(statement_runner, "fetch_bytes", fetch_bytes)

    return fails


@pytest.mark.parametrize("cause", [errors.SerializationFailure(), errors.AdminShutdown(), None],
                         ids=["conflict_with_recovery", "shutdown", "lost_connection"])  # fmt: skip
def test_list_comes_from_the_primary_if_the_replica_fails_during_it(
    failing: Callable[[Exception | None], None], bob: User, cause: Exception | None
):
    failing(cause)
    response = ask(bob, fields="name", count="exact")
    assert column(response, "name") == ["a"] and response["X-Total-Count"] == "1"


def test_time_limit_on_the_replica_is_not_used_twice(
    failing: Callable[[Exception | None], None], replica: list[str], bob: User
):
    failing(errors.QueryCanceled())
    replica.clear()
    assert ask(bob, fields="name").status_code in (422, 503)
    assert replica == ["default", statement_runner.REPLICA], "only versions were read"


def test_unavailable_replica_is_not_asked_for_5_s(
    failing: Callable[[Exception | None], None], replica: list[str], bob: User, monkeypatch: Any
):
    failing(None)
    for _ in range(3):
        assert column(ask(bob, fields="name"), "name") == ["a"]
    assert replica.count(statement_runner.REPLICA) == 1
    monkeypatch.setattr(replica_reads, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 5.1))
    assert column(ask(bob, fields="name"), "name") == ["a"]
    assert replica.count(statement_runner.REPLICA) == 2
