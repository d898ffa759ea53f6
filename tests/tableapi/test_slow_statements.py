"""A request gets a 422 if a statement times out; after two timeouts, the user can run one request at a time."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from accounts.models import User
from tests.support.users import signed_in_client
from tests.tableapi.database_statements import captured_statements
from tests.tableapi.designs import query_rows
from tests.tableapi.test_write_concurrency import held_lock, result_of, run_in_thread, short_timeout, waits_for_lock
from tests.tableapi.world import ApiClient, api, data_of, error_of, field, open_table, record, table

pytestmark = pytest.mark.django_db(transaction=True)

TOO_SLOW_ERROR = (422, "query_too_slow", None)
TOO_MANY_ERROR = (429, "too_many_requests", None)
HTML_HEADERS = {"Accept": "text/html"}
RECORD_COUNT, TEXT_LENGTH = 400, 400_000


@pytest.fixture
def lamp(transactional_db: Any) -> str:
    table("device")
    field("device", "name")
    field("device", "manual", "text")
    open_table("device")
    return record("device", name="Lamp")


@pytest.fixture
def many_manuals(lamp: str) -> None:
    """Records with long texts, in which a search for a missing word takes seconds."""
    query_rows(
        "INSERT INTO records.device (name, manual) SELECT n, repeat('So it is. ', %s) FROM generate_series(1, %s) n",
        TEXT_LENGTH // 10, RECORD_COUNT)  # fmt: skip


@pytest.fixture
def key_caller(bob: User) -> ApiClient:
    return api(bob, credential="key")


def run_slow_search(caller: ApiClient, **options: Any) -> Any:
    return caller.get("device", query="manualLIKEnowhere", **options)


def run_slow_statements(user: User, count: int = 2) -> None:
    """Run statements that wait for a lock until they hit their time limit."""
    with held_lock("LOCK TABLE records.device IN ACCESS EXCLUSIVE MODE"), short_timeout("statement_timeout"):
        for _ in range(count):
            assert error_of(api(user).get("device")) == TOO_SLOW_ERROR


def slow_statement_count(user: User) -> int:
    return int(query_rows('SELECT slow_statements FROM "user" WHERE sys_id = %s', user.pk)[0][0])


def backdate_slow_statements(user: User, seconds: int) -> None:
    """Move the time of the last slow statement back."""
    query_rows('UPDATE "user" SET slow_at = slow_at - make_interval(secs => %s) WHERE sys_id = %s', seconds, user.pk)


@contextmanager
def running_request(user: User, lamp: str) -> Iterator[None]:
    """Run a write that waits for a lock until the end of the block and then succeeds."""
    with held_lock("SELECT FROM records.device WHERE sys_id = %s FOR UPDATE", lamp):
        write_job = run_in_thread(lambda: api(user).patch(f"device/{lamp}", {"name": "b"}))
        assert waits_for_lock(write_job)
        yield
    assert result_of(write_job).status_code == 200


class TestResponse:
    def test_slow_query_is_422_with_advice(self, many_manuals: None, bob: User, capfd: Any, log_lines: list[str]):
        with short_timeout("statement_timeout"):
            responses = [run_slow_search(api(bob)), run_slow_search(api(bob), count="exact", limit=1)]
        for response in responses:
            assert error_of(response) == TOO_SLOW_ERROR and "Retry-After" not in response
            (error,) = response.json()["errors"]
            assert all(word in error["message"] for word in ("cursor", "filter", "index"))
        log_text = "".join(capfd.readouterr()) + "".join(log_lines)
        assert "query_too_slow" in log_text and "422" in log_text and "database_unavailable" not in log_text
        for text in (log_text, responses[0].content.decode()):
            assert "SELECT" not in text and "nowhere" not in text and "records." not in text

    def test_every_operation_returns_422(self, lamp: str, bob: User):
        caller, path = api(bob), f"device/{lamp}"
        with held_lock("LOCK TABLE records.device IN ACCESS EXCLUSIVE MODE"), short_timeout("statement_timeout"):
            for response in (
                caller.get("device"), caller.get("device", count="exact"), caller.get(path),
                caller.post("device", {"name": "b"}), caller.put(path, {"name": "b"}),
                caller.patch(path, {"name": "b"}), caller.delete(path),
            ):  # fmt: skip
                assert error_of(response) == TOO_SLOW_ERROR
        assert query_rows("SELECT name FROM records.device") == [("Lamp",)]

    def test_response_is_not_stored_for_an_idempotency_key(self, lamp: str, bob: User):
        path, headers = f"device/{lamp}", {"Idempotency-Key": "k"}
        with held_lock("LOCK TABLE records.device IN ACCESS EXCLUSIVE MODE"), short_timeout("statement_timeout"):
            assert error_of(api(bob).patch(path, {"name": "b"}, headers=headers)) == TOO_SLOW_ERROR
        run_slow_statements(bob)
        with running_request(bob, lamp):
            assert error_of(api(bob).patch(path, {"name": "c"}, headers=headers)) == TOO_MANY_ERROR
        assert api(bob).patch(path, {"name": "d"}, headers=headers).status_code == 200

    def test_cancellation_by_an_administrator_is_503(self, lamp: str, bob: User):
        with held_lock("SELECT FROM records.device WHERE sys_id = %s FOR UPDATE", lamp):
            write_job = run_in_thread(lambda: api(bob).patch(f"device/{lamp}", {"name": "b"}))
            assert waits_for_lock(write_job)
            query_rows("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
            response = result_of(write_job)
        assert error_of(response) == (503, "unavailable", None) and "Retry-After" in response
        assert slow_statement_count(bob) == 0

    def test_timeout_during_authentication_is_503(self, lamp: str, bob: User):
        with held_lock('LOCK TABLE "user" IN ACCESS EXCLUSIVE MODE'), short_timeout("statement_timeout"):
            assert error_of(api(bob).get("device")) == (503, "unavailable", None)
        assert slow_statement_count(bob) == 0

    def test_pages_explain_the_timeout(self, many_manuals: None, alice: User):
        browser = signed_in_client(alice)
        with short_timeout("statement_timeout"):
            response = browser.get("/tables/device/", {"sysparm_query": "manualLIKEnowhere"}, headers=HTML_HEADERS)
        assert response.status_code == 422 and "The query took too long." in response.content.decode()
        assert "manualLIKEnowhere" in response.content.decode()
        with held_lock("LOCK TABLE records.device IN ACCESS EXCLUSIVE MODE"), short_timeout("statement_timeout"):
            response = browser.get("/tables/device/a/", headers=HTML_HEADERS)
        assert response.status_code == 422 and "The query took too long." in response.content.decode()
        assert slow_statement_count(alice) == 2


class TestLimit:
    def test_user_with_slow_statements_runs_one_request_at_a_time(
        self, lamp: str, alice: User, key_caller: ApiClient, bob: User
    ):
        run_slow_statements(bob)
        browser = signed_in_client(bob)
        with running_request(bob, lamp):
            for response in (api(bob).get("device"), key_caller.get("device"), api(bob).post("device", {"name": "c"})):
                assert error_of(response) == TOO_MANY_ERROR and int(response["Retry-After"]) > 0
            refused_page = browser.get("/collections/", headers=HTML_HEADERS)
            assert refused_page.status_code == 429 and int(refused_page["Retry-After"]) > 0
            assert "one of your requests can run at a time" in refused_page.content.decode()
            assert browser.get("/api/me").status_code == 429
            assert api(alice).get("device").status_code == 200, "other users are not limited"
        assert {api(bob).get("device").status_code for _ in range(3)} == {200}
        assert browser.get("/api/me").status_code == browser.get("/collections/").status_code == 200

    def test_account_pages_and_sign_out_are_always_served(self, lamp: str, bob: User):
        """On these pages, users can revoke the key that sends slow queries."""
        run_slow_statements(bob)
        browser = signed_in_client(bob)
        with running_request(bob, lamp):
            assert browser.get("/account/").status_code == 200
            assert browser.post("/logout/").status_code == 302

    @pytest.mark.parametrize(
        ("count", "age_s"),
        [(1, 0), (2, 61), (2, -61)],
        ids=["one slow statement", "a minute later", "a clock that jumped back"],
    )
    def test_limit_requires_two_slow_statements_in_the_last_minute(self, count: int, age_s: int, lamp: str, bob: User):
        run_slow_statements(bob, count)
        backdate_slow_statements(bob, age_s)
        with running_request(bob, lamp):
            assert api(bob).get("device").status_code == 200

    def test_slow_statements_more_than_a_minute_apart_do_not_add_up(self, lamp: str, bob: User):
        run_slow_statements(bob, 1)
        backdate_slow_statements(bob, 61)
        run_slow_statements(bob, 1)
        with running_request(bob, lamp):
            assert api(bob).get("device").status_code == 200

    def test_another_slow_statement_extends_the_limit(self, lamp: str, bob: User):
        run_slow_statements(bob)
        backdate_slow_statements(bob, 50)
        run_slow_statements(bob, 1)
        backdate_slow_statements(bob, 50)
        with running_request(bob, lamp):
            assert error_of(api(bob).get("device")) == TOO_MANY_ERROR

    def test_limit_of_a_remembered_key_needs_no_query(self, lamp: str, bob: User, key_caller: ApiClient):
        with held_lock("LOCK TABLE records.device IN ACCESS EXCLUSIVE MODE"), short_timeout("statement_timeout"):
            assert [error_of(key_caller.get("device")) for _ in range(2)] == [TOO_SLOW_ERROR] * 2
        with running_request(bob, lamp), captured_statements() as executed_statements:
            assert error_of(key_caller.get("device")) == TOO_MANY_ERROR
        assert not any("accounts_access_key" in statement for statement in executed_statements), (
            "the key was remembered"
        )

    def test_lost_connection_lets_the_next_request_run(self, lamp: str, bob: User):
        run_slow_statements(bob)
        with held_lock("SELECT FROM records.device WHERE sys_id = %s FOR UPDATE", lamp):
            write_job = run_in_thread(lambda: api(bob).patch(f"device/{lamp}", {"name": "b"}))
            assert waits_for_lock(write_job)
            assert error_of(api(bob).get("device")) == TOO_MANY_ERROR
            query_rows("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
            assert error_of(result_of(write_job)) == (503, "unavailable", None)
            assert api(bob).get("device").status_code == 200

    def test_failed_request_lets_the_next_request_run(self, lamp: str, bob: User):
        run_slow_statements(bob)
        assert error_of(api(bob).get("nothing"))[0] == 404
        assert result_of(run_in_thread(lambda: api(bob).get("device"))).status_code == 200
        assert query_rows("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == [(0,)]

    def test_timeout_is_reported_even_if_it_cannot_be_counted(self, lamp: str, bob: User):
        """For example, because the disk is full."""
        query_rows("CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE disk_full; END$$")
        query_rows('CREATE TRIGGER full_disk BEFORE UPDATE ON "user" EXECUTE FUNCTION full_disk()')
        try:
            run_slow_statements(bob)
        finally:
            query_rows("DROP FUNCTION full_disk CASCADE")
        assert slow_statement_count(bob) == 0 and api(bob).get("device").status_code == 200

    def test_other_callers_run_no_additional_statement(self, lamp: str, bob: User, key_caller: ApiClient):
        def capture_statements_of_read() -> list[str]:
            with captured_statements() as executed_statements:
                assert len(data_of(key_caller.get("device"))) == 1
            return executed_statements

        capture_statements_of_read()
        assert len(capture_statements_of_read()) == 1 and "advisory" not in str(capture_statements_of_read())
        run_slow_statements(bob)
        backdate_slow_statements(bob, 61)
        assert "advisory" not in str(capture_statements_of_read())

    def test_counters_are_not_shown(self, lamp: str, alice: User, bob: User):
        run_slow_statements(bob)
        (user_record,) = data_of(api(alice).get(f"user/{bob.pk}"))
        assert "slow" not in json.dumps(user_record) and user_record["sys_version"] == 0
