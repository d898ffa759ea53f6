"""Limits on failed passwords in 15 minutes: ten per login and IP address, a hundred per IP address (B58)."""

import ipaddress
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import OperationalError
from django.db.models import F
from django.test import Client

from accounts.authentication import login_attempts
from accounts.authentication.login_attempts import (
    FAILURE_WINDOW,
    MAX_FAILURES_PER_ADDRESS,
    MAX_FAILURES_PER_LOGIN_AND_ADDRESS,
    PasswordAttempt,
)
from accounts.models import AccessKey, FailedAttempts, User
from system import process_cache, properties
from tests.accounts.callers import basic_auth, bearer_auth, get_me, request_api_key, try_password
from tests.support.users import PASSWORD, make_user

IP, OTHER_IP = "192.0.2.1", "192.0.2.2"


def record_failures(login: str = "bob", ip: str = IP, count: int = MAX_FAILURES_PER_LOGIN_AND_ADDRESS) -> None:
    assert [try_password(login, f"wrong {number}", ip) for number in range(count)] == [401] * count


def let_time_pass(duration: timedelta) -> None:
    FailedAttempts.objects.update(started_at=F("started_at") - duration)


def test_eleventh_password_is_not_checked(bob: User):
    record_failures()

    assert try_password("bob", "wrong again") == 429
    assert try_password("bob", PASSWORD) == 429, "otherwise an eleventh guess could succeed"


def test_refusal_states_the_waiting_time(bob: User):
    record_failures()
    let_time_pass(timedelta(minutes=5))
    response = get_me(basic_auth("bob"))

    assert response.json()["errors"][0]["code"] == "too_many_requests"
    assert 9 * 60 <= int(response["Retry-After"]) <= 10 * 60


def test_other_addresses_are_not_affected(bob: User):
    record_failures()

    assert try_password("bob", "wrong", OTHER_IP) == 401
    assert try_password("bob", PASSWORD, OTHER_IP) == 200, "a user cannot lock out another"


def test_other_accounts_from_the_same_address_are_not_affected(bob: User, alice: User):
    record_failures()

    assert try_password("alice", PASSWORD) == 200


def test_all_sign_in_routes_share_one_counter(bob: User, client: Client):
    record_failures(count=4)
    assert [request_api_key("bob", f"wrong {number}", REMOTE_ADDR=IP).status_code for number in range(3)] == [401] * 3
    form = {"login": "bob", "password": "wrong"}
    assert [client.post("/login/", form, REMOTE_ADDR=IP).status_code for _ in range(3)] == [401] * 3

    assert try_password("bob", PASSWORD) == 429
    assert request_api_key("bob", REMOTE_ADDR=IP).status_code == 429
    assert client.post("/login/", {**form, "password": PASSWORD}, REMOTE_ADDR=IP).status_code == 429


def test_success_resets_the_counter_of_account_and_address(bob: User):
    record_failures(count=MAX_FAILURES_PER_LOGIN_AND_ADDRESS - 1)
    assert try_password("bob", PASSWORD) == 200
    process_cache.clear_all()

    record_failures()


def test_success_does_not_reset_the_counter_of_the_address(bob: User):
    record_failures("nobody", count=7)
    assert try_password("bob", PASSWORD) == 200

    assert FailedAttempts.objects.get(key=PasswordAttempt("", IP).address_key).count == 7


