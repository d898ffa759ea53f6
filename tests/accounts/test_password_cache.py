"""A correct password is cached for a minute, bound to the stored hash."""

from typing import Any

from accounts.authentication import passwords
from accounts.models import FailedAttempts, User
from tests.accounts.callers import clock_ahead, try_password
from tests.support.users import PASSWORD, make_user


def test_second_request_computes_no_hash(bob: User, checked_passwords: list[str]):
    assert [try_password("bob", PASSWORD) for _ in range(5)] == [200] * 5
    assert checked_passwords == [PASSWORD]


def test_password_is_hashed_again_after_a_minute(bob: User, checked_passwords: list[str], monkeypatch: Any):
    try_password("bob", PASSWORD)
    monkeypatch.setattr(passwords, "time", clock_ahead(59))
    assert try_password("bob", PASSWORD) == 200
    assert len(checked_passwords) == 1

    monkeypatch.setattr(passwords, "time", clock_ahead(61))
    assert try_password("bob", PASSWORD) == 200
    assert len(checked_passwords) == 2


def test_wrong_password_is_never_cached(bob: User, checked_passwords: list[str]):
    try_password("bob", "wrong")
    try_password("bob", "wrong")

    assert checked_passwords == ["wrong", "wrong"]


def test_cached_password_is_not_counted_and_is_accepted_while_locked(bob: User, checked_passwords: list[str]):
    """A script with the right password continues to work while another caller at its address guesses."""
    try_password("bob", PASSWORD)
    for number in range(10):
        assert try_password("bob", f"wrong {number}") == 401

    assert try_password("bob", "wrong 11") == 429
    assert try_password("bob", PASSWORD) == 200
    assert max(FailedAttempts.objects.values_list("count", flat=True)) == 10


def test_changed_password_is_removed_from_the_cache_immediately(bob: User):
    try_password("bob", PASSWORD)
    bob.change_password("another horse 43")

    assert try_password("bob", PASSWORD) == 401
    assert try_password("bob", "another horse 43") == 200


def test_password_changed_by_sql_is_removed_from_the_cache(bob: User):
    """Like a change by another process: it sends no signal in this process."""
    try_password("bob", PASSWORD)
    bob.set_password("another horse 43")
    User.objects.filter(pk=bob.pk).update(password=bob.password)

    assert try_password("bob", PASSWORD) == 401


def test_cache_entry_is_valid_only_for_its_login(bob: User, alice: User):
    try_password("bob", PASSWORD)
    alice.change_password("another horse 43")

    assert try_password("alice", PASSWORD) == 401
    assert try_password("bobc", "orrect horse 42") == 401, "the cache key separates login and password"


def test_cached_password_does_not_apply_to_a_new_user_with_the_same_login(bob: User):
    try_password("bob", PASSWORD)
    bob.delete()
    make_user("bob").change_password("another horse 43")

    assert try_password("bob", PASSWORD) == 401


def test_cache_holds_no_password(bob: User):
    try_password("bob", PASSWORD)

    assert passwords.PASSWORD_CACHE.weight > 0
    assert PASSWORD not in repr(vars(passwords.PASSWORD_CACHE))


def test_cache_is_bounded(bob: User, monkeypatch: Any):
    monkeypatch.setattr(passwords.PASSWORD_CACHE, "max_weight", 2_000)
    for number in range(7):
        make_user(f"user{number}")
        assert try_password(f"user{number}", PASSWORD) == 200
        assert 0 < passwords.PASSWORD_CACHE.weight <= 2_000
