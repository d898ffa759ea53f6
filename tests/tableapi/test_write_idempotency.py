"""`Idempotency-Key`: a repeated request is executed once and gets the first response."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connections

from accounts.models import User
from tableapi import tasks
from tableapi.http import idempotency
from tableapi.models import IdempotentAnswer, Table
from tableapi.write import designed_records
from tests.tableapi.designs import ask
from tests.tableapi.world import api, data, failed, field, grant, open_table, record, rule, table

pytestmark = pytest.mark.django_db

KEY = {"Idempotency-Key": "one"}


@pytest.fixture
def device(db: Any) -> Table:
    created = table("device")
    field("device", "name", is_unique=True)
    open_table("device")
    return created


def count() -> int:
    return int(ask("SELECT count(*) FROM records.device")[0][0])


def post(who: User, body: Any, key: str = "one", **params: Any) -> Any:
    return api(who).post("device", body, headers={"Idempotency-Key": key}, **params)


def test_repeated_request_gets_the_first_response(device: Table, bob: User):  # B54
    first, second = post(bob, {"name": "a"}), post(bob, {"name": "a"})
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.content == second.content
    assert all(first[name] == second[name] for name in ("Location", "ETag", "Content-Type"))
    assert count() == 1
    assert post(bob, {"name": "b"}, key="two").status_code == 201
    assert failed(api(bob).post("device", {"name": "a"}))[0] == 409, "without a key it is another request"


def test_different_body_or_parameters_are_a_conflict(device: Table, bob: User):
    post(bob, {"name": "a"})
    for response in (post(bob, {"name": "b"}), post(bob, {"name": "a"}, fields="name")):
        assert failed(response) == (409, "idempotency_mismatch", None)
    assert count() == 1


def test_keys_are_separate_per_caller_method_and_path(device: Table, alice: User, bob: User):
    other = table("other")
    field(other, "name")
    open_table("other")
    lamp = record("device", name="Lamp")
    responses = [
        post(bob, {"name": "a"}), post(alice, {"name": "b"}), api(bob).post("other", {"name": "a"}, headers=KEY),
        api(bob).patch(f"device/{lamp}", {"name": "c"}, headers=KEY),
        api(bob).put(f"device/{lamp}", {"name": "d"}, headers=KEY), api(bob).delete(f"device/{lamp}", headers=KEY),
    ]  # fmt: skip
    assert [response.status_code for response in responses] == [201, 201, 201, 200, 200, 200]
    assert api(bob).delete(f"device/{lamp}", headers=KEY).content == responses[-1].content, "deleted before"
    assert count() == 2


def test_refusal_is_repeated(device: Table, bob: User):
    record("device", name="taken")
    first = post(bob, {"name": "taken"})
    assert failed(first) == (409, "duplicate", "name")
    ask("DELETE FROM records.device")
    assert post(bob, {"name": "taken"}).content == first.content
    assert failed(post(bob, {"nothing": 1}, key="two")) == (400, "unknown_field", "nothing")
    field(device, "nothing")
    assert failed(post(bob, {"nothing": 1}, key="two")) == (400, "unknown_field", "nothing")
    assert count() == 0


def test_refused_write_leaves_nothing(device: Table, bob: User):
    rule("create", "device", "name", condition="name=good")
    assert failed(post(bob, {"name": "bad"}))[0] == 403
    assert count() == 0


def test_temporary_failure_is_not_stored(device: Table, bob: User, monkeypatch: Any):
    def fail(*_: Any) -> None:
        raise OperationalError("the database is away")

    with monkeypatch.context() as patched:
        patched.setattr(designed_records, "insert", fail)
        assert failed(post(bob, {"name": "a"}))[0] == 503
    assert not IdempotentAnswer.objects.exists()
    assert post(bob, {"name": "a"}).status_code == 201


def test_server_error_is_not_stored(device: Table, bob: User, monkeypatch: Any):
    def fail(*_: Any) -> None:
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr(designed_records, "insert", fail)
        with pytest.raises(RuntimeError):
            post(bob, {"name": "a"})
    assert post(bob, {"name": "a"}).status_code == 201


def test_key_expires_after_a_day(device: Table, bob: User):
    post(bob, {"name": "a"})
    IdempotentAnswer.objects.update(
        created_at=IdempotentAnswer.objects.get().created_at - timedelta(hours=23, minutes=59)
    )
    assert post(bob, {"name": "a"}).status_code == 201
    tasks.forget_answers()
    assert IdempotentAnswer.objects.count() == 1
    IdempotentAnswer.objects.update(created_at=IdempotentAnswer.objects.get().created_at - timedelta(minutes=2))
    assert failed(post(bob, {"name": "a"})) == (409, "duplicate", "name"), "done again"
    IdempotentAnswer.objects.update(created_at=IdempotentAnswer.objects.get().created_at - idempotency.RETENTION_PERIOD)
    tasks.forget_answers()
    assert not IdempotentAnswer.objects.exists()


@pytest.mark.parametrize("key", ["x" * 256, "a\tb", "é\x85"])
def test_key_is_short_and_printable(device: Table, bob: User, key: str):
    assert failed(post(bob, {"name": "a"}, key=key)) == (400, "invalid_parameter", "Idempotency-Key")
    assert count() == 0


def test_stored_response_requires_valid_credentials(device: Table, bob: User):
    caller = api(bob, by="key")
    assert caller.post("device", {"name": "a"}, headers=KEY).status_code == 201
    bob.active = False
    bob.save()
    assert caller.post("device", {"name": "a"}, headers=KEY).status_code == 401


def test_reads_ignore_the_key(device: Table, bob: User):
    assert data(api(bob).get("device", headers=KEY)) == []
    post(bob, {"name": "a"})
    assert len(data(api(bob).get("device", headers=KEY))) == 1


@pytest.mark.django_db(transaction=True)
def test_concurrent_repetition_is_a_conflict(device: Table, bob: User, monkeypatch: Any):
    """Two connections: the first holds its key until the second was answered."""
    import threading

    from django.db import connection

    inside, answered = threading.Event(), threading.Event()
    insert = designed_records.insert
    result: dict[str, Any] = {}

    def slow(*positional: Any) -> str:
        inside.set()
        assert answered.wait(20)
        return insert(*positional)

    def first() -> None:
        try:
            result["first"] = post(bob, {"name": "a"})
        finally:
            connections.close_all()

    monkeypatch.setattr(designed_records, "insert", slow)
    thread = threading.Thread(target=first)
    thread.start()
    assert inside.wait(20)
    second = post(bob, {"name": "a"})
    answered.set()
    thread.join(20)

    assert failed(second) == (409, "idempotency_in_progress", None)
    assert result["first"].status_code == 201
    assert post(bob, {"name": "a"}).content == result["first"].content
    assert count() == 1 and connection.is_usable()


def test_stored_response_is_valid_only_for_the_same_roles(device: Table, bob: User):  # B65
    """A key for fewer roles must not be told what another one was."""
    field("device", "price")
    rule("read", "device", "price", roles=["auditor"])
    grant(bob, "auditor", "other")
    body = {"name": "a", "price": "hidden"}
    wide, narrow = api(bob, scope=["auditor"]), api(bob, scope=["other"])
    first = wide.post("device", body, headers=KEY)
    assert data(first)[0]["price"] == "hidden"
    response = narrow.post("device", body, headers=KEY)
    assert failed(response) == (409, "idempotency_mismatch", None) and b"hidden" not in response.content
    assert wide.post("device", body, headers=KEY).content == first.content
