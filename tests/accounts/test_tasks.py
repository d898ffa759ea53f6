"""The periodic cleanup deletes only rows that can never be used again."""

from datetime import timedelta

import pytest
from django.db import connection, connections
from django.db.models import F
from django.utils import timezone

from accounts.authentication import access_keys
from accounts.models import AccessKey, FailedAttempts, Session, User
from accounts.tasks import forget_expired
from tests.accounts.callers import ME_PATH, bearer_auth, get_me, sign_in, try_password
from tests.support.users import PASSWORD


def test_expired_sessions_are_deleted(bob: User):
    expired_browser, other_browser = sign_in("bob"), sign_in("bob")
    expired_session = Session.objects.order_by("started_at").first()
    assert expired_session is not None
    Session.objects.filter(pk=expired_session.pk).update(expire_date=timezone.now() - timedelta(seconds=1))
    forget_expired()

    assert Session.objects.count() == 1
    assert (expired_browser.get(ME_PATH).status_code, other_browser.get(ME_PATH).status_code) == (401, 200)


def test_expired_sign_in_keys_are_deleted_and_named_keys_stay(bob: User):
    valid_key = access_keys.create_login_key(bob)
    for kind in (AccessKey.KIND_LOGIN, AccessKey.KIND_NAMED):
        access_keys.create_key(bob, kind, expires_at=timezone.now() - timedelta(days=1))
        AccessKey.objects.filter(name=kind).update(kind=kind)
    forget_expired()

    assert set(AccessKey.objects.values_list("name", flat=True)) == {"API sign-in", "named"}
    assert get_me(bearer_auth(valid_key)).status_code == 200


def test_counters_of_an_open_window_are_kept(bob: User):
    for number in range(10):
        try_password("bob", f"wrong {number}")
    forget_expired()
    assert try_password("bob", PASSWORD) == 429

    FailedAttempts.objects.update(started_at=F("started_at") - timedelta(minutes=16))
    forget_expired()
    assert not FailedAttempts.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_locked_counter_is_skipped():
    """Waiting for a locked row while holding other locks could deadlock with a request that counts."""
    started_at = timezone.now() - timedelta(hours=1)
    for key in ("held", "free"):
        FailedAttempts.objects.create(key=key, started_at=started_at, count=1)
    other_connection = connections.create_connection("default")
    try:
        with connection.cursor() as cursor, other_connection.cursor() as other_cursor:
            cursor.execute("SET lock_timeout = '1s'")  # a task that waits fails instead of hanging
            other_cursor.execute("BEGIN")
            other_cursor.execute("UPDATE accounts_failed_attempts SET count = 2 WHERE key = 'held'")
            forget_expired()
            other_cursor.execute("COMMIT")
    finally:
        other_connection.close()
        connection.close()

    assert list(FailedAttempts.objects.values_list("key", "count")) == [("held", 2)]
