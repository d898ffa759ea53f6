"""Concurrent writes to tables of one family and to referenced records, on separate connections."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from accounts.models import User
from tableapi.design import saving
from tableapi.models import Column
from tableapi.write import designed_records
from tests.tableapi.designs import query_rows
from tests.tableapi.test_write_concurrency import (
    THREAD_TIMEOUT_S,
    paused_call,
    result_of,
    run_in_thread,
    waits_for_lock,
)
from tests.tableapi.world import api, data_of, error_of, field, open_table, record, table

pytestmark = pytest.mark.django_db(transaction=True)

# More repetitions than a connection needs before it prepares a statement.
REPETITIONS = 8


@pytest.fixture
def laptop(transactional_db: Any) -> str:
    """A record of a child table; loans refer to it."""
    table("device")
    field("device", "name")
    table("laptop", parent="device")
    field("laptop", "notes", "json")
    table("loan")
    field("loan", "laptop", target="laptop")
    field("loan", "device", target="device")
    field("loan", "laptops", "list", target="laptop")
    field("loan", "devices", "list", target="device")
    for name in ("device", "loan"):
        open_table(name)
    return record("laptop", name="a", notes={})


class TestConcurrentChanges:
    def test_two_json_merges_of_a_child_survive(self, laptop: str, bob: User, monkeypatch: Any):
        is_reached, release = paused_call(monkeypatch, designed_records, "update")
        first_patch = run_in_thread(lambda: api(bob).patch(f"laptop/{laptop}", {"notes": {"a": 1}}))
        assert is_reached.wait(THREAD_TIMEOUT_S)
        second_patch = run_in_thread(lambda: api(bob).patch(f"laptop/{laptop}", {"notes": {"b": 2}}))
        assert waits_for_lock(second_patch), "it waits for the first patch"
        release.set()
        assert result_of(first_patch).status_code == result_of(second_patch).status_code == 200
        (stored_record,) = data_of(api(bob).get(f"laptop/{laptop}"))
        assert (stored_record["notes"], stored_record["sys_version"]) == ({"a": 1, "b": 2}, 2)

    def test_many_json_merges_survive(self, laptop: str, bob: User):
        jobs = [
            run_in_thread(
                partial(api(bob).patch, f"laptop/{laptop}", {"notes": {str(number): number}, "name": str(number)})
            )
            for number in range(4)
        ]
        assert [result_of(job).status_code for job in jobs] == [200] * 4
        (stored_record,) = data_of(api(bob).get(f"laptop/{laptop}"))
        assert stored_record["notes"] == {str(number): number for number in range(4)}
        assert stored_record["sys_version"] == 4


@pytest.mark.parametrize("path", ["laptop", "device"])
class TestReferenceToDeletedRecord:
    """A reference is written after the deletion has checked for references and before it commits."""

    def delete_during_write(self, bob: User, monkeypatch: Any, path: str, laptop: str, write: Callable[[], Any]) -> Any:
        is_reached, release = paused_call(monkeypatch, designed_records, "payload")
        deletion_job = run_in_thread(lambda: api(bob).delete(f"{path}/{laptop}"))
        assert is_reached.wait(THREAD_TIMEOUT_S)
        write_job = run_in_thread(write)
        is_waiting = waits_for_lock(write_job)
        release.set()
        assert result_of(deletion_job).status_code == 200
        response = result_of(write_job)
        assert is_waiting, "it waits for the deletion"
        return response

    @pytest.mark.parametrize("column_name", ["laptop", "device"])
    def test_mandatory_reference_is_refused(
        self, laptop: str, bob: User, monkeypatch: Any, path: str, column_name: str
    ):
        mandatory_column = Column.objects.get(table__name="loan", name=column_name)
        mandatory_column.mandatory = True
        saving.save_column(mandatory_column)
        response = self.delete_during_write(
            bob, monkeypatch, path, laptop, lambda: api(bob).post("loan", {column_name: laptop})
        )
        assert error_of(response)[:2] == (422, "invalid_value")
        assert query_rows("SELECT sys_id FROM records.loan") == []

    @pytest.mark.parametrize("column_name", ["laptops", "devices"])
    def test_list_item_is_refused(self, laptop: str, bob: User, monkeypatch: Any, path: str, column_name: str):
        response = self.delete_during_write(
            bob, monkeypatch, path, laptop, lambda: api(bob).post("loan", {column_name: [laptop]})
        )
        assert error_of(response) == (422, "invalid_value", column_name)
        assert query_rows("SELECT sys_id FROM records.loan") == []

    def test_added_list_item_is_refused(self, laptop: str, bob: User, monkeypatch: Any, path: str):
        loan = record("loan")
        response = self.delete_during_write(
            bob, monkeypatch, path, laptop, lambda: api(bob).patch(f"loan/{loan}", {"laptops": [laptop]})
        )
        assert error_of(response) == (422, "invalid_value", "laptops")
        assert query_rows("SELECT laptops FROM records.loan") == [(None,)]


def test_deletion_waits_for_a_concurrent_list_write(laptop: str, bob: User, monkeypatch: Any):
    is_reached, release = paused_call(monkeypatch, designed_records, "insert")
    write_job = run_in_thread(lambda: api(bob).post("loan", {"laptops": [laptop]}))
    assert is_reached.wait(THREAD_TIMEOUT_S)
    deletion_job = run_in_thread(lambda: api(bob).delete(f"laptop/{laptop}"))
    assert waits_for_lock(deletion_job), "it waits for the write of the list"
    release.set()
    assert result_of(write_job).status_code == 201
    assert result_of(deletion_job).status_code == 200
    assert query_rows("SELECT coalesce(cardinality(laptops), 0) FROM records.loan") == [(0,)]


class TestRecreatedColumn:
    """A column is recreated when the statements with it are already prepared."""

    @pytest.fixture
    def note(self, transactional_db: Any, bob: User) -> str:
        table("note")
        field("note", "worth", "integer")
        open_table("note")
        note_id = record("note", worth=1)
        for number in range(REPETITIONS):
            self.write_and_read_values(bob, note_id, number)
        return note_id

    def write_and_read_values(self, bob: User, note: str, value: Any) -> list[Any]:
        """Run every kind of statement with the column on the connection of this thread."""
        caller, path = api(bob), f"note/{note}"
        responses = [
            caller.patch(path, {"worth": value}), caller.put(path, {"worth": value}), caller.get(path),
            caller.get("note"), caller.get("note", query="worthISNOTEMPTY^ORDERBYworth"),
        ]  # fmt: skip
        return [data_of(response)[0]["worth"] for response in responses]

    @pytest.mark.parametrize("is_change_known", [False, True], ids=["unknown_change", "known_change"])
    @pytest.mark.parametrize(
        ("type_name", "value"), [("string", "dear"), ("boolean", True), ("date", "2030-01-02"), ("decimal", 1.5)]
    )
    def test_recreated_column_is_read_and_written(
        self, note: str, bob: User, type_name: str, value: Any, is_change_known: bool
    ):
        def recreate_column() -> Any:
            Column.objects.get(table__name="note", name="worth").delete()
            field("note", "worth", type_name)
            return api(bob).get("note") if is_change_known else True

        result_of(run_in_thread(recreate_column))
        assert data_of(api(bob).get(f"note/{note}"))[0]["worth"] is None
        for _ in range(REPETITIONS):
            assert self.write_and_read_values(bob, note, value) == [value] * 5
