"""Failed passwords are counted: ten per login and IP address, a hundred per IP address, in 15 minutes (B58)."""

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
from tests.accounts.callers import api_key, ask, basic, bearer, guess
from tests.support.users import PASSWORD, make_user

HERE, THERE = "192.0.2.1", "192.0.2.2"


def fill(login: str = "bob", address: str = HERE, count: int = MAX_FAILURES_PER_LOGIN_AND_ADDRESS) -> None:
    assert [guess(login, f"wrong {number}", address) for number in range(count)] == [401] * count


def pass_time(by: timedelta) -> None:
    FailedAttempts.objects.update(started_at=F("started_at") - by)


def test_eleventh_password_is_not_checked(bob: User):
    fill()

    assert guess("bob", "wrong again") == 429
    assert guess("bob", PASSWORD) == 429, "else an eleventh guess could be the right one"


def test_refusal_names_the_waiting_time(bob: User):
    fill()
    pass_time(timedelta(minutes=5))
    response = ask(basic("bob"))

    assert response.json()["errors"][0]["code"] == "too_many_requests"
    assert 9 * 60 <= int(response["Retry-After"]) <= 10 * 60


def test_other_addresses_are_not_affected(bob: User):
    fill()

    assert guess("bob", "wrong", THERE) == 401
    assert guess("bob", PASSWORD, THERE) == 200, "nobody can lock somebody else out"


def test_other_accounts_from_the_same_address_are_not_affected(bob: User, alice: User):
    fill()

    assert guess("alice", PASSWORD) == 200


def test_all_sign_in_routes_share_one_counter(bob: User, client: Client):
    fill(count=4)
    assert [api_key("bob", f"wrong {n}", REMOTE_ADDR=HERE).status_code for n in range(3)] == [401] * 3
    sent = {"login": "bob", "password": "wrong"}
    assert [client.post("/login/", sent, REMOTE_ADDR=HERE).status_code for _ in range(3)] == [401] * 3

    assert guess("bob", PASSWORD) == 429
    assert api_key("bob", REMOTE_ADDR=HERE).status_code == 429
    assert client.post("/login/", {**sent, "password": PASSWORD}, REMOTE_ADDR=HERE).status_code == 429


def test_success_resets_the_counter_of_account_and_address(bob: User):
    fill(count=MAX_FAILURES_PER_LOGIN_AND_ADDRESS - 1)
    assert guess("bob", PASSWORD) == 200
    process_cache.clear_all()

    fill()


def test_success_does_not_reset_the_counter_of_the_address(bob: User):
    fill("nobody", count=7)
    assert guess("bob", PASSWORD) == 200

    assert FailedAttempts.objects.get(key=PasswordAttempt("", HERE).address_key).count == 7


def test_hundred_wrong_passwords_block_the_address(bob: User):
    for number in range(MAX_FAILURES_PER_ADDRESS // MAX_FAILURES_PER_LOGIN_AND_ADDRESS):
        fill(f"stranger {number}")

    assert guess("bob", PASSWORD) == 429
    assert guess("bob", PASSWORD, THERE) == 200


def test_refused_attempts_are_not_counted(bob: User, alice: User):
    """A script that goes on with one old password must not close its address to everybody behind it."""
    fill()
    assert {guess("bob", "wrong") for _ in range(MAX_FAILURES_PER_ADDRESS)} == {429}

    assert guess("alice", PASSWORD) == 200
    assert (
        FailedAttempts.objects.get(key=PasswordAttempt("bob", HERE).pair_key).count
        == MAX_FAILURES_PER_LOGIN_AND_ADDRESS
    )


def test_window_ends_after_fifteen_minutes(bob: User):
    fill()
    pass_time(FAILURE_WINDOW - timedelta(seconds=5))
    assert guess("bob", PASSWORD) == 429

    pass_time(timedelta(seconds=6))
    assert guess("bob", "wrong") == 401
    assert guess("bob", PASSWORD) == 200


def test_new_window_counts_from_one(bob: User):
    fill()
    pass_time(FAILURE_WINDOW + timedelta(seconds=1))
    fill()

    assert guess("bob", PASSWORD) == 429


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
    ],
)
def test_ipv6_callers_count_by_network_and_mapped_ones_as_ipv4(bob: User, first: str, second: str, together: bool):
    fill(address=first)

    assert guess("bob", "wrong", second) == (429 if together else 401)


