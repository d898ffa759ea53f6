"""Of any number of concurrent guesses, ten are checked (B58)."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from accounts.models import FailedAttempts, User
from tests.accounts.callers import guess
from tests.support.users import PASSWORD, make_user

pytestmark = pytest.mark.django_db(transaction=True)
AT_ONCE = 30


def all_at_once(guesses: list[tuple[str, str]]) -> Counter[int]:
    together = threading.Barrier(len(guesses))

    def one(pair: tuple[str, str]) -> int:
        together.wait()
        try:
            return guess(*pair)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(guesses)) as threads:
        return Counter(threads.map(one, guesses))


def test_ten_of_thirty_different_guesses_are_checked(checked: list[str]):
    make_user("bob")

    assert all_at_once([("bob", f"wrong {number}") for number in range(AT_ONCE)]) == {401: 10, 429: 20}
    assert len(checked) == 10


def test_ten_of_thirty_equal_guesses_are_checked(checked: list[str]):
    make_user("bob")

    assert all_at_once([("bob", "wrong")] * AT_ONCE) == {401: 10, 429: 20}
    assert len(checked) == 10


def test_thirty_correct_passwords_are_hashed_once_and_all_accepted(checked: list[str]):
    """A script that starts many requests at once does not meet a limit made for guessing."""
    make_user("bob")

    assert all_at_once([("bob", PASSWORD)] * AT_ONCE) == {200: AT_ONCE}
    assert len(checked) == 1


def test_mixed_attempts_leave_no_reservation(checked: list[str]):
    make_user("bob")
    User.objects.create_user("carol", PASSWORD)
    result = all_at_once([("bob", PASSWORD), ("carol", "wrong")] * (AT_ONCE // 2))

    assert result == {200: 15, 401: 10, 429: 5}
    assert sorted(FailedAttempts.objects.values_list("count", flat=True)) == [10, 10], "carol's, and the address's"
