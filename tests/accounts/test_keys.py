"""Access keys: how they are created, stored and used."""

import base64
import hashlib
from datetime import timedelta
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.authentication import access_keys
from accounts.models import AccessKey, User
from tests.accounts.callers import bearer_auth, clock_ahead, get_me, only_access_key


def test_key_has_256_random_bits(bob: User):
    secrets = {access_keys.create_key(bob, "script", expires_at=None) for _ in range(50)}

    assert len(secrets) == 50
    for key in secrets:
        assert key.startswith("sb_")
        assert len(base64.urlsafe_b64decode(key.removeprefix("sb_") + "=")) == 32
    # Every position varies: no part of the key is a counter or a constant.
    characters_by_position = zip(*(key.removeprefix("sb_") for key in secrets), strict=True)
    assert all(len(set(characters)) > 5 for characters in characters_by_position)


def test_only_hash_and_prefix_are_stored(bob: User):
    key = access_keys.create_key(bob, "script", expires_at=None)
    with connection.cursor() as cursor:
        cursor.execute("SELECT row_to_json(stored)::text FROM accounts_access_key AS stored")
        (stored_row,) = cursor.fetchone()

    assert hashlib.sha256(key.encode()).hexdigest() in stored_row
    assert key not in stored_row and key[10:] not in stored_row
    assert only_access_key().prefix == key[:9]


def test_key_is_looked_up_by_its_hash(bob: User):
    """The index compares hashes, so response times reveal nothing about secrets."""
    key = access_keys.create_key(bob, "script", expires_at=None)
    with CaptureQueriesContext(connection) as queries:
        get_me(bearer_auth(key))

    assert any(hashlib.sha256(key.encode()).hexdigest() in query["sql"] for query in queries)
    assert not any(key[10:] in query["sql"] for query in queries)


def test_cached_key_costs_no_query(bob: User):
    key = access_keys.create_key(bob, "script", expires_at=None)
    get_me(bearer_auth(key))

    with CaptureQueriesContext(connection) as queries:
        assert get_me(bearer_auth(key)).status_code == 200
    assert [query["sql"] for query in queries] == []


def test_last_use_is_recorded_at_most_once_a_minute(bob: User):
    key = access_keys.create_key(bob, "script", expires_at=None)
    assert only_access_key().last_used_at is None

    def interval_between_uses(age: timedelta) -> Any:
        """The time between a last use that is `age` old and the recorded time of the next use."""
        last_used_at = timezone.now() - age
        AccessKey.objects.update(last_used_at=last_used_at)
        access_keys.KEY_CACHE.clear()
        get_me(bearer_auth(key))
        return only_access_key().last_used_at - last_used_at

    get_me(bearer_auth(key))
    assert timezone.now() - only_access_key().last_used_at < timedelta(seconds=10)
    assert interval_between_uses(age=timedelta(seconds=55)) == timedelta(0)
    assert interval_between_uses(age=timedelta(seconds=61)) >= timedelta(seconds=61)


def test_recording_key_use_does_not_change_the_record_version(bob: User):
    key = access_keys.create_key(bob, "script", expires_at=None)
    columns_before = AccessKey.objects.values("sys_version", "sys_updated_at").get()
    get_me(bearer_auth(key))

    assert AccessKey.objects.values("sys_version", "sys_updated_at").get() == columns_before


def test_refused_key_use_is_not_recorded(bob: User):
    key = access_keys.create_key(bob, "script", expires_at=timezone.now() - timedelta(minutes=1))
    get_me(bearer_auth(key))

    assert only_access_key().last_used_at is None


def test_expired_key_is_refused_within_a_second(bob: User, monkeypatch: Any):
    key = access_keys.create_key(bob, "script", expires_at=timezone.now() + timedelta(minutes=1))
    assert get_me(bearer_auth(key)).status_code == 200
    AccessKey.objects.update(expires_at=timezone.now())

    monkeypatch.setattr(access_keys, "time", clock_ahead(1.0))
    assert get_me(bearer_auth(key)).status_code == 401


def test_cache_is_bounded(bob: User, monkeypatch: Any):
    monkeypatch.setattr(
        access_keys.KEY_CACHE, "max_weight", 3 * access_keys.CACHED_USER_BYTES + 2 * access_keys.CACHED_ROLE_BYTES
    )
    for _ in range(7):
        assert get_me(bearer_auth(access_keys.create_key(bob, "script", expires_at=None))).status_code == 200
        assert 0 < access_keys.KEY_CACHE.weight <= access_keys.KEY_CACHE.max_weight


def test_user_without_password_can_have_a_key(db: None):
    """A technical user has no password, only a key."""
    robot = User.objects.create_user("robot")

    assert get_me(bearer_auth(access_keys.create_key(robot, "script", expires_at=None))).json()["login"] == "robot"
