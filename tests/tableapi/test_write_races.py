"""Concurrent writes to tables of one family and to referenced records, with separate connections."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from accounts.models import User
from tableapi.design import saving
from tableapi.models import Column
from tableapi.write import designed_records
from tests.tableapi.designs import ask
from tests.tableapi.test_write_concurrency import PATIENCE_S, beside, result, settle, stopping
from tests.tableapi.world import api, data, failed, field, open_table, record, table

pytestmark = pytest.mark.django_db(transaction=True)

# More often than it takes until a connection prepares a statement.
OFTEN = 8


@pytest.fixture
def laptop(transactional_db: Any) -> str:
    """A record of a table that extends another; loans refer to such."""
    table("device")
    field("device", "name")
    table("laptop", parent="device")
    field("laptop", "notes", "json")
    table("loan")
    field("loan", "laptop", to="laptop")
    field("loan", "device", to="device")
    field("loan", "laptops", "list", to="laptop")
    field("loan", "devices", "list", to="device")
    for name in ("device", "loan"):
        open_table(name)
    return record("laptop", name="a", notes={})


class TestTwoChanges:
    def test_two_json_merges_of_a_child_survive(self, laptop: str, bob: User, monkeypatch: Any):
        reached, go = stopping(monkeypatch, designed_records, "update")
        first = beside(lambda: api(bob).patch(f"laptop/{laptop}", {"notes": {"a": 1}}))
        assert reached.wait(PATIENCE_S)
        second = beside(lambda: api(bob).patch(f"laptop/{laptop}", {"notes": {"b": 2}}))
        assert settle(second), "it waits for the first"
        go.set()
        assert result(first).status_code == result(second).status_code == 200
        (read,) = data(api(bob).get(f"laptop/{laptop}"))
        assert (read["notes"], read["sys_version"]) == ({"a": 1, "b": 2}, 2)

    def test_many_json_merges_survive(self, laptop: str, bob: User):
        running = [
            beside(partial(api(bob).patch, f"laptop/{laptop}", {"notes": {str(number): number}, "name": str(number)}))
            for number in range(4)
        ]
        assert [result(job).status_code for job in running] == [200] * 4
        (read,) = data(api(bob).get(f"laptop/{laptop}"))
        assert read["notes"] == {str(number): number for number in range(4)}
        assert read["sys_version"] == 4


@pytest.mark.parametrize("address", ["laptop", "device"])
class TestReferringToWhatGoes:
    """The deletion has looked for references, and is not done: none may come in between."""

    def meet(self, bob: User, monkeypatch: Any, address: str, laptop: str, send: Callable[[], Any]) -> Any:
        reached, go = stopping(monkeypatch, designed_records, "stored_values")
        deleting = beside(lambda: api(bob).delete(f"{address}/{laptop}"))
        assert reached.wait(PATIENCE_S)
        referring = beside(send)
        waits = settle(referring)
        go.set()
        assert result(deleting).status_code == 200
        response = result(referring)
        assert waits, "it waits for the deletion"
        return response

    @pytest.mark.parametrize("name", ["laptop", "device"])
    def test_mandatory_reference_is_refused(self, laptop: str, bob: User, monkeypatch: Any, address: str, name: str):
        needed = Column.objects.get(table__name="loan", name=name)
        needed.mandatory = True
        saving.save_column(needed)
        response = self.meet(bob, monkeypatch, address, laptop, lambda: api(bob).post("loan", {name: laptop}))
        assert failed(response)[:2] == (422, "invalid_value")
        assert ask("SELECT sys_id FROM records.loan") == []

    @pytest.mark.parametrize("name", ["laptops", "devices"])
    def test_list_item_is_refused(self, laptop: str, bob: User, monkeypatch: Any, address: str, name: str):
        response = self.meet(bob, monkeypatch, address, laptop, lambda: api(bob).post("loan", {name: [laptop]}))
        assert failed(response) == (422, "invalid_value", name)
        assert ask("SELECT sys_id FROM records.loan") == []

    def test_added_list_item_is_refused(self, laptop: str, bob: User, monkeypatch: Any, address: str):
        loan = record("loan")
        response = self.meet(
            bob, monkeypatch, address, laptop, lambda: api(bob).patch(f"loan/{loan}", {"laptops": [laptop]})
        )
        assert failed(response) == (422, "invalid_value", "laptops")
        assert ask("SELECT laptops FROM records.loan") == [(None,)]


def test_deletion_waits_for_a_concurrent_list_write(laptop: str, bob: User, monkeypatch: Any):
    reached, go = stopping(monkeypatch, designed_records, "insert")
    referring = beside(lambda: api(bob).post("loan", {"laptops": [laptop]}))
    assert reached.wait(PATIENCE_S)
    deleting = beside(lambda: api(bob).delete(f"laptop/{laptop}"))
    assert settle(deleting), "it waits for the list"
    go.set()
    assert result(referring).status_code == 201
    assert result(deleting).status_code == 200
    assert ask("SELECT coalesce(cardinality(laptops), 0) FROM records.loan") == [(0,)]


class TestAColumnMadeAnewWithAnotherType:
    """In a process that sent the same statements so often that they are prepared."""

    @pytest.fixture
    def note(self, transactional_db: Any, bob: User) -> str:
        table("note")
        field("note", "worth", "integer")
        open_table("note")
        result = record("note", worth=1)
        for number in range(OFTEN):
            self.asked(bob, result, number)
        return result

    def asked(self, bob: User, note: str, worth: Any) -> list[Any]:
        """Everything that makes statements with the column, on the one connection of this thread."""
        caller, path = api(bob), f"note/{note}"
        responses = [
            caller.patch(path, {"worth": worth}), caller.put(path, {"worth": worth}), caller.get(path),
            caller.get("note"), caller.get("note", query="worthISNOTEMPTY^ORDERBYworth"),
        ]  # fmt: skip
        return [data(response)[0]["worth"] for response in responses]

    @pytest.mark.parametrize("is_known", [False, True], ids=["unknown_yet", "known_already"])
    @pytest.mark.parametrize(
        ("type_name", "worth"), [("string", "dear"), ("boolean", True), ("date", "2030-01-02"), ("decimal", 1.5)]
    )
    def test_recreated_column_is_read_and_written(
        self, note: str, bob: User, type_name: str, worth: Any, is_known: bool
    ):
        def design() -> Any:
            Column.objects.get(table__name="note", name="worth").delete()
            field("note", "worth", type_name)
            return api(bob).get("note") if is_known else True

        result(beside(design))
        assert data(api(bob).get(f"note/{note}"))[0]["worth"] is None
        for _ in range(OFTEN):
            assert self.asked(bob, note, worth) == [worth] * 5
