"""Deferred tables: a request is validated immediately and returns the id; the worker creates the record later."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from accounts.models import User
from tableapi import tasks
from tableapi.models import Column, DeferredRecord, Table
from tableapi.write import deferred_records, designed_records
from tests.tableapi.designs import query_rows
from tests.tableapi.test_write_concurrency import THREAD_TIMEOUT_S, paused_call, result_of, run_in_thread
from tests.tableapi.world import api, column_values, data_of, error_of, field, open_table, record, rule, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def plan(db: Any) -> Table:
    new_table = table("plan", deferred_create=True, number_prefix="PLN")
    field("plan", "name", is_unique=True)
    field("plan", "owner", target="user")
    open_table("plan")
    return new_table


def row_count(table_name: str = "plan") -> int:
    return int(query_rows(f'SELECT count(*) FROM records."{table_name}"')[0][0])


def create_deferred_records() -> None:
    DeferredRecord.objects.update(next_at=timezone.now())
    tasks.create_deferred()


class TestDeferredRequest:
    def test_response_has_the_values_and_the_future_id(self, plan: Table, bob: User):
        response = api(bob).post("plan", {"name": "a", "owner": bob.pk})
        assert response.status_code == 201
        (record,) = data_of(response)
        path = f"plan/{record['sys_id']}"
        assert response["Location"].endswith(path)
        assert (record["name"], record["owner"]["value"], record["number"]) == ("a", bob.pk, "PLN0000001")
        assert row_count() == 0
        for early_response in (
            api(bob).get(path),
            api(bob).patch(path, {}),
            api(bob).put(path, {}),
            api(bob).delete(path),
        ):
            assert error_of(early_response) == (404, "record_not_found", None)

        tasks.create_deferred()
        (stored_record,) = data_of(api(bob).get(path))
        column_names = ("sys_id", "name", "owner", "number", "sys_created_by", "sys_version", "sys_db_table_id")
        assert {name: stored_record[name] for name in column_names} == {name: record[name] for name in column_names}
        assert not DeferredRecord.objects.exists()

    def test_dot_walked_fields_are_null(self, plan: Table, bob: User):
        response = api(bob).post(
            "plan", {"name": "a", "owner": bob.pk}, fields="name,owner,owner.login,sys_created_by.login"
        )
        (record,) = data_of(response)
        assert (record["name"], record["owner.login"], record["sys_created_by.login"]) == ("a", None, None)
        tasks.create_deferred()
        assert column_values(api(bob).get("plan", fields="owner.login"), "owner.login") == ["bob"]

    def test_every_type_is_created(self, plan: Table, bob: User):
        for name, type_name in {
            "html": "wysiwyg", "whole": "integer", "exact": "decimal", "yes": "boolean", "at": "datetime",
            "on_day": "date", "tree": "json", "pin": "password", "token": "secret", "text_": "text",
        }.items():  # fmt: skip
            field("plan", name, type_name)
        field("plan", "state", choices={"1": "New"})
        field("plan", "users", "list", target="user")
        body = {
            "html": "<p>Hi <b>you</b></p>", "whole": -5, "exact": 0.1, "yes": False, "at": "2030-01-02 03:04:05",
            "on_day": "2030-01-02", "tree": {"a": [1, None, "x"]}, "text_": "a\nb", "state": "1", "users": [bob.pk],
        }  # fmt: skip
        (record,) = data_of(api(bob).post("plan", {**body, "pin": "p", "token": "t"}, exclude_reference_link=1))
        assert {name: record[name] for name in body} == body
        tasks.create_deferred()
        (stored_record,) = data_of(api(bob).get(f"plan/{record['sys_id']}", exclude_reference_link=1))
        assert {name: stored_record[name] for name in body} == body
        assert len(data_of(api(bob).get("plan", query="htmlLIKEhi you"))) == 1
        assert None not in query_rows("SELECT pin, token FROM records.plan")[0]

    def test_defaults_and_empty_values_are_created(self, plan: Table, bob: User):
        field("plan", "rank", "integer", default_value="7")
        field("plan", "other", "integer", default_value="7")
        (record,) = data_of(api(bob).post("plan", {"other": None}))
        assert (record["rank"], record["other"]) == (7, None)
        tasks.create_deferred()
        (stored_record,) = data_of(api(bob).get(f"plan/{record['sys_id']}"))
        assert (stored_record["rank"], stored_record["other"]) == (7, None)

    def test_errors_are_reported_immediately(self, plan: Table, bob: User):
        field("plan", "code", mandatory=True, default_value="x")
        record("plan", name="taken")
        for body, expected_error in (
            ({"name": "Taken"}, (409, "duplicate", "name")),
            ({"code": None}, (422, "mandatory", "code")),
            ({"owner": "1"}, (422, "invalid_value", "owner")),
            ({"nothing": 1}, (400, "unknown_field", "nothing")),
            ({"sys_version": 1}, (400, "read_only", "sys_version")),
        ):
            assert error_of(api(bob).post("plan", body)) == expected_error
        rule("create", "plan", "name", condition="name!=bad")
        assert error_of(api(bob).post("plan", {"name": "bad"}))[0] == 403
        assert not DeferredRecord.objects.exists() and row_count() == 1

    def test_imported_id_can_be_queued_once(self, plan: Table, alice: User):
        data_of(api(alice).post("plan", {"sys_id": "imported1"}))
        status, code, _ = error_of(api(alice).post("plan", {"sys_id": "imported1"}))
        assert (status, code) == (409, "duplicate")
        tasks.create_deferred()
        assert error_of(api(alice).post("plan", {"sys_id": "imported1"}))[:2] == (409, "duplicate")
        assert column_values(api(alice).get("plan"), "sys_id") == ["imported1"]

    def test_shipped_deferred_tables_create_records_later(self, alice: User):
        (record,) = data_of(api(alice).post("sys_schedule", {"name": "Night"}))
        assert data_of(api(alice).get("sys_schedule")) == []
        tasks.create_deferred()
        assert column_values(api(alice).get("sys_schedule"), "sys_id") == [record["sys_id"]]

    def test_idempotency_key_applies(self, plan: Table, bob: User):
        responses = [api(bob).post("plan", {"name": "a"}, headers={"Idempotency-Key": "k"}) for _ in range(2)]
        assert responses[0].content == responses[1].content and DeferredRecord.objects.count() == 1


class TestDeferredCreation:
    def test_later_conflict_is_recorded_for_administrators(self, plan: Table, alice: User, bob: User, as_alice: Client):
        data_of(api(bob).post("plan", {"name": "same"}))
        data_of(api(bob).post("plan", {"name": "Same"}))
        tasks.create_deferred()
        assert column_values(api(bob).get("plan"), "name") == ["same"]
        failed_record = DeferredRecord.objects.get()
        assert (failed_record.state, failed_record.attempts) == ("failed", 1) and failed_record.error
        page = as_alice.get("/admin/tableapi/deferredrecord/").content.decode()
        assert failed_record.record_id in page
        create_deferred_records()
        assert DeferredRecord.objects.get().attempts == 1, "the failed record is not retried"

    def test_error_for_a_dropped_column_is_recorded(self, plan: Table, bob: User):
        field("plan", "note")
        data_of(api(bob).post("plan", {"name": "a", "note": "x"}))
        data_of(api(bob).post("plan", {"name": "b"}))
        Column.objects.get(table=plan, name="note").delete()
        tasks.create_deferred()
        assert column_values(api(bob).get("plan"), "name") == ["b"]
        assert "note" in DeferredRecord.objects.get().error

    def test_error_for_a_deleted_reference_is_recorded(self, plan: Table, alice: User, bob: User):
        data_of(api(alice).post("plan", {"owner": bob.pk}))
        bob.delete()
        tasks.create_deferred()
        assert (DeferredRecord.objects.get().state, row_count()) == ("failed", 0)

    def test_temporary_failure_is_retried(self, plan: Table, bob: User, monkeypatch: Any):
        def fail(*_: Any) -> None:
            raise OperationalError("value of a hidden column")

        data_of(api(bob).post("plan", {"name": "a"}))
        with monkeypatch.context() as patch:
            patch.setattr(designed_records, "insert", fail)
            for attempt in range(1, deferred_records.MAX_ATTEMPTS + 1):
                started_at = timezone.now()
                create_deferred_records()
                waiting_record = DeferredRecord.objects.get()
                assert waiting_record.attempts == attempt and waiting_record.next_at > started_at + timedelta(seconds=9)
                assert "hidden" not in waiting_record.error
                tasks.create_deferred()
                assert DeferredRecord.objects.get().attempts == attempt, "not retried before it is due"
        assert waiting_record.state == "failed"

    def test_record_is_created_after_a_temporary_failure(self, plan: Table, bob: User, monkeypatch: Any):
        def fail(*_: Any) -> None:
            raise OperationalError

        data_of(api(bob).post("plan", {"name": "a"}))
        with monkeypatch.context() as patch:
            patch.setattr(designed_records, "insert", fail)
            tasks.create_deferred()
        create_deferred_records()
        assert column_values(api(bob).get("plan"), "name") == ["a"] and not DeferredRecord.objects.exists()

    def test_queued_values_are_never_shown(self, plan: Table, bob: User, as_alice: Client):
        data_of(api(bob).post("plan", {"name": "confidential"}))
        waiting_record = DeferredRecord.objects.get()
        for path in ("", f"{waiting_record.pk}/change/"):
            response = as_alice.get(f"/admin/tableapi/deferredrecord/{path}")
            assert response.status_code == 200 and b"confidential" not in response.content


@pytest.mark.django_db(transaction=True)
class TestWithWorkers:
    def test_task_is_sent_on_commit(self, plan: Table, bob: User, monkeypatch: Any):
        queued_counts: list[int] = []
        monkeypatch.setattr(
            "tableapi.write.deferred_records.wake_worker",
            lambda task: queued_counts.append(DeferredRecord.objects.count()),
        )
        data_of(api(bob).post("plan", {"name": "a"}))
        assert queued_counts == [1]
        assert error_of(api(bob).post("plan", {"owner": "1"}))[0] == 422
        assert queued_counts == [1]

    def test_record_is_accepted_without_the_broker(self, plan: Table, bob: User, unavailable_broker: list[str]):
        data_of(api(bob).post("plan", {"name": "a"}))
        assert unavailable_broker == ["tableapi.tasks.create_deferred"]
        tasks.create_deferred()
        assert row_count() == 1

    def test_two_workers_create_each_record_once(self, plan: Table, bob: User, monkeypatch: Any):
        """The second worker starts while the first one creates its first record."""
        for name in ("a", "b", "c"):
            data_of(api(bob).post("plan", {"name": name}))
        is_reached, release = paused_call(monkeypatch, designed_records, "insert")
        first_job = run_in_thread(tasks.create_deferred)
        assert is_reached.wait(THREAD_TIMEOUT_S)
        tasks.create_deferred()
        assert sorted(column_values(api(bob).get("plan"), "name")) == ["b", "c"]
        release.set()
        result_of(first_job)
        assert sorted(column_values(api(bob).get("plan"), "name")) == ["a", "b", "c"]
        assert not DeferredRecord.objects.exists()
