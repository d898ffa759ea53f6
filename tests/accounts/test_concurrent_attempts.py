"""No more than ten of any number of concurrent guesses are checked (B58)."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from accounts.models import FailedAttempts, User
from tests.accounts.callers import try_password
from tests.support.users import PASSWORD, make_user

pytestmark = pytest.mark.django_db(transaction=True)
GUESS_COUNT = 30


def try_concurrently(guesses: list[tuple[str, str]]) -> Counter[int]:
    barrier = threading.Barrier(len(guesses))

    def try_guess(guess: tuple[str, str]) -> int:
        barrier.wait()
        try:
            return try_password(*guess)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(guesses)) as pool:
        return Counter(pool.map(try_guess, guesses))


def test_ten_of_thirty_different_guesses_are_checked(checked_passwords: list[str]):
    make_user("bob")

    assert try_concurrently([("bob", f"wrong {number}") for number in range(GUESS_COUNT)]) == {401: 10, 429: 20}
    assert len(checked_passwords) == 10


def test_ten_of_thirty_equal_guesses_are_checked(checked_passwords: list[str]):
    make_user("bob")

    assert try_concurrently([("bob", "wrong")] * GUESS_COUNT) == {401: 10, 429: 20}
    assert len(checked_passwords) == 10


def test_thirty_correct_passwords_are_all_accepted_with_one_hash(checked_passwords: list[str]):
    """A script that sends many concurrent requests must not reach the limit for wrong passwords."""
    make_user("bob")

    assert try_concurrently([("bob", PASSWORD)] * GUESS_COUNT) == {200: GUESS_COUNT}
    assert len(checked_passwords) == 1


def test_mixed_attempts_leave_no_reservation(checked_passwords: list[str]):
    make_user("bob")
    User.objects.create_user("carol", PASSWORD)
    statuses = try_concurrently([("bob", PASSWORD), ("carol", "wrong")] * (GUESS_COUNT // 2))

    assert statuses == {200: 15, 401: 10, 429: 5}
    assert sorted(FailedAttempts.objects.values_list("count", flat=True)) == [10, 10], "of carol and the address"
