"""A statement that hits its time limit is a 422; after two of them, their caller runs one request at a time."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from accounts.models import User
from tests.support.users import signed_in
from tests.tableapi.database_statements import statements
from tests.tableapi.designs import ask
from tests.tableapi.test_write_concurrency import beside, held, impatient, result, settle
from tests.tableapi.world import Api, api, data, failed, field, open_table, record, table

pytestmark = pytest.mark.django_db(transaction=True)

TOO_SLOW = (422, "query_too_slow", None)
ONE_AT_A_TIME = (429, "too_many_requests", None)
HTML = {"Accept": "text/html"}
RECORDS, TEXT = 400, 400_000


@pytest.fixture
def lamp(transactional_db: Any) -> str:
    table("device")
    field("device", "name")
    field("device", "manual", "text")
    open_table("device")
    return record("device", name="Lamp")


@pytest.fixture
def manuals(lamp: str) -> None:
    """Long texts: looking for a word that is in none of them takes seconds."""
    ask("INSERT INTO records.device (name, manual) SELECT n, repeat('So it is. ', %s) FROM generate_series(1, %s) n",
        TEXT // 10, RECORDS)  # fmt: skip


@pytest.fixture
def bobs_key(bob: User) -> Api:
    return api(bob, by="key")


def search(caller: Api, **more: Any) -> Any:
    return caller.get("device", query="manualLIKEnowhere", **more)


def make_slow(user: User, times: int = 2) -> None:
    """By statements that wait for a lock until they hit their limit."""
    with held("LOCK TABLE records.device IN ACCESS EXCLUSIVE MODE"), impatient("statement_timeout"):
        for _ in range(times):
            assert failed(api(user).get("device")) == TOO_SLOW


def slow_statements(user: User) -> int:
    return int(ask('SELECT slow_statements FROM "user" WHERE sys_id = %s', user.pk)[0][0])


def move_clock(user: User, seconds: int) -> None:
    """As if the last slow statement had happened so much earlier."""
    ask('UPDATE "user" SET slow_at = slow_at - make_interval(secs => %s) WHERE sys_id = %s', seconds, user.pk)


@contextmanager
def running(user: User, lamp: str) -> Iterator[None]:
    """A write of this user waits for the record until the end of the block, and then succeeds."""
    with held("SELECT FROM records.device WHERE sys_id = %s FOR UPDATE", lamp):
        write = beside(lambda: api(user).patch(f"device/{lamp}", {"name": "b"}))
        assert settle(write)
        yield
    assert result(write).status_code == 200


class TestAnswer:
    def test_slow_query_is_422_with_advice(self, manuals: None, bob: User, capfd: Any, log_lines: list[str]):
        with impatient("statement_timeout"):
            responses = [search(api(bob)), search(api(bob), count="exact", limit=1)]
        for response in responses:
            assert failed(response) == TOO_SLOW and "Retry-After" not in response
            (error,) = response.json()["errors"]
            assert all(word in error["message"] for word in ("cursor", "filter", "index"))
        written = "".join(capfd.readouterr()) + "".join(log_lines)
        assert "query_too_slow" in written and "422" in written and "database_unavailable" not in written
        for text in (written, responses[0].content.decode()):
            assert "SELECT" not in text and "nowhere" not in text and "records." not in text

    def test_every_operation_answers_so(self, lamp: str, bob: User):
        caller, path = api(bob), f"device/{lamp}"
        with held("LOCK TABLE records.device IN ACCESS EXCLUSIVE MODE"), impatient("statement_timeout"):
            for response in (
                caller.get("device"), caller.get("device", count="exact"), caller.get(path),
                caller.post("device", {"name": "b"}), caller.put(path, {"name": "b"}),
                caller.patch(path, {"name": "b"}), caller.delete(path),
            ):  # fmt: skip
                assert failed(response) == TOO_SLOW
        assert ask("SELECT name FROM records.device") == [("Lamp",)]

    def test_answer_is_not_stored_for_an_idempotency_key(self, lamp: str, bob: User):
        path, key = f"device/{lamp}", {"Idempotency-Key": "k"}
        with held("LOCK TABLE records.device IN ACCESS EXCLUSIVE MODE"), impatient("statement_timeout"):
            assert failed(api(bob).patch(path, {"name": "b"}, headers=key)) == TOO_SLOW
        make_slow(bob)
        with running(bob, lamp):
            assert failed(api(bob).patch(path, {"name": "c"}, headers=key)) == ONE_AT_A_TIME
        assert api(bob).patch(path, {"name": "d"}, headers=key).status_code == 200

    def test_cancellation_by_an_administrator_is_503(self, lamp: str, bob: User):
        with held("SELECT FROM records.device WHERE sys_id = %s FOR UPDATE", lamp):
            write = beside(lambda: api(bob).patch(f"device/{lamp}", {"name": "b"}))
            assert settle(write)
            ask("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
            response = result(write)
        assert failed(response) == (503, "unavailable", None) and "Retry-After" in response
        assert slow_statements(bob) == 0

    def test_statement_about_the_credentials_is_503(self, lamp: str, bob: User):
        with held('LOCK TABLE "user" IN ACCESS EXCLUSIVE MODE'), impatient("statement_timeout"):
            assert failed(api(bob).get("device")) == (503, "unavailable", None)
        assert slow_statements(bob) == 0

    def test_records_page_says_why(self, manuals: None, alice: User):
        browser = signed_in(alice)
        (sys_id,) = ask("SELECT sys_id FROM sys_db_table WHERE name = 'device'")[0]
        page = f"/admin/tableapi/table/{sys_id}/records/"
        with impatient("statement_timeout"):
            text = browser.get(page, {"query": "manualLIKEnowhere"}).content.decode()
        assert "The query took too long." in text and 'value="manualLIKEnowhere"' in text
        with held("LOCK TABLE records.device IN ACCESS EXCLUSIVE MODE"), impatient("statement_timeout"):
            response = browser.get(page, {"record": "a"}, headers=HTML)
        assert response.status_code == 422 and "The query took too long." in response.content.decode()
        assert slow_statements(alice) == 2


class TestLimit:
    def test_slow_caller_runs_one_request_at_a_time(self, lamp: str, alice: User, bobs_key: Api, bob: User):
        make_slow(bob)
        page = signed_in(bob)
        with running(bob, lamp):
            for refused in (api(bob).get("device"), bobs_key.get("device"), api(bob).post("device", {"name": "c"})):
                assert failed(refused) == ONE_AT_A_TIME and int(refused["Retry-After"]) > 0
            refused_page = page.get("/collections/", headers=HTML)
            assert refused_page.status_code == 429 and int(refused_page["Retry-After"]) > 0
            assert "one of your requests can run at a time" in refused_page.content.decode()
            assert page.get("/api/me").status_code == 429
            assert api(alice).get("device").status_code == 200, "nobody else waits"
        assert {api(bob).get("device").status_code for _ in range(3)} == {200}
        assert page.get("/api/me").status_code == page.get("/collections/").status_code == 200

    def test_account_pages_and_sign_out_are_always_served(self, lamp: str, bob: User):
        """Where the user revokes the key that sends the slow queries."""
        make_slow(bob)
        page = signed_in(bob)
        with running(bob, lamp):
            assert page.get("/account/").status_code == 200
            assert page.post("/logout/").status_code == 302

    @pytest.mark.parametrize(
        ("times", "moved_s"),
        [(1, 0), (2, 61), (2, -61)],
        ids=["one slow statement", "a minute later", "a clock that jumped back"],
    )
    def test_others_are_not_limited(self, times: int, moved_s: int, lamp: str, bob: User):
        make_slow(bob, times)
        move_clock(bob, moved_s)
        with running(bob, lamp):
            assert api(bob).get("device").status_code == 200

    def test_slow_statements_more_than_a_minute_apart_do_not_add_up(self, lamp: str, bob: User):
        make_slow(bob, 1)
        move_clock(bob, 61)
        make_slow(bob, 1)
        with running(bob, lamp):
            assert api(bob).get("device").status_code == 200

    def test_another_slow_statement_extends_the_limit(self, lamp: str, bob: User):
        make_slow(bob)
        move_clock(bob, 50)
        make_slow(bob, 1)
        move_clock(bob, 50)
        with running(bob, lamp):
            assert failed(api(bob).get("device")) == ONE_AT_A_TIME

    def test_process_that_saw_the_timeouts_of_a_key_limits_it_at_once(self, lamp: str, bob: User, bobs_key: Api):
        with held("LOCK TABLE records.device IN ACCESS EXCLUSIVE MODE"), impatient("statement_timeout"):
            assert [failed(bobs_key.get("device")) for _ in range(2)] == [TOO_SLOW] * 2
        with running(bob, lamp), statements() as ran:
            assert failed(bobs_key.get("device")) == ONE_AT_A_TIME
        assert not any("accounts_access_key" in statement for statement in ran), "the key was remembered"

    def test_lost_connection_gives_the_turn_back(self, lamp: str, bob: User):
        make_slow(bob)
        with held("SELECT FROM records.device WHERE sys_id = %s FOR UPDATE", lamp):
            write = beside(lambda: api(bob).patch(f"device/{lamp}", {"name": "b"}))
            assert settle(write)
            assert failed(api(bob).get("device")) == ONE_AT_A_TIME
            ask("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
            assert failed(result(write)) == (503, "unavailable", None)
            assert api(bob).get("device").status_code == 200

    def test_failed_request_gives_the_turn_back(self, lamp: str, bob: User):
        make_slow(bob)
        assert failed(api(bob).get("nothing"))[0] == 404
        assert result(beside(lambda: api(bob).get("device"))).status_code == 200
        assert ask("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == [(0,)]

    def test_user_who_cannot_be_counted_gets_the_same_answer(self, lamp: str, bob: User):
        """As on a full disk."""
        ask("CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE disk_full; END$$")
        ask('CREATE TRIGGER full_disk BEFORE UPDATE ON "user" EXECUTE FUNCTION full_disk()')
        try:
            make_slow(bob)
        finally:
            ask("DROP FUNCTION full_disk CASCADE")
        assert slow_statements(bob) == 0 and api(bob).get("device").status_code == 200

    def test_callers_who_are_not_slow_run_no_statement_more(self, lamp: str, bob: User, bobs_key: Api):
        def read() -> list[str]:
            with statements() as ran:
                assert len(data(bobs_key.get("device"))) == 1
            return ran

        read()
        assert len(read()) == 1 and "advisory" not in str(read())
        make_slow(bob)
        move_clock(bob, 61)
        assert "advisory" not in str(read())

    def test_counters_are_not_shown(self, lamp: str, alice: User, bob: User):
        make_slow(bob)
        (shown,) = data(api(alice).get(f"user/{bob.pk}"))
        assert "slow" not in json.dumps(shown) and shown["sys_version"] == 0