def test_forged_address_is_ignored(bob: User):
    for number in range(10):
        made_up = {"X-Forwarded-For": f"198.51.100.{number}", "Forwarded": f"for=198.51.100.{number}"}
        assert ask({**basic("bob", f"wrong {number}"), **made_up}).status_code == 401

    assert ask({**basic("bob"), "X-Forwarded-For": "198.51.100.99", "X-Real-IP": "198.51.100.99"}).status_code == 429


def test_callers_behind_a_trusted_proxy_are_counted_separately(bob: User, settings: Any):
    settings.TRUSTED_PROXIES = (ipaddress.ip_network("10.0.0.0/8"),)

    def through_proxy(caller: str, password: str, proxy: str = "10.0.0.1") -> int:
        response = ask({**basic("bob", password), "X-Forwarded-For": f"198.51.100.1, {caller}"}, address=proxy)
        return int(response.status_code)

    assert [through_proxy(HERE, f"wrong {number}") for number in range(11)] == [401] * 10 + [429]
    assert through_proxy(HERE, PASSWORD, proxy="::ffff:10.0.0.1") == 429, "a mapped address is that proxy too"
    assert through_proxy(THERE, PASSWORD) == 200


def test_unreadable_addresses_share_one_counter(bob: User):
    fill(address="")

    assert guess("bob", PASSWORD, "") == 429


def test_spellings_share_a_counter_if_case_is_ignored(bob: User):
    properties.put(properties.CASE_SENSITIVE, "false")
    fill("bob", count=5)
    fill("BOB", count=5)

    assert guess("Bob", PASSWORD) == 429


def test_spellings_are_counted_separately_if_case_matters(bob: User):
    """Else whoever has the account BOB could clear what is counted against bob, and guess on."""
    make_user("BOB")
    fill("bob", count=9)
    assert guess("BOB", PASSWORD) == 200

    fill("bob", count=1)
    assert guess("bob", PASSWORD) == 429


def test_no_login_or_address_is_stored(bob: User):
    fill(count=2)

    assert FailedAttempts.objects.count() == 2
    for row in FailedAttempts.objects.all():
        assert len(row.key) == 64 and "bob" not in str(row) and HERE not in str(row)


def test_dashboard_shows_the_number_of_locked_logins(as_alice: Client, bob: User):
    def people() -> str:
        (tile,) = [tile for tile in as_alice.get("/admin/").context["tiles"] if tile.title == "People"]
        return str(tile.description)

    fill("bob", count=MAX_FAILURES_PER_LOGIN_AND_ADDRESS - 1)
    assert "wait" not in people(), "the address has no more than the login"
    fill("bob", count=1)
    assert people().endswith("active users. 1 login is temporarily locked")
    fill("nobody", count=MAX_FAILURES_PER_LOGIN_AND_ADDRESS)
    assert people().endswith("2 logins are temporarily locked"), "whether or not they exist"
    pass_time(timedelta(minutes=16))
    assert "wait" not in people()


class TestAFullDisk:
    """The database can still be read: so can records, by whoever has the right credentials."""

    @pytest.fixture(autouse=True)
    def full(self, monkeypatch: Any) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise OperationalError from psycopg.errors.DiskFull()

        monkeypatch.setattr(login_attempts, "_count_attempt", fail)
        monkeypatch.setattr("django.db.models.query.QuerySet.update", fail)
        monkeypatch.setattr("django.db.models.query.QuerySet.delete", fail)
        monkeypatch.setattr(login_attempts, "MEMORY_COUNTERS", login_attempts.MemoryCounters())

    def test_correct_password_and_key_are_accepted(self, bob: User):
        key = AccessKey(user=bob, name="script")
        secret = key.generate_secret()
        key.save()

        assert guess("bob", PASSWORD) == 200
        assert ask(bearer(secret)).status_code == 200

    def test_wrong_passwords_are_still_counted(self, bob: User):
        assert [guess("bob", "wrong") for _ in range(11)] == [401] * 10 + [429]
        assert guess("bob", PASSWORD) == 429

    def test_other_faults_of_the_database_are_not_hidden(self, bob: User, monkeypatch: Any):
        def fail(*_: Any, **__: Any) -> None:
            raise OperationalError from psycopg.errors.AdminShutdown()

        monkeypatch.setattr(login_attempts, "_count_attempt", fail)

        assert guess("bob", PASSWORD) == 503
