"""Concurrent writes: two writers, held locks and changing tables, on separate connections."""

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
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, column_values, data_of, error_of, field, open_table, record, table

pytestmark = pytest.mark.django_db(transaction=True)

THREAD_TIMEOUT_S = 20


@pytest.fixture
def device(transactional_db: Any) -> Table:
    new_table = table("device")
    for name in ("name", "colour", "size"):
        field("device", name)
    open_table("device")
    return new_table


def stored_values(*column_names: str) -> Any:
    return query_rows(f"SELECT {', '.join(column_names)} FROM records.device ORDER BY sys_id")


def run_in_thread(action: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Run an action in a thread with its own connections."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(action())
        finally:
            connections.close_all()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, results


def waits_for_lock(job: tuple[threading.Thread, list[Any]]) -> bool:
    """Wait until the job ends or waits for a lock; returns whether it waits."""
    deadline = time.monotonic() + THREAD_TIMEOUT_S
    while job[0].is_alive() and time.monotonic() < deadline:
        if query_rows("SELECT 1 FROM pg_locks WHERE NOT granted"):
            return True
        time.sleep(0.01)
    return False


def result_of(job: tuple[threading.Thread, list[Any]]) -> Any:
    thread, results = job
    thread.join(THREAD_TIMEOUT_S)
    assert not thread.is_alive() and results, "the thread failed or did not end"
    return results[0]


@contextmanager
def held_lock(statement: str, *values: Any) -> Iterator[None]:
    """Run a statement on another connection and hold its locks until the end of the block."""
    is_locked, is_released = threading.Event(), threading.Event()

    def hold() -> bool:
        with transaction.atomic():
            query_rows(statement, *values)
            is_locked.set()
            assert is_released.wait(THREAD_TIMEOUT_S)
        return True

    job = run_in_thread(hold)
    assert is_locked.wait(THREAD_TIMEOUT_S)
    try:
        yield
    finally:
        is_released.set()
        result_of(job)


@contextmanager
def short_timeout(setting: str) -> Iterator[None]:
    """A timeout of 200 ms for this connection, instead of the seconds of web processes."""
    query_rows(f"SET {setting} = 200")
    try:
        yield
    finally:
        query_rows(f"RESET {setting}")


def paused_call(monkeypatch: Any, owner: Any, name: str) -> tuple[threading.Event, threading.Event]:
    """Make the first call of a function in another thread wait before it begins."""
    original_function = getattr(owner, name)
    is_reached, release = threading.Event(), threading.Event()

    def wait_and_call(*args: Any, **kwargs: Any) -> Any:
        if threading.current_thread() is not threading.main_thread() and not is_reached.is_set():
            is_reached.set()
            assert release.wait(THREAD_TIMEOUT_S)
        return original_function(*args, **kwargs)

    monkeypatch.setattr(owner, name, wait_and_call)
    return is_reached, release


class TestTwoWriters:
    def test_concurrent_patches_lose_no_column(self, device: Table, bob: User, monkeypatch: Any):  # B51
        """Two requests that read the record at the same time and change different columns."""
        lamp = record("device", name="a", colour="red", size="big")
        is_reached, release = paused_call(monkeypatch, designed_records, "update")
        # With If-Match, the patch runs in a transaction; without it, in one statement.
        first_patch = run_in_thread(lambda: api(bob).patch(f"device/{lamp}", {"name": "b"}, headers={"If-Match": "*"}))
        assert is_reached.wait(THREAD_TIMEOUT_S)
        second_patch = run_in_thread(lambda: api(bob).patch(f"device/{lamp}", {"colour": "blue"}))
        assert waits_for_lock(second_patch), "it waits for the first to release the record"
        release.set()
        assert result_of(first_patch).status_code == result_of(second_patch).status_code == 200
        assert stored_values("name", "colour", "size", "sys_version") == [("b", "blue", "big", 2)]

    def test_concurrent_puts_do_not_mix(self, device: Table, bob: User):
        lamp = record("device", name="a")
        bodies = [{"name": str(number), "colour": str(number), "size": str(number)} for number in range(4)]
        jobs = [run_in_thread(partial(api(bob).put, f"device/{lamp}", body)) for body in bodies]
        assert [result_of(job).status_code for job in jobs] == [200] * 4
        ((name, colour, size, version),) = stored_values("name", "colour", "size", "sys_version")
        assert name == colour == size and version == 4

    def test_only_one_write_with_the_same_if_match_succeeds(self, device: Table, bob: User):  # B51
        lamp = record("device", name="a")
        headers = {"If-Match": api(bob).get(f"device/{lamp}")["ETag"]}
        jobs = [
            run_in_thread(partial(api(bob).patch, f"device/{lamp}", {"name": name}, headers=headers)) for name in "bcde"
        ]
        assert sorted(result_of(job).status_code for job in jobs) == [200, 412, 412, 412]
        assert stored_values("sys_version") == [(1,)]

    def test_concurrent_json_merges_are_serialised(self, device: Table, bob: User):
        field("device", "tree", "json")
        lamp = record("device", tree={})
        jobs = [
            run_in_thread(partial(api(bob).patch, f"device/{lamp}", {"tree": {str(number): number}}))
            for number in range(4)
        ]
        assert [result_of(job).status_code for job in jobs] == [200] * 4
        assert stored_values("tree") == [('{"0": 0, "1": 1, "2": 2, "3": 3}',)] or stored_values("tree") == [
            ({"0": 0, "1": 1, "2": 2, "3": 3},)
        ]

    def test_numbers_are_unique(self, bob: User):
        table("ticket", number_prefix="TCK")
        open_table("ticket")
        jobs = [run_in_thread(lambda: api(bob).post("ticket", {})) for _ in range(6)]
        numbers = [data_of(result_of(job))[0]["number"] for job in jobs]
        assert sorted(numbers) == [f"TCK000000{number}" for number in range(1, 7)]

    def test_only_one_of_several_equal_unique_values_is_saved(self, device: Table, bob: User):
        field("device", "code", is_unique=True)
        jobs = [run_in_thread(lambda: api(bob).post("device", {"code": "same"})) for _ in range(4)]
        responses = [result_of(job) for job in jobs]
        assert sorted(response.status_code for response in responses) == [201, 409, 409, 409]
        assert {error_of(response) for response in responses if response.status_code == 409} == {
            (409, "duplicate", "code")
        }

    def test_only_one_of_two_equal_logins_is_saved(self, alice: User, monkeypatch: Any):
        """Both requests find the login unused before one saves it."""
        barrier = threading.Barrier(2, timeout=THREAD_TIMEOUT_S)
        original_save = User.save

        def save_together(user: User, *args: Any, **kwargs: Any) -> None:
            if user.is_new:
                barrier.wait()
            original_save(user, *args, **kwargs)

        caller = api(alice, credential="key")
        monkeypatch.setattr(User, "save", save_together)
        jobs = [run_in_thread(lambda: caller.post("user", {"login": "dora"})) for _ in range(2)]
        responses = [result_of(job) for job in jobs]
        assert sorted(response.status_code for response in responses) == [201, 409]
        assert User.objects.filter(login="dora").count() == 1

    def test_grant_of_a_concurrently_deleted_role_is_refused(self, alice: User, bob: User, monkeypatch: Any):
        editor = Role.objects.create(name="editor")
        is_reached, release = paused_call(monkeypatch, UserRole, "save")
        caller = api(alice, credential="key")
        job = run_in_thread(lambda: caller.post("sys_user_role", {"user": bob.pk, "role": editor.pk}))
        assert is_reached.wait(THREAD_TIMEOUT_S)
        Role.objects.filter(pk=editor.pk).delete()
        release.set()
        status, code, _ = error_of(result_of(job))
        assert (status, code) == (422, "invalid_value")
        assert not UserRole.objects.filter(user=bob).exists()

    def test_concurrent_removals_leave_one_administrator(self, alice: User):
        dora = make_user("dora", "admin")
        callers = {user: api(user, credential="key") for user in (alice, dora)}
        jobs = [
            run_in_thread(partial(callers[user].patch, f"user/{admin.pk}", {"active": False}))
            for user, admin in ((alice, dora), (dora, alice))
        ]
        statuses = sorted(result_of(job).status_code for job in jobs)
        assert statuses[0] == 200 and statuses[1] in (401, 409, 503)
        assert User.objects.filter(active=True, grants__role__name="admin").count() == 1


class TestConcurrentDeletion:
    def test_change_of_a_concurrently_deleted_record_is_404(self, device: Table, bob: User, monkeypatch: Any):
        lamp = record("device", name="a")
        is_reached, release = paused_call(monkeypatch, designed_records, "delete")
        deletion_job = run_in_thread(lambda: api(bob).delete(f"device/{lamp}"))
        assert is_reached.wait(THREAD_TIMEOUT_S)
        patch_job = run_in_thread(lambda: api(bob).patch(f"device/{lamp}", {"name": "b"}))
        assert waits_for_lock(patch_job), "it waits for the deletion"
        release.set()
        assert result_of(deletion_job).status_code == 200
        assert error_of(result_of(patch_job)) == (404, "record_not_found", None)

    def test_second_deletion_is_404(self, device: Table, bob: User):
        lamp = record("device", name="a")
        jobs = [run_in_thread(lambda: api(bob).delete(f"device/{lamp}")) for _ in range(3)]
        assert sorted(result_of(job).status_code for job in jobs) == [200, 404, 404]
        assert query_rows("SELECT count(*) FROM sys_deletion_log WHERE record_id = %s", lamp) == [(1,)]

    def test_concurrent_mandatory_reference_is_refused(self, device: Table, bob: User, monkeypatch: Any):
        """A reference is written after the deletion has checked for references and before it commits."""
        table("desk")
        field("desk", "lamp", target="device", mandatory=True)
        open_table("desk")
        lamp = record("device", name="a")
        is_reached, release = paused_call(monkeypatch, designed_records, "delete")
        deletion_job = run_in_thread(lambda: api(bob).delete(f"device/{lamp}"))
        assert is_reached.wait(THREAD_TIMEOUT_S)
        insert_job = run_in_thread(lambda: api(bob).post("desk", {"lamp": lamp}))
        assert waits_for_lock(insert_job), "it waits for the deletion"
        release.set()
        assert result_of(deletion_job).status_code == 200
        assert error_of(result_of(insert_job))[:2] == (422, "invalid_value")
        assert query_rows("SELECT sys_id FROM records.desk") == []


class TestTimeouts:
    def test_locked_record_is_503(self, device: Table, bob: User):  # B49
        lamp = record("device", name="a")
        with held_lock("SELECT FROM records.device WHERE sys_id = %s FOR UPDATE", lamp), short_timeout("lock_timeout"):
            for response in (api(bob).patch(f"device/{lamp}", {"name": "b"}), api(bob).delete(f"device/{lamp}")):
                assert error_of(response) == (503, "unavailable", None)
                assert int(response["Retry-After"]) > 0
            assert column_values(api(bob).get("device"), "name") == ["a"], "readers do not wait"
            assert api(bob).post("device", {"name": "c"}).status_code == 201
        assert api(bob).patch(f"device/{lamp}", {"name": "b"}).status_code == 200

    def test_locked_table_is_503(self, device: Table, bob: User):  # B49
        lamp = record("device", name="a")
        with held_lock("LOCK TABLE records.device IN ACCESS EXCLUSIVE MODE"), short_timeout("lock_timeout"):
            for response in (
                api(bob).get("device"), api(bob).post("device", {}), api(bob).put(f"device/{lamp}", {}),
                api(bob).delete(f"device/{lamp}"),
            ):  # fmt: skip
                assert error_of(response) == (503, "unavailable", None) and "Retry-After" in response
        assert len(data_of(api(bob).get("device"))) == 1

    def test_locked_product_record_is_503(self, alice: User, bob: User):  # B49
        caller = api(alice, credential="key")
        with held_lock('SELECT FROM "user" WHERE sys_id = %s FOR UPDATE', bob.pk), short_timeout("lock_timeout"):
            assert error_of(caller.patch(f"user/{bob.pk}", {"first_name": "b"})) == (503, "unavailable", None)
            assert error_of(caller.delete(f"user/{bob.pk}")) == (503, "unavailable", None)
        assert caller.patch(f"user/{bob.pk}", {"first_name": "b"}).status_code == 200

    def test_slow_statement_is_422(self, device: Table, bob: User):  # B48
        lamp = record("device", name="a")
        with (
            held_lock("SELECT FROM records.device WHERE sys_id = %s FOR UPDATE", lamp),
            short_timeout("statement_timeout"),
        ):
            response = api(bob).patch(f"device/{lamp}", {"name": "b"})
        assert error_of(response) == (422, "query_too_slow", None) and "Retry-After" not in response
        assert stored_values("name") == [("a",)]

    def test_request_with_idempotency_key_can_be_repeated(self, device: Table, bob: User):
        lamp, headers = record("device", name="a"), {"Idempotency-Key": "k"}
        with held_lock("SELECT FROM records.device WHERE sys_id = %s FOR UPDATE", lamp), short_timeout("lock_timeout"):
            assert error_of(api(bob).patch(f"device/{lamp}", {"name": "b"}, headers=headers))[0] == 503
        assert api(bob).patch(f"device/{lamp}", {"name": "b"}, headers=headers).status_code == 200


class TestConcurrentDesign:
    """Another process changes the design while this process has the old catalogue."""

    @contextmanager
    def change_in_other_process(self, change: Callable[[], Any]) -> Iterator[None]:
        """Make a change while this process keeps the previous catalogue."""
        catalogue_before = catalogue_loader.reload_if_changed()
        change()
        catalogue_loader._cache.catalogue = catalogue_before
        yield

    def test_new_column_is_known_immediately(self, device: Table, bob: User):  # B55
        lamp = record("device", name="a")
        with self.change_in_other_process(lambda: field("device", "weight", "integer")):
            assert data_of(api(bob).patch(f"device/{lamp}", {"weight": 5}))[0]["weight"] == 5
        with self.change_in_other_process(lambda: field("device", "height", "integer", default_value="3")):
            assert column_values(api(bob).post("device", {"name": "b"}), "height") == [3]

    def test_dropped_column_is_unknown_immediately(self, device: Table, bob: User):  # B55
        lamp = record("device", name="a")
        requests = {
            "colour": lambda: api(bob).post("device", {"colour": "red"}),
            "size": lambda: api(bob).patch(f"device/{lamp}", {"size": "big"}),
        }
        for name, send in requests.items():
            with self.change_in_other_process(Column.objects.get(table=device, name=name).delete):
                assert error_of(send()) == (400, "unknown_field", name)
        assert column_values(api(bob).put(f"device/{lamp}", {"name": "b"}), "name") == ["b"]
        assert stored_values("name") == [("b",)]

    def test_dropped_table_is_404(self, device: Table, bob: User):  # B55
        with self.change_in_other_process(device.delete):
            assert error_of(api(bob).post("device", {"name": "a"})) == (404, "table_not_found", None)
        assert error_of(api(bob).delete("device/1")) == (404, "table_not_found", None)

    def test_recreated_column_has_its_new_type_immediately(self, device: Table, bob: User):  # B55
        lamp = record("device", name="a", colour="red")

        def recreate_column() -> None:
            Column.objects.get(table=device, name="colour").delete()
            field("device", "colour", "integer")

        with self.change_in_other_process(recreate_column):
            assert error_of(api(bob).patch(f"device/{lamp}", {"colour": "blue"})) == (422, "invalid_value", "colour")
        assert data_of(api(bob).patch(f"device/{lamp}", {"colour": "5"}))[0]["colour"] == 5

    def test_column_dropped_during_a_write_is_unknown(self, device: Table, bob: User, monkeypatch: Any):  # B55
        is_reached, release = paused_call(monkeypatch, designed_records, "insert")
        headers = {"Idempotency-Key": "prevents a single statement"}
        job = run_in_thread(lambda: api(bob).post("device", {"colour": "red"}, headers=headers))
        assert is_reached.wait(THREAD_TIMEOUT_S)
        Column.objects.get(table=device, name="colour").delete()
        release.set()
        assert error_of(result_of(job)) == (400, "unknown_field", "colour")
        assert stored_values("name") == []

    def test_concurrent_column_changes_break_no_write(self, device: Table, bob: User):  # B55
        """No request gets a 500, and no value is stored in the wrong column."""
        lamp = record("device", name="a")
        caller, is_finished = api(bob, credential="key"), threading.Event()

        def write_repeatedly() -> list[int]:
            statuses = []
            while not is_finished.is_set():
                for response in (
                    caller.patch(f"device/{lamp}", {"name": "n", "extra": "e"}),
                    caller.post("device", {"name": "n", "extra": "e"}), caller.put(f"device/{lamp}", {"name": "n"}),
                    caller.get("device", fields="name,extra"),
                ):  # fmt: skip
                    statuses.append(response.status_code)
            return statuses

        jobs = [run_in_thread(write_repeatedly) for _ in range(2)]
        for number in range(6):
            new_column = field("device", "extra", "text" if number % 2 else "string")
            new_column.delete()
        is_finished.set()
        all_statuses = {status for job in jobs for status in result_of(job)}
        assert all_statuses <= {200, 201, 400, 503} and 200 in all_statuses
        assert {name for (name,) in stored_values("name")} <= {"n", "a"}


def test_changed_rule_applies_immediately_in_every_process(device: Table, bob: User):  # B56
    lamp = record("device", name="a")
    catalogue_before = catalogue_loader.reload_if_changed()
    device.rules.filter(operation="write").first().delete()  # type: ignore[union-attr]
    device.rules.filter(operation="create").first().delete()  # type: ignore[union-attr]
    for send, path in ((api(bob).post, "device"), (api(bob).patch, f"device/{lamp}"), (api(bob).put, f"device/{lamp}")):
        catalogue_loader._cache.catalogue = catalogue_before
        assert error_of(send(path, {"name": "x"})) == (403, "access_denied", None)
    assert stored_values("name") == [("a",)]
