"""Keys, lockouts and sessions when a host's clock is wrong or the database's clock was set back."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from accounts.authentication import access_keys, login_attempts, passwords
from accounts.models import AccessKey, FailedAttempts, Session, User
from accounts.tasks import forget_expired
from tests.accounts.callers import basic_auth, bearer_auth, clock_ahead, get_me, sign_in, try_password
from tests.support.clocks import set_database_clock_back, shifted_host_clock
from tests.support.users import PASSWORD

pytestmark = pytest.mark.django_db
HALF_AN_HOUR = timedelta(minutes=30)


@pytest.mark.parametrize("hours", [-1, 1], ids=["behind", "ahead"])
def test_key_expires_at_the_same_time_on_every_host(bob: User, hours: int):
    expired_key = access_keys.create_key(bob, "expired", expires_at=timezone.now() - HALF_AN_HOUR)
    valid_key = access_keys.create_key(bob, "valid", expires_at=timezone.now() + HALF_AN_HOUR)
    with shifted_host_clock(hours):
        assert [get_me(bearer_auth(key)).status_code for key in (expired_key, valid_key)] == [401, 200]


@pytest.mark.parametrize("hours", [-1, 1], ids=["behind", "ahead"])
def test_sign_in_key_lasts_twelve_hours_regardless_of_the_host_clock(bob: User, hours: int):
    with shifted_host_clock(hours):
        access_keys.create_login_key(bob)
    remaining_time = AccessKey.objects.get().expires_at - timezone.now()  # type: ignore[operator]
    assert abs(remaining_time - access_keys.LOGIN_KEY_LIFETIME) < timedelta(minutes=1)


def test_two_scripts_can_sign_in_after_the_clock_was_set_back(bob: User):
    """The twenty existing keys have larger ids than the new ones, but are older."""
    for _ in range(access_keys.MAX_LOGIN_KEYS):
        access_keys.create_login_key(bob)
    set_database_clock_back(AccessKey.objects.all(), "expires_at")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_access_key SET sys_id = (sys_id::bigint + 360000000000)::text")
    keys = [access_keys.create_login_key(bob) for _ in range(3)]
    assert [get_me(bearer_auth(key)).status_code for key in keys] == [200, 200, 200]
    assert AccessKey.objects.count() == access_keys.MAX_LOGIN_KEYS


def test_lockout_is_not_ended_by_a_worker_whose_clock_is_ahead(bob: User):
    assert [try_password("bob", "wrong") for _ in range(11)] == [401] * 10 + [429]
    with shifted_host_clock(1):
        forget_expired()
        assert login_attempts.count_locked_logins() == 1
    assert try_password("bob", PASSWORD) == 429


def test_lockout_is_not_longer_after_the_clock_was_set_back(bob: User):
    assert [try_password("bob", "wrong") for _ in range(11)] == [401] * 10 + [429]
    set_database_clock_back(FailedAttempts.objects.all(), "started_at")
    assert [try_password("bob", "wrong") for _ in range(11)] == [401] * 10 + [429]
    assert int(get_me(basic_auth("bob"))["Retry-After"]) <= login_attempts.FAILURE_WINDOW.total_seconds()


def test_session_is_not_deleted_by_a_worker_whose_clock_is_ahead(bob: User):
    browser = sign_in("bob")
    Session.objects.update(expire_date=timezone.now() + HALF_AN_HOUR)
    with shifted_host_clock(1):
        forget_expired()
    assert browser.get("/api/me").status_code == 200


@pytest.mark.parametrize("hours", [-1, 1], ids=["back", "forward"])
def test_credential_cache_uses_the_monotonic_clock(
    bob: User, hours: int, checked_passwords: list[str], django_assert_num_queries: Any, monkeypatch: Any
):
    """A jump of the wall clock does not change how long credentials are cached."""
    key = access_keys.create_key(bob, "script", expires_at=None)
    assert get_me(bearer_auth(key)).status_code == get_me(basic_auth("bob")).status_code == 200
    with shifted_host_clock(hours):
        with django_assert_num_queries(0):
            assert get_me(bearer_auth(key)).status_code == 200
        assert get_me(basic_auth("bob")).status_code == 200 and checked_passwords == [PASSWORD]
        AccessKey.objects.all().delete()
        monkeypatch.setattr(access_keys, "time", clock_ahead(1.1))
        monkeypatch.setattr(passwords, "time", clock_ahead(61))
        assert get_me(bearer_auth(key)).status_code == 401
        assert get_me(basic_auth("bob")).status_code == 200 and checked_passwords == [PASSWORD] * 2
