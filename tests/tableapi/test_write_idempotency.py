"""`Idempotency-Key`: a repeated request is executed once and gets the first response."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection

from accounts.models import User
from tableapi import tasks
from tableapi.http import idempotency
from tableapi.models import IdempotentAnswer, Table
from tableapi.write import designed_records
from tests.tableapi.designs import query_rows
from tests.tableapi.test_write_concurrency import THREAD_TIMEOUT_S, paused_call, result_of, run_in_thread
from tests.tableapi.world import api, data_of, error_of, field, grant, open_table, record, rule, table

pytestmark = pytest.mark.django_db

KEY_HEADER = {"Idempotency-Key": "one"}


@pytest.fixture
def device(db: Any) -> Table:
    new_table = table("device")
    field("device", "name", is_unique=True)
    open_table("device")
    return new_table


def device_count() -> int:
    return int(query_rows("SELECT count(*) FROM records.device")[0][0])


def post_device(user: User, body: Any, key: str = "one", **params: Any) -> Any:
    return api(user).post("device", body, headers={"Idempotency-Key": key}, **params)


def test_repeated_request_gets_the_first_response(device: Table, bob: User):  # B54
    first_response, second_response = post_device(bob, {"name": "a"}), post_device(bob, {"name": "a"})
    assert (first_response.status_code, second_response.status_code) == (201, 201)
    assert first_response.content == second_response.content
    assert all(first_response[name] == second_response[name] for name in ("Location", "ETag", "Content-Type"))
    assert device_count() == 1
    assert post_device(bob, {"name": "b"}, key="two").status_code == 201
    assert error_of(api(bob).post("device", {"name": "a"}))[0] == 409, "without the key, it is a new request"


def test_different_body_or_parameters_are_a_conflict(device: Table, bob: User):
    post_device(bob, {"name": "a"})
    for response in (post_device(bob, {"name": "b"}), post_device(bob, {"name": "a"}, fields="name")):
        assert error_of(response) == (409, "idempotency_mismatch", None)
    assert device_count() == 1


def test_keys_are_separate_per_caller_method_and_path(device: Table, alice: User, bob: User):
    other_table = table("other")
    field(other_table, "name")
    open_table("other")
    lamp = record("device", name="Lamp")
    responses = [
        post_device(bob, {"name": "a"}), post_device(alice, {"name": "b"}),
        api(bob).post("other", {"name": "a"}, headers=KEY_HEADER),
        api(bob).patch(f"device/{lamp}", {"name": "c"}, headers=KEY_HEADER),
        api(bob).put(f"device/{lamp}", {"name": "d"}, headers=KEY_HEADER),
        api(bob).delete(f"device/{lamp}", headers=KEY_HEADER),
    ]  # fmt: skip
    assert [response.status_code for response in responses] == [201, 201, 201, 200, 200, 200]
    assert api(bob).delete(f"device/{lamp}", headers=KEY_HEADER).content == responses[-1].content, "repeated deletion"
    assert device_count() == 2


def test_refusal_is_repeated(device: Table, bob: User):
    record("device", name="taken")
    first_response = post_device(bob, {"name": "taken"})
    assert error_of(first_response) == (409, "duplicate", "name")
    query_rows("DELETE FROM records.device")
    assert post_device(bob, {"name": "taken"}).content == first_response.content
    assert error_of(post_device(bob, {"nothing": 1}, key="two")) == (400, "unknown_field", "nothing")
    field(device, "nothing")
    assert error_of(post_device(bob, {"nothing": 1}, key="two")) == (400, "unknown_field", "nothing")
    assert device_count() == 0


def test_refused_write_leaves_nothing(device: Table, bob: User):
    rule("create", "device", "name", condition="name=good")
    assert error_of(post_device(bob, {"name": "bad"}))[0] == 403
    assert device_count() == 0


def test_temporary_failure_is_not_stored(device: Table, bob: User, monkeypatch: Any):
    def fail(*_: Any) -> None:
        raise OperationalError("the database is unavailable")

    with monkeypatch.context() as patch:
        patch.setattr(designed_records, "insert", fail)
        assert error_of(post_device(bob, {"name": "a"}))[0] == 503
    assert not IdempotentAnswer.objects.exists()
    assert post_device(bob, {"name": "a"}).status_code == 201


def test_server_error_is_not_stored(device: Table, bob: User, monkeypatch: Any):
    def fail(*_: Any) -> None:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(designed_records, "insert", fail)
        with pytest.raises(RuntimeError):
            post_device(bob, {"name": "a"})
    assert post_device(bob, {"name": "a"}).status_code == 201


def test_key_expires_after_a_day(device: Table, bob: User):
    post_device(bob, {"name": "a"})
    IdempotentAnswer.objects.update(
        created_at=IdempotentAnswer.objects.get().created_at - timedelta(hours=23, minutes=59)
    )
    assert post_device(bob, {"name": "a"}).status_code == 201
    tasks.forget_answers()
    assert IdempotentAnswer.objects.count() == 1
    IdempotentAnswer.objects.update(created_at=IdempotentAnswer.objects.get().created_at - timedelta(minutes=2))
    assert error_of(post_device(bob, {"name": "a"})) == (409, "duplicate", "name"), "executed again"
    IdempotentAnswer.objects.update(created_at=IdempotentAnswer.objects.get().created_at - idempotency.RETENTION_PERIOD)
    tasks.forget_answers()
    assert not IdempotentAnswer.objects.exists()


@pytest.mark.parametrize("key", ["x" * 256, "a\tb", "é\x85"])
def test_key_is_short_and_printable(device: Table, bob: User, key: str):
    assert error_of(post_device(bob, {"name": "a"}, key=key)) == (400, "invalid_parameter", "Idempotency-Key")
    assert device_count() == 0


def test_stored_response_requires_valid_credentials(device: Table, bob: User):
    caller = api(bob, credential="key")
    assert caller.post("device", {"name": "a"}, headers=KEY_HEADER).status_code == 201
    bob.active = False
    bob.save()
    assert caller.post("device", {"name": "a"}, headers=KEY_HEADER).status_code == 401


def test_reads_ignore_the_key(device: Table, bob: User):
    assert data_of(api(bob).get("device", headers=KEY_HEADER)) == []
    post_device(bob, {"name": "a"})
    assert len(data_of(api(bob).get("device", headers=KEY_HEADER))) == 1


@pytest.mark.django_db(transaction=True)
def test_concurrent_repetition_is_a_conflict(device: Table, bob: User, monkeypatch: Any):
    """The first request holds its key until the second one has its response."""
    is_reached, release = paused_call(monkeypatch, designed_records, "insert")
    first_job = run_in_thread(lambda: post_device(bob, {"name": "a"}))
    assert is_reached.wait(THREAD_TIMEOUT_S)
    second_response = post_device(bob, {"name": "a"})
    release.set()
    first_response = result_of(first_job)

    assert error_of(second_response) == (409, "idempotency_in_progress", None)
    assert first_response.status_code == 201
    assert post_device(bob, {"name": "a"}).content == first_response.content
    assert device_count() == 1 and connection.is_usable()


def test_stored_response_is_valid_only_for_the_same_roles(device: Table, bob: User):  # B65
    """A key with fewer roles must not get the response to another key."""
    field("device", "price")
    rule("read", "device", "price", roles=["auditor"])
    grant(bob, "auditor", "other")
    body = {"name": "a", "price": "hidden"}
    auditor, other_caller = api(bob, scope=["auditor"]), api(bob, scope=["other"])
    first_response = auditor.post("device", body, headers=KEY_HEADER)
    assert data_of(first_response)[0]["price"] == "hidden"
    response = other_caller.post("device", body, headers=KEY_HEADER)
    assert error_of(response) == (409, "idempotency_mismatch", None) and b"hidden" not in response.content
    assert auditor.post("device", body, headers=KEY_HEADER).content == first_response.content
