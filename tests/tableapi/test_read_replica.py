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
from tableapi.read import pipeline as replica_reads
from tests.tableapi.world import api, column_values, data_of, field, record, rule, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def read_rule(db: Any) -> Rule:
    """The rule that lets anybody read the notes."""
    table("note")
    field("note", "name")
    record("note", name="a")
    return rule("read", "note")


@pytest.fixture
def lagging_replica_reads(read_rule: Rule, monkeypatch: Any, bob: User) -> list[str]:
    """Simulates a replica that keeps its catalogue when the primary changes; returns the databases that are read."""
    assert column_values(api(bob).get("note"), "name") == ["a"]
    old_version = catalogue_loader.cached_catalogue().version
    monkeypatch.setitem(settings.DATABASES, statement_runner.REPLICA, {"ATOMIC_REQUESTS": False})
    read_databases: list[str] = []

    def fetch_with_lag(fetch: Callable[..., Any], statement: Any, inputs: Any, alias: str = "default") -> Any:
        read_databases.append(alias)
        rows = fetch(statement, inputs)
        return [(old_version, *row[1:]) for row in rows] if alias == statement_runner.REPLICA else rows

    for name in ("fetch", "fetch_bytes"):
        monkeypatch.setattr(statement_runner, name, partial(fetch_with_lag, getattr(statement_runner, name)))
    return read_databases


def read_from_replica(user: User, **options: Any) -> Any:
    return api(user).get("note", query_category="replica", **options)


def test_up_to_date_replica_is_used(lagging_replica_reads: list[str], bob: User):
    assert column_values(read_from_replica(bob, fields="name"), "name") == ["a"]
    assert statement_runner.REPLICA in lagging_replica_reads


@pytest.mark.parametrize("is_change_known", [False, True], ids=["unknown_change", "known_change"])
def test_revoked_access_applies_despite_a_lagging_replica(
    read_rule: Rule, lagging_replica_reads: list[str], bob: User, is_change_known: bool
):
    read_rule.active = False
    saving.save_rule(read_rule)
    if is_change_known:
        api(bob).get("note")
    response = read_from_replica(bob, fields="name")
    assert response.status_code in (200, 404) and b'"a"' not in response.content
    assert response.content == api(bob).get("note", fields="name").content


@pytest.mark.parametrize("is_change_known", [False, True], ids=["unknown_change", "known_change"])
def test_granted_access_applies_despite_a_lagging_replica(
    read_rule: Rule, lagging_replica_reads: list[str], bob: User, is_change_known: bool
):
    read_rule.active = False
    saving.save_rule(read_rule)
    api(bob).get("note")
    read_rule.active = True
    saving.save_rule(read_rule)
    if is_change_known:
        api(bob).get("note")
    assert column_values(read_from_replica(bob), "name") == ["a"]


def test_group_membership_is_read_from_the_primary(
    read_rule: Rule, lagging_replica_reads: list[str], bob: User, alice: User
):
    field("note", "team", target="sys_user_group")
    read_rule.condition = "teamDYNAMICmy_groups"
    saving.save_rule(read_rule)
    api(bob).get("note")
    lagging_replica_reads.clear()
    assert column_values(read_from_replica(bob), "name") == [] and statement_runner.REPLICA not in lagging_replica_reads


def test_unavailable_replica_is_skipped(lagging_replica_reads: list[str], bob: User, monkeypatch: Any):
    original_fetch = statement_runner.fetch

    def fail_to_connect(statement: Any, inputs: Any, alias: str = "default") -> Any:
        if alias == statement_runner.REPLICA:
            raise OperationalError("no connection")
        return original_fetch(statement, inputs, alias)

    monkeypatch.setattr(statement_runner, "fetch", fail_to_connect)
    assert column_values(read_from_replica(bob, fields="name"), "name") == ["a"]


def test_new_column_is_known_despite_a_lagging_replica(read_rule: Rule, lagging_replica_reads: list[str], bob: User):
    field("note", "colour", default_value="red")
    assert data_of(read_from_replica(bob, fields="name,colour", query="colourISEMPTY")) == [
        {"name": "a", "colour": None}
    ]


@pytest.fixture
def failing_replica(lagging_replica_reads: list[str], monkeypatch: Any) -> Callable[[Exception | None], None]:
    """A function that makes lists on the replica fail with an error."""
    original_fetch = statement_runner.fetch_bytes

    def fail_with(error: Exception | None) -> None:
        def fetch_bytes(statement: Any, inputs: Any, alias: str = "default") -> Any:
            if alias == statement_runner.REPLICA:
                raise OperationalError from error
            return original_fetch(statement, inputs, alias)

        monkeypatch.setattr(statement_runner, "fetch_bytes", fetch_bytes)

    return fail_with


@pytest.mark.parametrize("cause", [errors.SerializationFailure(), errors.AdminShutdown(), None],
                         ids=["conflict_with_recovery", "shutdown", "lost_connection"])  # fmt: skip
def test_primary_is_used_if_the_replica_fails_during_a_list(
    failing_replica: Callable[[Exception | None], None], bob: User, cause: Exception | None
):
    failing_replica(cause)
    response = read_from_replica(bob, fields="name", count="exact")
    assert column_values(response, "name") == ["a"] and response["X-Total-Count"] == "1"


def test_timeout_on_the_replica_is_not_retried_on_the_primary(
    failing_replica: Callable[[Exception | None], None], lagging_replica_reads: list[str], bob: User
):
    failing_replica(errors.QueryCanceled())
    lagging_replica_reads.clear()
    assert read_from_replica(bob, fields="name").status_code in (422, 503)
    assert lagging_replica_reads == ["default", statement_runner.REPLICA], "the list was not read again"


def test_unavailable_replica_is_not_used_for_5_seconds(
    failing_replica: Callable[[Exception | None], None], lagging_replica_reads: list[str], bob: User, monkeypatch: Any
):
    failing_replica(None)
    for _ in range(3):
        assert column_values(read_from_replica(bob, fields="name"), "name") == ["a"]
    assert lagging_replica_reads.count(statement_runner.REPLICA) == 1
    monkeypatch.setattr(replica_reads, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 5.1))
    assert column_values(read_from_replica(bob, fields="name"), "name") == ["a"]
    assert lagging_replica_reads.count(statement_runner.REPLICA) == 2
