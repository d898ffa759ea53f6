"""Unknown and existing logins take the same work, so response times do not reveal which logins exist (B59)."""

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
def computed_hashes(monkeypatch: Any) -> list[str]:
    """A list that collects each password that is hashed; the dummy hash is not computed yet."""
    hashed_passwords: list[str] = []
    original_encode = MD5PasswordHasher.encode

    def record_and_encode(self: MD5PasswordHasher, password: str, salt: str) -> str:
        hashed_passwords.append(password)
        return original_encode(self, password, salt)

    monkeypatch.setattr(passwords, "DUMMY_HASH", SimpleLazyObject(lambda: make_password("of nobody")))
    monkeypatch.setattr(MD5PasswordHasher, "encode", record_and_encode)
    return hashed_passwords


@pytest.fixture
def known_users(db: None) -> None:
    make_user("bob")
    make_user("gone", active=False)
    User.objects.create_user("keyless")


CAST = ["bob", "gone", "keyless", "nobody"]


@pytest.mark.parametrize("login", CAST)
def test_first_attempt_after_a_start_costs_the_same_for_every_login(
    known_users: None, computed_hashes: list[str], login: str
):
    try_password(login, "wrong")

    assert computed_hashes == ["of nobody", "wrong"]


@pytest.mark.parametrize("login", CAST)
def test_each_attempt_costs_one_hash_for_every_login(known_users: None, computed_hashes: list[str], login: str):
    try_password("somebody else", "wrong")
    computed_hashes.clear()

    try_password(login, "wrong")
    request_api_key(login, "wrong")
    Client().post("/login/", {"login": login, "password": "wrong"})
    assert computed_hashes == ["wrong"] * 3


@pytest.mark.parametrize("login", CAST)
def test_no_hash_is_computed_after_ten_attempts(known_users: None, computed_hashes: list[str], login: str):
    for _ in range(10):
        try_password(login, "wrong")
    computed_hashes.clear()

    assert try_password(login, "wrong") == 429
    assert computed_hashes == []


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
    rounds: list[int] = []
    original_hash = hashlib.pbkdf2_hmac

    def record_and_hash(name: str, password: bytes, salt: bytes, iterations: int, length: Any = None) -> bytes:
        rounds.append(iterations)
        return original_hash(name, password, salt, iterations, length)

    monkeypatch.setattr("django.utils.crypto.hashlib.pbkdf2_hmac", record_and_hash)
    for login in ("bob", "nobody"):
        assert try_password(login, "wrong") == 401
    assert rounds == [PBKDF2PasswordHasher.iterations] * 2


def test_dummy_password_matches_no_account(db: None, computed_hashes: list[str]):
    assert try_password("nobody", "of nobody") == 401, "the dummy password matches, but there is no account"
