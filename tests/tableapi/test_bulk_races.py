"""Upserts and bulk writes concurrent with other requests, on separate connections."""

from collections import Counter
from functools import partial
from typing import Any

import pytest

from accounts.models import User
from tableapi.write import create, designed_records
from tests.tableapi.designs import query_rows
from tests.tableapi.test_write_concurrency import (
    THREAD_TIMEOUT_S,
    paused_call,
    result_of,
    run_in_thread,
    waits_for_lock,
)
from tests.tableapi.world import api, column_values, error_of, field, open_table, record, table

pytestmark = pytest.mark.django_db(transaction=True)
UPSERT = "/rest/v1/upsert/device"
BULK = "/rest/v1/bulk/device"


@pytest.fixture
def device(transactional_db: Any) -> None:
    table("device")
    field("device", "code", is_unique=True)
    field("device", "rank", "integer")
    field("device", "notes", "json")
    open_table("device")


def test_concurrent_upserts_create_one_record(device: None, bob: User):
    caller = api(bob)
    jobs = [run_in_thread(partial(caller.post, UPSERT, {"code": "a", "rank": rank}, key="code")) for rank in range(8)]

    assert Counter(result_of(job).status_code for job in jobs) == {201: 1, 200: 7}
    assert query_rows("SELECT count(*) FROM records.device") == [(1,)]


def test_upsert_updates_a_concurrently_created_record(device: None, bob: User, monkeypatch: pytest.MonkeyPatch):
    is_reached, release = paused_call(monkeypatch, create, "create")
    job = run_in_thread(lambda: api(bob).post(UPSERT, {"code": "a", "rank": 2}, key="code"))
    assert is_reached.wait(THREAD_TIMEOUT_S)
    sys_id = record("device", code="A", rank=1)
    release.set()

    assert result_of(job).status_code == 200
    assert query_rows("SELECT sys_id, rank FROM records.device") == [(sys_id, 2)]


def test_record_that_no_longer_matches_the_query_is_not_deleted(
    device: None, bob: User, monkeypatch: pytest.MonkeyPatch
):
    sys_id = record("device", code="a", rank=1, notes={})
    is_reached, release = paused_call(monkeypatch, designed_records, "update")
    change = run_in_thread(lambda: api(bob).patch(f"device/{sys_id}", {"rank": 2, "notes": {"a": 1}}))
    assert is_reached.wait(THREAD_TIMEOUT_S)
    deletion = run_in_thread(
        lambda: api(bob).send(
            "DELETE", BULK, {"sysparm_query": "rank=1", "expected": 1}, {"Content-Type": "application/json"}
        )
    )
    assert waits_for_lock(deletion)
    release.set()

    assert result_of(change).status_code == 200
    assert error_of(result_of(deletion)) == (409, "count_differs", "expected")
    assert column_values(api(bob).get("device"), "rank") == [2]
