"""Deferred records and stored responses with a wrong host clock, or after the database clock was set back."""

from typing import Any

import pytest
from django.db import OperationalError

from accounts.models import User
from tableapi import tasks
from tableapi.models import DeferredRecord, IdempotentAnswer
from tableapi.write import designed_records
from tests.support.clocks import let_time_pass, set_database_clock_back, shifted_host_clock
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, data_of, field, open_table, table

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def create_tables(db: Any) -> None:
    for name, is_deferred in (("plan", True), ("device", False)):
        table(name, deferred_create=is_deferred)
        field(name, "name")
        open_table(name)


def row_count(name: str = "plan") -> int:
    return int(query_rows(f'SELECT count(*) FROM records."{name}"')[0][0])


@pytest.mark.parametrize("hours", [-1, 1], ids=["behind", "ahead"])
def test_deferred_record_is_created_immediately_despite_a_wrong_host_clock(bob: User, hours: int):
    with shifted_host_clock(hours):
        assert api(bob).post("plan", {"name": "a"}).status_code == 201
    tasks.create_deferred()
    assert row_count() == 1


@pytest.mark.parametrize("hours", [-1, 1], ids=["behind", "ahead"])
def test_deferred_record_is_retried_on_time_despite_a_wrong_worker_clock(bob: User, hours: int, monkeypatch: Any):
    assert api(bob).post("plan", {"name": "a"}).status_code == 201
    with shifted_host_clock(hours):
        with monkeypatch.context() as patch:
            patch.setattr(designed_records, "insert", fail_to_insert)
            tasks.create_deferred()
        tasks.create_deferred()
        assert row_count() == 0
        let_time_pass(DeferredRecord.objects.all(), "next_at", seconds=11)
        tasks.create_deferred()
    assert row_count() == 1


def fail_to_insert(*_: Any) -> None:
    raise OperationalError


def test_deferred_record_does_not_wait_after_the_clock_was_set_back(bob: User):
    assert api(bob).post("plan", {"name": "a"}).status_code == 201
    set_database_clock_back(DeferredRecord.objects.all(), "next_at")
    tasks.create_deferred()
    assert row_count() == 1


@pytest.mark.parametrize("hours", [-25, 25], ids=["behind", "ahead"])
def test_response_is_stored_for_a_day_despite_wrong_host_clocks(bob: User, hours: int):
    headers = {"Idempotency-Key": "one"}
    first_response = api(bob).post("device", {"name": "a"}, headers=headers)
    with shifted_host_clock(hours):
        tasks.forget_answers()
        assert api(bob).post("device", {"name": "a"}, headers=headers).content == first_response.content
    assert row_count("device") == 1
    with shifted_host_clock(hours):
        data_of(api(bob).post("device", {"name": "b"}, headers={"Idempotency-Key": "two"}))
    tasks.forget_answers()
    assert IdempotentAnswer.objects.count() == 2
