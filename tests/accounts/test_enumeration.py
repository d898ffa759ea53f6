"""Attempts for unknown and existing logins cost the same, so response times do not reveal which logins exist (B59)."""

import hashlib
from typing import Any

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher, PBKDF2PasswordHasher, make_password
from django.test import Client
from django.utils.functional import SimpleLazyObject

from accounts.authentication import passwords
from accounts.models import User
from tests.accounts.callers import basic_auth, get_me, request_api_key, sign_in, try_password
from tests.support.users import make_user


@pytest.fixture
def hashed_passwords(monkeypatch: Any) -> list[str]:
    """A list that collects each password that is hashed; the dummy hash is not computed yet."""
    recorded_passwords: list[str] = []
    original_encode = MD5PasswordHasher.encode

    def record_and_encode(self: MD5PasswordHasher, password: str, salt: str) -> str:
        recorded_passwords.append(password)
        return original_encode(self, password, salt)

    monkeypatch.setattr(passwords, "DUMMY_HASH", SimpleLazyObject(lambda: make_password("of nobody")))
    monkeypatch.setattr(MD5PasswordHasher, "encode", record_and_encode)
    return recorded_passwords


@pytest.fixture
def existing_users(db: None) -> None:
    make_user("bob")
    make_user("gone", active=False)
    User.objects.create_user("keyless")


LOGINS = ["bob", "gone", "keyless", "nobody"]


@pytest.mark.parametrize("login", LOGINS)
def test_first_attempt_after_a_start_costs_the_same_for_every_login(
    existing_users: None, hashed_passwords: list[str], login: str
):
    try_password(login, "wrong")

    assert hashed_passwords == ["of nobody", "wrong"]


@pytest.mark.parametrize("login", LOGINS)
def test_each_attempt_costs_one_hash_for_every_login(existing_users: None, hashed_passwords: list[str], login: str):
    try_password("somebody else", "wrong")
    hashed_passwords.clear()

    try_password(login, "wrong")
    request_api_key(login, "wrong")
    Client().post("/login/", {"login": login, "password": "wrong"})
    assert hashed_passwords == ["wrong"] * 3


@pytest.mark.parametrize("login", LOGINS)
def test_no_hash_is_computed_after_ten_attempts(existing_users: None, hashed_passwords: list[str], login: str):
    for _ in range(10):
        try_password(login, "wrong")
    hashed_passwords.clear()

    assert try_password(login, "wrong") == 429
    assert hashed_passwords == []


@pytest.fixture
def real_hasher(settings: Any, monkeypatch: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    monkeypatch.setattr(passwords, "DUMMY_HASH", SimpleLazyObject(lambda: make_password("of nobody")))


def test_all_sign_in_routes_work_with_the_real_hasher(db: None, real_hasher: None):
    user = make_user("bob")

    assert user.password.startswith(f"pbkdf2_sha256${PBKDF2PasswordHasher.iterations}$")
    assert get_me(basic_auth("bob")).status_code == 200
    assert request_api_key("bob").status_code == 200
    assert sign_in("bob").get("/account/").status_code == 200
    assert try_password("bob", "wrong") == 401


def test_hash_rounds_are_equal_with_the_real_hasher(db: None, real_hasher: None, monkeypatch: Any):
    make_user("bob")
    str(passwords.DUMMY_HASH)
    iteration_counts: list[int] = []
    original_pbkdf2 = hashlib.pbkdf2_hmac

    def record_and_hash(name: str, password: bytes, salt: bytes, iterations: int, length: Any = None) -> bytes:
        iteration_counts.append(iterations)
        return original_pbkdf2(name, password, salt, iterations, length)

    monkeypatch.setattr("django.utils.crypto.hashlib.pbkdf2_hmac", record_and_hash)
    for login in ("bob", "nobody"):
        assert try_password(login, "wrong") == 401
    assert iteration_counts == [PBKDF2PasswordHasher.iterations] * 2


def test_dummy_password_matches_no_account(db: None, hashed_passwords: list[str]):
    assert try_password("nobody", "of nobody") == 401, "the dummy password matches, but there is no account"