def test_hundred_wrong_passwords_block_the_address(bob: User):
    for number in range(MAX_FAILURES_PER_ADDRESS // MAX_FAILURES_PER_LOGIN_AND_ADDRESS):
        record_failures(f"stranger {number}")

    assert try_password("bob", PASSWORD) == 429
    assert try_password("bob", PASSWORD, OTHER_IP) == 200


def test_refused_attempts_are_not_counted(bob: User, alice: User):
    """A script that keeps sending an old password must not lock out all users of its IP address."""
    record_failures()
    assert {try_password("bob", "wrong") for _ in range(MAX_FAILURES_PER_ADDRESS)} == {429}

    assert try_password("alice", PASSWORD) == 200
    assert (
        FailedAttempts.objects.get(key=PasswordAttempt("bob", IP).pair_key).count == MAX_FAILURES_PER_LOGIN_AND_ADDRESS
    )


def test_window_ends_after_fifteen_minutes(bob: User):
    record_failures()
    let_time_pass(FAILURE_WINDOW - timedelta(seconds=5))
    assert try_password("bob", PASSWORD) == 429

    let_time_pass(timedelta(seconds=6))
    assert try_password("bob", "wrong") == 401
    assert try_password("bob", PASSWORD) == 200


def test_new_window_counts_from_one(bob: User):
    record_failures()
    let_time_pass(FAILURE_WINDOW + timedelta(seconds=1))
    record_failures()

    assert try_password("bob", PASSWORD) == 429


@pytest.mark.parametrize(
    ("first_ip", "second_ip", "shares_counter"),
    [
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
    ],
)
def test_ipv6_callers_are_counted_by_network_and_mapped_addresses_as_ipv4(
    bob: User, first_ip: str, second_ip: str, shares_counter: bool
):
    record_failures(ip=first_ip)

    assert try_password("bob", "wrong", second_ip) == (429 if shares_counter else 401)


def test_forged_address_is_ignored(bob: User):
    for number in range(10):
        forged_headers = {"X-Forwarded-For": f"198.51.100.{number}", "Forwarded": f"for=198.51.100.{number}"}
        assert get_me({**basic_auth("bob", f"wrong {number}"), **forged_headers}).status_code == 401

    assert (
        get_me({**basic_auth("bob"), "X-Forwarded-For": "198.51.100.99", "X-Real-IP": "198.51.100.99"}).status_code
        == 429
    )


def test_callers_behind_a_trusted_proxy_are_counted_separately(bob: User, settings: Any):
    settings.TRUSTED_PROXIES = (ipaddress.ip_network("10.0.0.0/8"),)

    def try_through_proxy(caller_ip: str, password: str, proxy_ip: str = "10.0.0.1") -> int:
        response = get_me({**basic_auth("bob", password), "X-Forwarded-For": f"198.51.100.1, {caller_ip}"}, ip=proxy_ip)
        return int(response.status_code)

    assert [try_through_proxy(IP, f"wrong {number}") for number in range(11)] == [401] * 10 + [429]
    assert try_through_proxy(IP, PASSWORD, proxy_ip="::ffff:10.0.0.1") == 429, "the mapped address is the same proxy"
    assert try_through_proxy(OTHER_IP, PASSWORD) == 200


def test_unreadable_addresses_share_one_counter(bob: User):
    record_failures(ip="")

    assert try_password("bob", PASSWORD, "") == 429


def test_spellings_share_a_counter_if_case_is_ignored(bob: User):
    properties.put(properties.CASE_SENSITIVE, "false")
    record_failures("bob", count=5)
    record_failures("BOB", count=5)

    assert try_password("Bob", PASSWORD) == 429


def test_spellings_are_counted_separately_if_case_matters(bob: User):
    """Otherwise the owner of BOB could reset the counter of bob and continue to guess."""
    make_user("BOB")
    record_failures("bob", count=9)
    assert try_password("BOB", PASSWORD) == 200

    record_failures("bob", count=1)
    assert try_password("bob", PASSWORD) == 429


def test_no_login_or_address_is_stored(bob: User):
    record_failures(count=2)

    assert FailedAttempts.objects.count() == 2
    for row in FailedAttempts.objects.all():
        assert len(row.key) == 64 and "bob" not in str(row) and IP not in str(row)


def test_dashboard_shows_the_number_of_locked_logins(as_alice: Client, bob: User):
    def people_tile_text() -> str:
        (tile,) = [tile for tile in as_alice.get("/admin/").context["tiles"] if tile.title == "People"]
        return str(tile.description)

    record_failures("bob", count=MAX_FAILURES_PER_LOGIN_AND_ADDRESS - 1)
    assert "locked" not in people_tile_text(), "neither the login nor the address has reached its limit"
    record_failures("bob", count=1)
    assert people_tile_text().endswith(". 1 login is locked out.")
    record_failures("nobody", count=MAX_FAILURES_PER_LOGIN_AND_ADDRESS)
    assert people_tile_text().endswith("2 logins are locked out."), "logins without a user count too"
    let_time_pass(timedelta(minutes=16))
    assert "locked" not in people_tile_text()


class TestFullDisk:
    """The database is readable, so correct credentials still give access to records."""

    @pytest.fixture(autouse=True)
    def full_disk(self, monkeypatch: Any) -> None:
        def raise_disk_full(*_: Any, **__: Any) -> None:
            raise OperationalError from psycopg.errors.DiskFull()

        monkeypatch.setattr(login_attempts, "_count_attempt", raise_disk_full)
        monkeypatch.setattr("django.db.models.query.QuerySet.update", raise_disk_full)
        monkeypatch.setattr("django.db.models.query.QuerySet.delete", raise_disk_full)
        monkeypatch.setattr(login_attempts, "MEMORY_COUNTERS", login_attempts.MemoryCounters())

    def test_correct_password_and_key_are_accepted(self, bob: User):
        key = AccessKey(user=bob, name="script")
        secret = key.generate_secret()
        key.save()

        assert try_password("bob", PASSWORD) == 200
        assert get_me(bearer_auth(secret)).status_code == 200

    def test_wrong_passwords_are_still_counted(self, bob: User):
        assert [try_password("bob", "wrong") for _ in range(11)] == [401] * 10 + [429]
        assert try_password("bob", PASSWORD) == 429

    def test_successful_sign_ins_do_not_lock_out_an_address(self, bob: User, monkeypatch: Any):
        monkeypatch.setattr(login_attempts, "MAX_FAILURES_PER_ADDRESS", 2)
        for _ in range(4):
            process_cache.clear_all()
            assert try_password("bob", PASSWORD) == 200

    def test_locked_address_adds_no_counters(self, bob: User, monkeypatch: Any):
        monkeypatch.setattr(login_attempts, "MAX_FAILURES_PER_ADDRESS", 2)
        assert [try_password(login, "wrong") for login in "abcd"] == [401, 401, 429, 429]
        assert len(login_attempts.MEMORY_COUNTERS.counters) == 3, "a, b and the address"

    def test_other_database_errors_are_not_hidden(self, bob: User, monkeypatch: Any):
        def raise_shutdown(*_: Any, **__: Any) -> None:
            raise OperationalError from psycopg.errors.AdminShutdown()

        monkeypatch.setattr(login_attempts, "_count_attempt", raise_shutdown)

        assert try_password("bob", PASSWORD) == 503
