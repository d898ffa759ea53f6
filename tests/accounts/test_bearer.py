"""Bearer credentials: an access key, accepted only in the Authorization header."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.authentication import access_keys
from accounts.models import AccessKey, User
from accounts.models.access_keys import hash_key
from tests.accounts.callers import ME_PATH, basic_auth, bearer_auth, clock_ahead, get_me


@pytest.fixture
def key(bob: User) -> str:
    return access_keys.create_key(bob, "script", expires_at=None)


def test_scheme_is_case_insensitive(key: str):
    for scheme in ("Bearer", "bearer", "BEARER"):
        assert get_me({"Authorization": f"{scheme} {key}"}).status_code == 200


@pytest.mark.parametrize(
    "damage_key",
    [
        lambda key: "",
        lambda key: key[:-1],
        lambda key: key + "x",
        lambda key: key.swapcase(),
        lambda key: key.removeprefix("sb_"),
        lambda key: "sb_",
        lambda key: key[:9],
        lambda key: f'"{key}"',
        lambda key: key + "é",
        lambda key: key + "x" * 5000,
        lambda key: hash_key(key),
        lambda key: "sb_" + hash_key(key),
    ],
)
def test_damaged_key_is_refused(key: str, damage_key: Any):
    assert get_me(bearer_auth(damage_key(key))).status_code == 401


def test_key_in_the_query_is_refused(key: str, client: Client):  # B61
    for name in ("access_token", "token", "key", "auth_key", "api_key", "authorization"):
        assert client.get(ME_PATH, {name: key}).status_code == 401


def test_key_in_the_body_is_refused(key: str, client: Client):  # B61
    for name in ("access_token", "token", "key", "auth_key"):
        form_response = client.generic(
            "GET", ME_PATH, f"{name}={key}", content_type="application/x-www-form-urlencoded"
        )
        json_response = client.generic("GET", ME_PATH, f'{{"{name}": "{key}"}}', content_type="application/json")
        assert (form_response.status_code, json_response.status_code) == (401, 401)


def test_key_in_a_cookie_or_another_header_is_refused(key: str, client: Client):
    client.cookies["servicebase_session"] = key

    assert client.get(ME_PATH, headers={"X-Api-Key": key, "Proxy-Authorization": f"Bearer {key}"}).status_code == 401


def test_key_is_not_accepted_as_a_password(key: str, bob: User):
    assert get_me(basic_auth("bob", key)).status_code == 401
    assert get_me(basic_auth("", key)).status_code == 401
    assert get_me(basic_auth(key, "x")).status_code == 401


def test_two_authorization_headers_are_refused(key: str, bob: User):  # B61
    """The web server joins repeated headers with a comma; choosing one of them would be a guess."""
    key_header, password_header = bearer_auth(key)["Authorization"], basic_auth("bob")["Authorization"]

    for first_header, second_header in (
        (key_header, password_header),
        (password_header, key_header),
        (key_header, key_header),
        (password_header, password_header),
    ):
        for separator in (",", ", "):
            assert get_me({"Authorization": first_header + separator + second_header}).status_code == 401


def test_expired_key_is_refused(bob: User):
    expired_key = access_keys.create_key(bob, "old", expires_at=timezone.now() - timedelta(seconds=1))
    valid_key = access_keys.create_key(bob, "new", expires_at=timezone.now() + timedelta(minutes=1))

    assert get_me(bearer_auth(expired_key)).status_code == 401
    assert get_me(bearer_auth(valid_key)).status_code == 200


def test_revoked_key_is_refused(key: str):
    assert get_me(bearer_auth(key)).status_code == 200
    AccessKey.objects.get().delete()

    assert get_me(bearer_auth(key)).status_code == 401


def test_key_revoked_in_another_process_is_refused_within_a_second(key: str, monkeypatch: Any):
    assert get_me(bearer_auth(key)).status_code == 200
    # A deletion in another process sends no signal in this one.
    AccessKey.objects.all()._raw_delete("default")

    assert get_me(bearer_auth(key)).status_code == 200, "the key must be cached, otherwise this test proves nothing"
    monkeypatch.setattr(access_keys, "time", clock_ahead(1.0))
    assert get_me(bearer_auth(key)).status_code == 401


def test_key_works_after_a_password_change(key: str, bob: User):
    bob.change_password("another horse 43")

    assert get_me(bearer_auth(key)).status_code == 200, "named keys stay"
