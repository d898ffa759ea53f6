"""A right password is remembered for a minute, bound to what is stored: hashing costs a quarter of a second."""

from typing import Any

from accounts.authentication import passwords
from accounts.models import FailedAttempts, User
from tests.accounts.callers import guess, later
from tests.conftest import PASSWORD, make_user


def test_the_second_request_is_not_hashed(bob: User, checked: list[str]):
    assert [guess("bob", PASSWORD) for _ in range(5)] == [200] * 5
    assert checked == [PASSWORD]


def test_it_is_hashed_again_after_a_minute(bob: User, checked: list[str], monkeypatch: Any):
    guess("bob", PASSWORD)
    monkeypatch.setattr(passwords, "time", later(59))
    assert guess("bob", PASSWORD) == 200
    assert len(checked) == 1

    monkeypatch.setattr(passwords, "time", later(61))
    assert guess("bob", PASSWORD) == 200
    assert len(checked) == 2


def test_a_wrong_password_is_never_remembered(bob: User, checked: list[str]):
    guess("bob", "wrong")
    guess("bob", "wrong")

    assert checked == ["wrong", "wrong"]


def test_a_remembered_password_is_not_counted_and_passes_a_full_window(bob: User, checked: list[str]):
    """A working script goes on while somebody else at its address guesses."""
    guess("bob", PASSWORD)
    for number in range(10):
        assert guess("bob", f"wrong {number}") == 401

    assert guess("bob", "wrong 11") == 429
    assert guess("bob", PASSWORD) == 200
    assert max(FailedAttempts.objects.values_list("count", flat=True)) == 10


def test_a_changed_password_is_forgotten_at_once(bob: User):
    guess("bob", PASSWORD)
    bob.change_password("another horse 43")

    assert guess("bob", PASSWORD) == 401
    assert guess("bob", "another horse 43") == 200


def test_a_password_changed_past_the_model_is_forgotten_too(bob: User):
    """As another process would do it: nothing in this one is told."""
    guess("bob", PASSWORD)
    bob.set_password("another horse 43")
    User.objects.filter(pk=bob.pk).update(password=bob.password)

    assert guess("bob", PASSWORD) == 401


def test_it_is_remembered_for_its_own_login_alone(bob: User, alice: User):
    guess("bob", PASSWORD)
    alice.change_password("another horse 43")

    assert guess("alice", PASSWORD) == 401
    assert guess("bobc", "orrect horse 42") == 401, "the border between login and password counts"


def test_another_user_of_a_freed_login_starts_anew(bob: User):
    guess("bob", PASSWORD)
    bob.delete()
    make_user("bob").change_password("another horse 43")

    assert guess("bob", PASSWORD) == 401


def test_what_is_remembered_holds_no_password(bob: User):
    guess("bob", PASSWORD)

    assert passwords._remembered.weight > 0
    assert PASSWORD not in repr(vars(passwords._remembered))


def test_memory_is_bounded(bob: User, monkeypatch: Any):
    monkeypatch.setattr(passwords._remembered, "limit", 2_000)
    for number in range(7):
        make_user(f"user{number}")
        assert guess(f"user{number}", PASSWORD) == 200
        assert 0 < passwords._remembered.weight <= 2_000
