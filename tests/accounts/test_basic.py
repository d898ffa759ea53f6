"""Which Basic credentials are accepted and which are refused (B60)."""

import base64
import time
from typing import Any

import pytest

from accounts.models import FailedAttempts, User
from tests.accounts.callers import basic_auth, get_me
from tests.support.users import PASSWORD, make_user


def encode_base64(credentials: bytes) -> str:
    return base64.b64encode(credentials).decode()


VALID_CREDENTIALS = encode_base64(f"bob:{PASSWORD}".encode())

MALFORMED_HEADERS = {
    "nothing after the scheme": "Basic",
    "only spaces": "Basic    ",
    "no colon": "Basic " + encode_base64(b"bob"),
    "no login": "Basic " + encode_base64(f":{PASSWORD}".encode()),
    "no password": "Basic " + encode_base64(b"bob:"),
    "not base64": "Basic !!!!",
    "truncated base64": "Basic " + VALID_CREDENTIALS.rstrip("=")[:-1],
    "text after the base64": f"Basic {VALID_CREDENTIALS} x",
    "not ASCII": f"Basic {VALID_CREDENTIALS}\xe9",
    "not UTF-8": "Basic " + encode_base64(b"bob:\xff\xfe"),
    "NUL in the password": "Basic " + encode_base64(f"bob:{PASSWORD}\x00".encode()),
    "NUL in the login": "Basic " + encode_base64(f"bob\x00:{PASSWORD}".encode()),
    "an unknown scheme": f"Basics {VALID_CREDENTIALS}",
    "a tab after the scheme": f"Basic\t{VALID_CREDENTIALS}",
    "another scheme": f"Digest {VALID_CREDENTIALS}",
    "no scheme": VALID_CREDENTIALS,
}


@pytest.mark.parametrize("header", MALFORMED_HEADERS.values(), ids=MALFORMED_HEADERS.keys())
def test_malformed_credentials_are_refused(bob: User, header: str):
    assert get_me({"Authorization": header}).status_code == 401
    assert not FailedAttempts.objects.exists(), "no password was checked, so no failure is counted"


def test_correct_password_is_accepted(bob: User):
    assert get_me(basic_auth("bob")).json()["login"] == "bob"


@pytest.mark.parametrize("scheme", ["basic", "BASIC", "bAsIc"])
def test_scheme_is_case_insensitive(bob: User, scheme: str):
    assert get_me({"Authorization": f"{scheme} {VALID_CREDENTIALS}"}).status_code == 200


@pytest.mark.parametrize("password", [":", "a:b:c:", "pass wörd ключ 🔑", " spaces around ", "ends in colon:"])
def test_password_can_contain_colons_spaces_and_any_script(bob: User, password: str):
    bob.change_password(password)

    assert get_me(basic_auth("bob", password)).status_code == 200
    assert get_me(basic_auth("bob", password + "x")).status_code == 401


def test_login_in_any_script_is_accepted(db: None):
    make_user("ボブ@example.com")

    assert get_me(basic_auth("ボブ@example.com")).json()["login"] == "ボブ@example.com"


@pytest.mark.parametrize(("login", "password"), [("bob", "wrong"), ("nobody", PASSWORD), ("bob ", PASSWORD)])
def test_wrong_password_or_login_is_refused(bob: User, login: str, password: str):
    assert get_me(basic_auth(login, password)).status_code == 401


def test_inactive_user_is_refused(db: None):
    make_user("gone", active=False)

    assert get_me(basic_auth("gone")).status_code == 401


def test_user_without_password_is_refused(db: None):
    user = User.objects.create_user("keyless")

    assert not user.has_usable_password()
    for password in ("", "!", user.password):
        assert get_me(basic_auth("keyless", password)).status_code == 401


def test_longest_header_is_4096_bytes(bob: User):
    header = f"Basic {VALID_CREDENTIALS}"

    assert get_me({"Authorization": header + " " * (4096 - len(header))}).status_code == 200
    assert get_me({"Authorization": header + " " * (4097 - len(header))}).status_code == 401


def test_huge_password_is_refused_without_hashing(bob: User, monkeypatch: Any):
    from accounts.authentication import passwords

    monkeypatch.setattr(passwords, "check_password", lambda *_: pytest.fail("the password was hashed"))
    started_at = time.monotonic()

    assert get_me(basic_auth("bob", "x" * 1024 * 1024)).status_code == 401
    assert time.monotonic() - started_at < 1


def test_longest_password_fits_into_the_header(db: None):
    from accounts.authentication.passwords import MAX_PASSWORD_LENGTH
    from accounts.authentication.schemes import MAX_HEADER_LENGTH

    login, password = "🔑" * 150, "🔑" * MAX_PASSWORD_LENGTH
    User.objects.create_user(login, password)
    headers = basic_auth(login, password)

    assert len(headers["Authorization"]) <= MAX_HEADER_LENGTH
    assert get_me(headers).status_code == 200
