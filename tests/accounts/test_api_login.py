"""`POST /rest/v1/auth/login`: exchanges login and password for a key that is valid for twelve hours."""

import contextlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.authentication import access_keys
from accounts.models import AccessKey, User
from tests.accounts.callers import (
    API_SIGN_IN_PATH,
    basic_auth,
    bearer_auth,
    get_me,
    only_access_key,
    request_api_key,
    try_password,
)
from tests.support.users import PASSWORD, make_user


def test_returned_key_works(bob: User):
    response = request_api_key("bob")

    assert response.status_code == 200
    assert response.json().keys() == {"status", "data"} and response.json()["status"] == "OK"
    assert response.json()["data"].keys() == {"auth_key"}
    assert get_me(bearer_auth(response.json()["data"]["auth_key"])).json()["login"] == "bob"


def test_key_expires_after_twelve_hours(bob: User):
    key = request_api_key("bob").json()["data"]["auth_key"]
    stored_key = only_access_key()

    assert abs(stored_key.expires_at - timezone.now() - timedelta(hours=12)) < timedelta(seconds=10)
    assert (stored_key.kind, stored_key.scope) == (AccessKey.KIND_LOGIN, [])
    AccessKey.objects.update(expires_at=timezone.now())
    assert get_me(bearer_auth(key)).status_code == 401


def test_each_sign_in_creates_a_new_key(bob: User):
    first_key, second_key = (request_api_key("bob").json()["data"]["auth_key"] for _ in range(2))

    assert first_key != second_key
    assert [get_me(bearer_auth(key)).status_code for key in (first_key, second_key)] == [200, 200]


def test_more_than_twenty_keys_delete_the_oldest(bob: User, alice: User):
    key_of_alice = access_keys.create_login_key(alice)
    named_key = access_keys.create_key(bob, "script", expires_at=None)
    secrets = [access_keys.create_login_key(bob) for _ in range(19)]
    secrets += [request_api_key("bob").json()["data"]["auth_key"] for _ in range(3)]

    assert [get_me(bearer_auth(key)).status_code for key in secrets] == [401] * 2 + [200] * 20
    assert get_me(bearer_auth(named_key)).status_code == 200, "named keys do not count"
    assert get_me(bearer_auth(key_of_alice)).status_code == 200, "keys of other users do not count"


@pytest.mark.django_db(transaction=True)
def test_concurrent_sign_ins_keep_the_key_limit(monkeypatch: Any):
    bob = make_user("bob")
    for _ in range(20):
        access_keys.create_login_key(bob)
    barrier = threading.Barrier(2)
    original_generate_secret = AccessKey.generate_secret

    def wait_and_generate(self: AccessKey) -> str:
        with contextlib.suppress(threading.BrokenBarrierError):  # expected: the first thread holds a lock
            barrier.wait(timeout=0.3)
        return original_generate_secret(self)

    def sign_in(_: int) -> str:
        try:
            return access_keys.create_login_key(bob)
        finally:
            connection.close()

    monkeypatch.setattr(AccessKey, "generate_secret", wait_and_generate)
    with ThreadPoolExecutor(2) as pool:
        new_keys = list(pool.map(sign_in, range(2)))
    assert AccessKey.objects.count() == 20
    assert [get_me(bearer_auth(key)).status_code for key in new_keys] == [200, 200], "the newest keys are kept"


def test_deleted_sign_in_key_is_not_in_the_deletion_log(bob: User):
    from system.models import DeletionLogEntry

    for _ in range(22):
        access_keys.create_login_key(bob)

    assert not DeletionLogEntry.objects.exists(), "short-lived sign-in keys would fill the log"


def test_sign_in_key_records_its_user_as_creator(bob: User):
    request_api_key("bob")

    assert only_access_key().sys_created_by == bob.pk


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        ("", 422, "mandatory", "username"),
        ("[]", 400, "invalid_json", None),
        ('"bob"', 400, "invalid_json", None),
        ("null", 400, "invalid_json", None),
        ("{", 400, "invalid_json", None),
        ('{"username": "bob", "username": "alice", "password": "x"}', 400, "invalid_json", None),
        ('{"username": "bob\\u0000", "password": "x"}', 400, "invalid_json", None),
        ('{"username": "\\ud800", "password": "x"}', 400, "invalid_json", None),
        ("{}", 422, "mandatory", "username"),
        ('{"username": "bob"}', 422, "mandatory", "password"),
        ('{"username": "bob", "password": ""}', 422, "mandatory", "password"),
        ('{"username": "", "password": "x"}', 422, "mandatory", "username"),
        ('{"username": null, "password": "x"}', 422, "mandatory", "username"),
        ('{"username": ["bob"], "password": "x"}', 422, "invalid_value", "username"),
        ('{"username": {"$ne": ""}, "password": "x"}', 422, "invalid_value", "username"),
        ('{"username": "bob", "password": true}', 422, "invalid_value", "password"),
        (json.dumps({"username": "bob", "password": "x" * 1025}), 422, "invalid_value", "password"),
    ],
)
def test_invalid_body_is_refused(client: Client, bob: User, body: str, status: int, code: str, field: str | None):
    response = client.post(API_SIGN_IN_PATH, body, content_type="application/json")

    assert response.status_code == status
    assert response.json()["errors"][0]["code"] == code
    assert response.json()["errors"][0].get("field") == field


def test_form_body_is_refused(client: Client, bob: User):
    assert client.post(API_SIGN_IN_PATH, {"username": "bob", "password": PASSWORD}).status_code == 415


def test_only_post_is_allowed(client: Client, bob: User):
    assert client.get(API_SIGN_IN_PATH, {"username": "bob", "password": PASSWORD}).status_code == 405


def test_wrong_password_gives_401_with_a_challenge(bob: User):
    response = request_api_key("bob", "wrong")

    assert response.status_code == 401
    assert "WWW-Authenticate" in response
    assert not AccessKey.objects.exists()


def test_credentials_in_the_header_are_ignored(client: Client, bob: User, alice: User):
    credentials = {"username": "alice", "password": "wrong"}

    assert (
        client.post(
            API_SIGN_IN_PATH, credentials, content_type="application/json", headers=basic_auth("bob")
        ).status_code
        == 401
    )


def test_spaces_in_a_password_are_significant(bob: User):
    bob.change_password(" inner horse 44 ")

    assert request_api_key("bob", "inner horse 44").status_code == 401
    assert request_api_key("bob", " inner horse 44 ").status_code == 200


def test_ten_wrong_passwords_lead_to_429(bob: User):
    for number in range(10):
        try_password("bob", f"wrong {number}", ip="127.0.0.1")
    response = request_api_key("bob")

    assert response.status_code == 429
    assert 0 < int(response["Retry-After"]) <= 900


def test_unknown_field_in_the_body_is_ignored(bob: User, client: Client):
    """Some clients send additional fields, which must not change the permissions of the key."""
    body: dict[str, Any] = {"username": "bob", "password": PASSWORD, "scope": [], "kind": "named", "expires_at": None}

    assert client.post(API_SIGN_IN_PATH, body, content_type="application/json").status_code == 200
    assert only_access_key().kind == AccessKey.KIND_LOGIN
