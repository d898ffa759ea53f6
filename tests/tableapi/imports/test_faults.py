"""Killed workers, lost leases, and changes between the pieces of an import: nothing is written twice or lost."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connections
from psycopg import errors

from accounts.models import User
from tableapi.bulk import bulk_write
from tableapi.database.statement_runner import CatalogueChanged
from tableapi.imports import steps, writing
from tableapi.models import Column, Import, ImportPiece, Table
from tableapi.tasks import run_imports
from tests.config.stack import eventually
from tests.tableapi.designs import query_rows
from tests.tableapi.imports.files import counts, send
from tests.tableapi.world import api, data_of, grant, record, rule

pytestmark = pytest.mark.django_db
LINES = 2_500
CONTENT = "name,quantity\n" + "".join(f"n{number},{number}\n" for number in range(LINES))


class Kill(BaseException):
    """Ends a step as a killed process does."""


@pytest.fixture(autouse=True)
def broker_of_tests(unavailable_broker: list[str]) -> list[str]:
    """A lost broker changes nothing: the schedule starts the task."""
    return unavailable_broker


def start(user: User, content: str = CONTENT, **options: Any) -> Import:
    response = send(user, "part", content, **options)
    assert response.status_code in (200, 202)
    return Import.objects.get(pk=response.json()["data"][0]["sys_id"])


def state_of(user: User, job: Import) -> dict[str, Any]:
    return dict(data_of(api(user).get(f"/rest/v1/import/part/{job.pk}"))[0])


def work() -> None:
    """Run the tasks that the schedule starts: each ends after its time budget."""
    for _ in range(20):
        run_imports()


def stored_count() -> int:
    return int(query_rows("SELECT count(*) FROM records.part")[0][0])


def end_pause() -> None:
    query_rows("UPDATE tableapi_import SET next_at = now()")


@contextmanager
def before_piece(monkeypatch: pytest.MonkeyPatch, number: int, action: Any, *, after: bool = False) -> Iterator[None]:
    """Runs an action once, before or after the piece with this number is written and before it is committed."""
    write_piece = steps._write_piece
    done: list[int] = []

    def write(job: Import, options: Any, piece: int) -> Any:
        result = write_piece(job, options, piece) if after else None
        if piece == number and not done:
            done.append(piece)
            action()
        return result if after else write_piece(job, options, piece)

    with monkeypatch.context() as patch:
        patch.setattr(steps, "_write_piece", write)
        yield
    assert done


def kill_at_piece(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def kill() -> None:
        raise Kill

    with before_piece(monkeypatch, number, kill, after=True), pytest.raises(Kill):
        run_imports()


@pytest.mark.parametrize(("on_error", "count_after_kill"), [("continue", 1_000), ("stop", 0)])
def test_killed_worker_writes_nothing_twice(
    part: Table, bob: User, monkeypatch: pytest.MonkeyPatch, on_error: str, count_after_kill: int
):
    job = start(bob, on_error=on_error)
    kill_at_piece(monkeypatch, 1)
    assert stored_count() == count_after_kill
    assert state_of(bob, job)["processed"] == count_after_kill
    run_imports()  # the pause before the next attempt has not ended
    assert stored_count() == count_after_kill
    end_pause()
    work()
    assert query_rows("SELECT count(*), count(DISTINCT quantity) FROM records.part") == [(LINES, LINES)]
    assert counts(state_of(bob, job)) == (LINES, 0, 0, 0)
    assert set(ImportPiece.objects.values_list("kind", flat=True)) == {"undo"}


def test_second_worker_leaves_the_import_to_the_first(part: Table, bob: User):
    job = start(bob, on_error="continue")
    with closing(connections.create_connection("default")) as other, other.cursor() as cursor:
        cursor.execute(steps.LOCK, [job.pk])
        work()
        assert stored_count() == 0
    eventually(lambda: steps.process(job.pk))  # the lock ends with the connection
    assert stored_count() == LINES


def test_interrupted_imports_end_after_several_attempts(part: Table, bob: User, monkeypatch: pytest.MonkeyPatch):
    job = start(bob)
    monkeypatch.setattr(steps, "STEPS", {**steps.STEPS, "writing": lambda job: (_ for _ in ()).throw(Kill)})
    for _ in range(steps.MAX_ATTEMPTS):
        with pytest.raises(Kill):
            run_imports()
        end_pause()
    work()
    assert state_of(bob, job)["error"] == [{"message": "Every attempt was interrupted.", "code": "interrupted"}]


def test_changed_catalogue_repeats_lines_without_writing_them_twice(
    part: Table, bob: User, monkeypatch: pytest.MonkeyPatch
):
    create_records, calls = bulk_write.create_records, []

    def create(change: Any, bulk: Any) -> Any:
        calls.append(len(bulk.records))
        if len(calls) == 2:
            raise CatalogueChanged
        return create_records(change, bulk)

    monkeypatch.setattr(bulk_write, "create_records", create)
    response = send(bob, "part", "code,name,parent\np1,a,\np2,b,p1\n")
    assert response.status_code == 200 and calls == [1, 1, 1, 1] and stored_count() == 2


def test_full_disk_postpones_the_import(part: Table, bob: User, monkeypatch: pytest.MonkeyPatch):
    job = start(bob)

    def fail() -> None:
        raise OperationalError from errors.DiskFull()

    with before_piece(monkeypatch, 0, fail):
        run_imports()
    assert state_of(bob, job)["state"] == "writing" and stored_count() == 0
    end_pause()
    work()
    assert stored_count() == LINES


def deactivate(user: User) -> None:
    User.objects.filter(pk=user.pk).update(active=False)


def test_deactivated_person_stops_the_import(part: Table, bob: User, alice: User, monkeypatch: pytest.MonkeyPatch):
    job = start(bob, on_error="continue")
    with before_piece(monkeypatch, 1, lambda: deactivate(bob)):
        run_imports()
    job.refresh_from_db()
    assert job.error and (job.state, job.error[0]["code"], stored_count()) == ("failed", "inactive", 1_000)


def test_lost_role_stops_the_import_and_what_is_written_can_be_undone(
    closed_part: Table, bob: User, monkeypatch: pytest.MonkeyPatch
):
    for operation in ("create", "read", "delete"):
        rule(operation, "part", roles=["maker"])
    grant(bob, "maker")
    job = start(bob, on_error="continue")
    with before_piece(monkeypatch, 1, lambda: query_rows("DELETE FROM sys_user_role")):
        run_imports()
    state = state_of(bob, job)
    assert (state["state"], state["error"][0]["code"], stored_count()) == ("failed", "table_not_found", 1_000)
    assert api(bob).post(f"/rest/v1/import/part/{job.pk}/undo").status_code == 202
    work()
    assert stored_count() == 0 and state_of(bob, job)["undone"] == 1_000


@pytest.mark.parametrize(
    ("change", "code"),
    [(lambda: Column.objects.get(table__name="part", name="quantity").delete(), "unknown_field"),
     (lambda: query_rows("UPDATE sys_acl SET active = false; UPDATE tableapi_state SET version = version + 1"),
      "table_not_found")],
)  # fmt: skip
def test_changed_design_stops_the_import(
    part: Table, bob: User, monkeypatch: pytest.MonkeyPatch, change: Any, code: str
):
    job = start(bob, on_error="continue")
    with before_piece(monkeypatch, 1, change):
        run_imports()
    assert (state_of(bob, job)["error"][0]["code"], stored_count()) == (code, 1_000)


def test_undo_continues_after_a_killed_worker(part: Table, bob: User, monkeypatch: pytest.MonkeyPatch):
    job = start(bob, on_error="continue")
    work()
    api(bob).post(f"/rest/v1/import/part/{job.pk}/undo")
    undo_entries = writing.undo_entries
    calls: list[int] = []

    def undo_or_die(caller: Any, table: str, entries: Any) -> Any:
        left = undo_entries(caller, table, entries)
        calls.append(len(entries))
        if len(calls) == 2:
            raise Kill
        return left

    monkeypatch.setattr(writing, "undo_entries", undo_or_die)
    with pytest.raises(Kill):
        run_imports()
    assert stored_count() == 2_000
    end_pause()
    work()
    assert calls == [500, 1_000, 1_000, 1_000] and stored_count() == 0
    assert (state_of(bob, job)["undone"], state_of(bob, job)["state"]) == (LINES, "undone")


def test_cancelled_import_stops_and_can_be_undone(part: Table, bob: User, monkeypatch: pytest.MonkeyPatch):
    job = start(bob, on_error="continue")
    with before_piece(monkeypatch, 1, lambda: api(bob).delete(f"/rest/v1/import/part/{job.pk}"), after=True):
        run_imports()
    # The cancellation was part of the rolled back transaction of this test's connection.
    api(bob).delete(f"/rest/v1/import/part/{job.pk}")
    state = state_of(bob, job)
    assert (state["state"], state["created"], state["can_be_undone"]) == ("cancelled", 1_000, True)
    api(bob).post(f"/rest/v1/import/part/{job.pk}/undo")
    work()
    assert stored_count() == 0


def test_too_many_lines_for_one_transaction(part: Table, bob: User, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(steps, "MAX_ATOMIC_LINES", 100)
    job = start(bob)
    work()
    job.refresh_from_db()
    assert job.error and job.error[0]["code"] == "too_many_lines"
    job = start(bob, dry_run=1, on_error="continue")  # piece by piece
    work()
    assert counts(state_of(bob, job)) == (LINES, 0, 0, 0) and stored_count() == 0


def test_errors_in_a_long_file_do_not_stop_the_other_lines(part: Table, bob: User):
    record("part", name="x", code="c1500")
    content = "name,code\n" + "".join(f"n{number},c{number}\n" for number in range(LINES))
    job = start(bob, content, on_error="continue")
    work()
    state = state_of(bob, job)
    assert counts(state) == (LINES - 1, 0, 0, 1) and state["line_errors"][0]["line"] == 1502


def test_command_imports_in_its_process(part: Table, bob: User, tmp_path: Any, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "parts.csv"
    file.write_text("name,quantity\na,1\nb,many\n")
    arguments = ["import", "part", str(file), "--login", "bob"]
    with pytest.raises(CommandError, match="Lines have errors, so nothing was written"):
        call_command(*arguments)
    assert "Line 3: quantity: many: Expected a whole number." in capsys.readouterr().err
    with pytest.raises(CommandError, match="Lines have errors"):
        call_command(*arguments, "--on-error", "continue")
    assert "1 created, 0 updated, 0 unchanged, 1 failed" in capsys.readouterr().out
    file.write_text("name,quantity\nc,1\n")
    call_command(*arguments, "--dry-run")
    assert query_rows("SELECT name FROM records.part") == [("a",)]
    call_command(*arguments)
    assert stored_count() == 2
    for wrong in (["import", "part", str(file), "--login", "none"], [*arguments, "--mode", "upsert"],
                  ["import", "part", str(tmp_path / "none.csv"), "--login", "bob"],
                  ["import", "part", "x.pdf", "--login", "bob"]):  # fmt: skip
        with pytest.raises(CommandError):
            call_command(*wrong)
