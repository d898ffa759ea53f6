"""Concurrent writes: two at once, held locks, tables that change; with separate connections."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from django.db import connections, transaction

from accounts.models import Role, User, UserRole
from tableapi.database import catalogue_loader
from tableapi.models import Column, Table
from tableapi.write import designed_records
from tests.support.users import make_user
from tests.tableapi.designs import ask
from tests.tableapi.world import api, column, data, failed, field, open_table, record, table

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE_S = 20


@pytest.fixture
def device(transactional_db: Any) -> Table:
    created = table("device")
    for name in ("name", "colour", "size"):
        field("device", name)
    open_table("device")
    return created


def stored(*names: str) -> Any:
    return ask(f"SELECT {', '.join(names)} FROM records.device ORDER BY sys_id")


def beside(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Do this in a thread with connections of its own."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(work())
        finally:
            connections.close_all()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, results


def settle(running: tuple[threading.Thread, list[Any]]) -> bool:
    """Wait until it has ended or waits for a lock; whether it waits."""
    until = time.monotonic() + PATIENCE_S
    while running[0].is_alive() and time.monotonic() < until:
        if ask("SELECT 1 FROM pg_locks WHERE NOT granted"):
            return True
        time.sleep(0.01)
    return False


def result(running: tuple[threading.Thread, list[Any]]) -> Any:
    thread, found = running
    thread.join(PATIENCE_S)
    assert not thread.is_alive() and found, "it did not end well"
    return found[0]


@contextmanager
def held(statement: str, *values: Any) -> Iterator[None]:
    """What this statement locks is locked meanwhile, by another connection."""
    locked, released = threading.Event(), threading.Event()

    def hold() -> bool:
        with transaction.atomic():
            ask(statement, *values)
            locked.set()
            assert released.wait(PATIENCE_S)
        return True

    running = beside(hold)
    assert locked.wait(PATIENCE_S)
    try:
        yield
    finally:
        released.set()
        result(running)


@contextmanager
def impatient(setting: str) -> Iterator[None]:
    """This connection waits no longer than a moment, instead of the seconds that web processes wait."""
    ask(f"SET {setting} = 200")
    try:
        yield
    finally:
        ask(f"RESET {setting}")


def stopping(monkeypatch: Any, module: Any, name: str) -> tuple[threading.Event, threading.Event]:
    """The first call of this function, in another thread, waits before it begins."""
    original = getattr(module, name)
    reached, go = threading.Event(), threading.Event()

    def wait(*positional: Any, **named: Any) -> Any:
        if threading.current_thread() is not threading.main_thread() and not reached.is_set():
            reached.set()
            assert go.wait(PATIENCE_S)
        return original(*positional, **named)

    monkeypatch.setattr(module, name, wait)
    return reached, go


class TestTwoWriters:
    def test_concurrent_patches_lose_no_column(self, device: Table, bob: User, monkeypatch: Any):  # B51
        """Two that read the record at the same time and change different columns of it."""
        lamp = record("device", name="a", colour="red", size="big")
        reached, go = stopping(monkeypatch, designed_records, "update")
        # With If-Match in a transaction, without it in one statement.
        first = beside(lambda: api(bob).patch(f"device/{lamp}", {"name": "b"}, headers={"If-Match": "*"}))
        assert reached.wait(PATIENCE_S)
        second = beside(lambda: api(bob).patch(f"device/{lamp}", {"colour": "blue"}))
        assert settle(second), "it waits for the first, which has the record"
        go.set()
        assert result(first).status_code == result(second).status_code == 200
        assert stored("name", "colour", "size", "sys_version") == [("b", "blue", "big", 2)]

    def test_concurrent_puts_do_not_mix(self, device: Table, bob: User):
        lamp = record("device", name="a")
        bodies = [{"name": str(n), "colour": str(n), "size": str(n)} for n in range(4)]
        running = [beside(partial(api(bob).put, f"device/{lamp}", body)) for body in bodies]
        assert [result(job).status_code for job in running] == [200] * 4
        ((name, colour, size, version),) = stored("name", "colour", "size", "sys_version")
        assert name == colour == size and version == 4

    def test_one_of_two_writes_with_the_same_if_match_wins(self, device: Table, bob: User):  # B51
        lamp = record("device", name="a")
        tag = {"If-Match": api(bob).get(f"device/{lamp}")["ETag"]}
        running = [beside(partial(api(bob).patch, f"device/{lamp}", {"name": name}, headers=tag)) for name in "bcde"]
        assert sorted(result(job).status_code for job in running) == [200, 412, 412, 412]
        assert stored("sys_version") == [(1,)]

    def test_concurrent_json_merges_are_serialised(self, device: Table, bob: User):
        field("device", "tree", "json")
        lamp = record("device", tree={})
        running = [beside(partial(api(bob).patch, f"device/{lamp}", {"tree": {str(n): n}})) for n in range(4)]
        assert [result(job).status_code for job in running] == [200] * 4
        assert stored("tree") == [('{"0": 0, "1": 1, "2": 2, "3": 3}',)] or stored("tree") == [
            ({"0": 0, "1": 1, "2": 2, "3": 3},)
        ]

    def test_numbers_are_unique(self, bob: User):
        table("ticket", number_prefix="TCK")
        open_table("ticket")
        running = [beside(lambda: api(bob).post("ticket", {})) for _ in range(6)]
        numbers = [data(result(job))[0]["number"] for job in running]
        assert sorted(numbers) == [f"TCK000000{n}" for n in range(1, 7)]

    def test_one_of_two_equal_unique_values_wins(self, device: Table, bob: User):
        field("device", "code", is_unique=True)
        running = [beside(lambda: api(bob).post("device", {"code": "same"})) for _ in range(4)]
        responses = [result(job) for job in running]
        assert sorted(response.status_code for response in responses) == [201, 409, 409, 409]
        assert {failed(response) for response in responses if response.status_code == 409} == {
            (409, "duplicate", "code")
        }

    def test_one_of_two_equal_logins_wins(self, alice: User, monkeypatch: Any):
        """Both have found that the login is free before either saves it."""
        both = threading.Barrier(2, timeout=PATIENCE_S)
        save = User.save

        def meeting(user: User, *positional: Any, **named: Any) -> None:
            if user.is_new:
                both.wait()
            save(user, *positional, **named)

        caller = api(alice, by="key")
        monkeypatch.setattr(User, "save", meeting)
        running = [beside(lambda: caller.post("user", {"login": "dora"})) for _ in range(2)]
        responses = [result(job) for job in running]
        assert sorted(response.status_code for response in responses) == [201, 409]
        assert User.objects.filter(login="dora").count() == 1

    def test_grant_of_a_concurrently_deleted_role_is_refused(self, alice: User, bob: User, monkeypatch: Any):
        editor = Role.objects.create(name="editor")
        reached, go = stopping(monkeypatch, UserRole, "save")
        caller = api(alice, by="key")
        running = beside(lambda: caller.post("sys_user_role", {"user": bob.pk, "role": editor.pk}))
        assert reached.wait(PATIENCE_S)
        Role.objects.filter(pk=editor.pk).delete()
        go.set()
        status, code, _ = failed(result(running))
        assert (status, code) == (422, "invalid_value")
        assert not UserRole.objects.filter(user=bob).exists()

    def test_concurrent_removals_leave_one_administrator(self, alice: User):
        dora = make_user("dora", "admin")
        callers = {who: api(who, by="key") for who in (alice, dora)}
        running = [
            beside(partial(callers[who].patch, f"user/{other.pk}", {"active": False}))
            for who, other in ((alice, dora), (dora, alice))
        ]
        statuses = sorted(result(job).status_code for job in running)
        assert statuses[0] == 200 and statuses[1] in (401, 409, 503)
        assert User.objects.filter(active=True, grants__role__name="admin").count() == 1


class TestDeletingMeanwhile:
    def test_change_of_a_concurrently_deleted_record_is_404(self, device: Table, bob: User, monkeypatch: Any):
        lamp = record("device", name="a")
        reached, go = stopping(monkeypatch, designed_records, "delete")
        deleting = beside(lambda: api(bob).delete(f"device/{lamp}"))
        assert reached.wait(PATIENCE_S)
        changing = beside(lambda: api(bob).patch(f"device/{lamp}", {"name": "b"}))
        assert settle(changing), "it waits for the deletion"
        go.set()
        assert result(deleting).status_code == 200
        assert failed(result(changing)) == (404, "record_not_found", None)

    def test_second_deletion_is_404(self, device: Table, bob: User):
        lamp = record("device", name="a")
        running = [beside(lambda: api(bob).delete(f"device/{lamp}")) for _ in range(3)]
        assert sorted(result(job).status_code for job in running) == [200, 404, 404]
        assert ask("SELECT count(*) FROM sys_deletion_log WHERE record_id = %s", lamp) == [(1,)]

    def test_concurrent_mandatory_reference_is_refused(self, device: Table, bob: User, monkeypatch: Any):
        """After the deletion has looked for references, before it is done: none may come in between."""
        table("desk")
        field("desk", "lamp", to="device", mandatory=True)
        open_table("desk")
        lamp = record("device", name="a")
        reached, go = stopping(monkeypatch, designed_records, "delete")
        deleting = beside(lambda: api(bob).delete(f"device/{lamp}"))
        assert reached.wait(PATIENCE_S)
        referring = beside(lambda: api(bob).post("desk", {"lamp": lamp}))
        assert settle(referring), "it waits for the deletion"
        go.set()
        assert result(deleting).status_code == 200
        assert failed(result(referring))[:2] == (422, "invalid_value")
        assert ask("SELECT sys_id FROM records.desk") == []


class TestWaiting:
    def test_locked_record_is_503(self, device: Table, bob: User):  # B49
        lamp = record("device", name="a")
        with held("SELECT FROM records.device WHERE sys_id = %s FOR UPDATE", lamp), impatient("lock_timeout"):
            for response in (api(bob).patch(f"device/{lamp}", {"name": "b"}), api(bob).delete(f"device/{lamp}")):
                assert failed(response) == (503, "unavailable", None)
                assert int(response["Retry-After"]) > 0
            assert column(api(bob).get("device"), "name") == ["a"], "who reads does not wait"
            assert api(bob).post("device", {"name": "c"}).status_code == 201
        assert api(bob).patch(f"device/{lamp}", {"name": "b"}).status_code == 200

    def test_locked_table_is_503(self, device: Table, bob: User):  # B49
        lamp = record("device", name="a")
        with held("LOCK TABLE records.device IN ACCESS EXCLUSIVE MODE"), impatient("lock_timeout"):
            for response in (
                api(bob).get("device"), api(bob).post("device", {}), api(bob).put(f"device/{lamp}", {}),
                api(bob).delete(f"device/{lamp}"),
            ):  # fmt: skip
                assert failed(response) == (503, "unavailable", None) and "Retry-After" in response
        assert len(data(api(bob).get("device"))) == 1

    def test_locked_system_record_is_503(self, alice: User, bob: User):  # B49
        caller = api(alice, by="key")
        with held('SELECT FROM "user" WHERE sys_id = %s FOR UPDATE', bob.pk), impatient("lock_timeout"):
            assert failed(caller.patch(f"user/{bob.pk}", {"first_name": "b"})) == (503, "unavailable", None)
            assert failed(caller.delete(f"user/{bob.pk}")) == (503, "unavailable", None)
        assert caller.patch(f"user/{bob.pk}", {"first_name": "b"}).status_code == 200

    def test_slow_statement_is_422(self, device: Table, bob: User):  # B48
        lamp = record("device", name="a")
        with held("SELECT FROM records.device WHERE sys_id = %s FOR UPDATE", lamp), impatient("statement_timeout"):
            response = api(bob).patch(f"device/{lamp}", {"name": "b"})
        assert failed(response) == (422, "query_too_slow", None) and "Retry-After" not in response
        assert stored("name") == [("a",)]

    def test_request_with_idempotency_key_can_be_repeated(self, device: Table, bob: User):
        lamp, key = record("device", name="a"), {"Idempotency-Key": "k"}
        with held("SELECT FROM records.device WHERE sys_id = %s FOR UPDATE", lamp), impatient("lock_timeout"):
            assert failed(api(bob).patch(f"device/{lamp}", {"name": "b"}, headers=key))[0] == 503
        assert api(bob).patch(f"device/{lamp}", {"name": "b"}, headers=key).status_code == 200


class TestDesigningMeanwhile:
    """Another process designs: this one knows the table as it was."""

    @contextmanager
    def behind(self, design: Callable[[], Any]) -> Iterator[None]:
        """This process keeps the catalogue from before."""
        existing = catalogue_loader.reload_if_changed()
        design()
        catalogue_loader._cache.catalogue = existing
        yield

    def test_new_column_is_known_immediately(self, device: Table, bob: User):  # B55
        lamp = record("device", name="a")
        with self.behind(lambda: field("device", "weight", "integer")):
            assert data(api(bob).patch(f"device/{lamp}", {"weight": 5}))[0]["weight"] == 5
        with self.behind(lambda: field("device", "height", "integer", default_value="3")):
            assert column(api(bob).post("device", {"name": "b"}), "height") == [3]

    def test_dropped_column_is_unknown_immediately(self, device: Table, bob: User):  # B55
        lamp = record("device", name="a")
        sends = {
            "colour": lambda: api(bob).post("device", {"colour": "red"}),
            "size": lambda: api(bob).patch(f"device/{lamp}", {"size": "big"}),
        }
        for name, send in sends.items():
            with self.behind(Column.objects.get(table=device, name=name).delete):
                assert failed(send()) == (400, "unknown_field", name)
        assert column(api(bob).put(f"device/{lamp}", {"name": "b"}), "name") == ["b"]
        assert stored("name") == [("b",)]

    def test_dropped_table_is_404(self, device: Table, bob: User):  # B55
        with self.behind(device.delete):
            assert failed(api(bob).post("device", {"name": "a"})) == (404, "table_not_found", None)
        assert failed(api(bob).delete("device/1")) == (404, "table_not_found", None)

    def test_column_recreated_with_another_type(self, device: Table, bob: User):  # B55
        lamp = record("device", name="a", colour="red")

        def retype() -> None:
            Column.objects.get(table=device, name="colour").delete()
            field("device", "colour", "integer")

        with self.behind(retype):
            assert failed(api(bob).patch(f"device/{lamp}", {"colour": "blue"})) == (422, "invalid_value", "colour")
        assert data(api(bob).patch(f"device/{lamp}", {"colour": "5"}))[0]["colour"] == 5

    def test_column_dropped_during_a_write(self, device: Table, bob: User, monkeypatch: Any):  # B55
        reached, go = stopping(monkeypatch, designed_records, "insert")
        key = {"Idempotency-Key": "so that it is not one statement"}
        running = beside(lambda: api(bob).post("device", {"colour": "red"}, headers=key))
        assert reached.wait(PATIENCE_S)
        Column.objects.get(table=device, name="colour").delete()
        go.set()
        assert failed(result(running)) == (400, "unknown_field", "colour")
        assert stored("name") == []

    def test_columns_change_during_many_writes(self, device: Table, bob: User):  # B55
        """Never a 500, never a value in the wrong column."""
        lamp = record("device", name="a")
        caller, ended = api(bob, by="key"), threading.Event()

        def write() -> list[int]:
            statuses = []
            while not ended.is_set():
                for response in (
                    caller.patch(f"device/{lamp}", {"name": "n", "extra": "e"}),
                    caller.post("device", {"name": "n", "extra": "e"}), caller.put(f"device/{lamp}", {"name": "n"}),
                    caller.get("device", fields="name,extra"),
                ):  # fmt: skip
                    statuses.append(response.status_code)
            return statuses

        running = [beside(write) for _ in range(2)]
        for number in range(6):
            created = field("device", "extra", "text" if number % 2 else "string")
            created.delete()
        ended.set()
        seen = {status for job in running for status in result(job)}
        assert seen <= {200, 201, 400, 503} and 200 in seen
        assert {name for (name,) in stored("name")} <= {"n", "a"}


def test_changed_rule_applies_immediately_in_every_process(device: Table, bob: User):  # B56
    lamp = record("device", name="a")
    existing = catalogue_loader.reload_if_changed()
    device.rules.filter(operation="write").first().delete()  # type: ignore[union-attr]
    device.rules.filter(operation="create").first().delete()  # type: ignore[union-attr]
    for send, path in ((api(bob).post, "device"), (api(bob).patch, f"device/{lamp}"), (api(bob).put, f"device/{lamp}")):
        catalogue_loader._cache.catalogue = existing
        assert failed(send(path, {"name": "x"})) == (403, "access_denied", None)
    assert stored("name") == [("a",)]
