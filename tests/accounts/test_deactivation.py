"""A deactivated user's keys, password and sessions stop working within one second."""

from typing import Any

import pytest
from django.test import Client

from accounts.authentication import access_keys
from accounts.models import User
from tests.accounts.callers import (
    ME_PATH,
    basic_auth,
    bearer_auth,
    clock_ahead,
    get_me,
    request_api_key,
    sign_in,
    try_password,
)
from tests.support.users import PASSWORD


@pytest.fixture
def key(bob: User) -> str:
    """A key that this process has just looked up."""
    secret = access_keys.create_key(bob, "script", expires_at=None)
    assert get_me(bearer_auth(secret)).status_code == 200
    return secret


def deactivate(user: User) -> None:
    user.active = False
    user.save()


def deactivate_in_another_process(user: User) -> None:
    """Like a change by another process: it sends no signal in this process."""
    User.objects.filter(pk=user.pk).update(active=False)


def test_key_stops_working(bob: User, key: str):
    deactivate(bob)

    assert get_me(bearer_auth(key)).status_code == 401


def test_key_stops_working_within_a_second_in_other_processes(bob: User, key: str, monkeypatch: Any):
    deactivate_in_another_process(bob)
    assert get_me(bearer_auth(key)).status_code == 200, "the key must be cached, otherwise this test proves nothing"

    monkeypatch.setattr(access_keys, "time", clock_ahead(1.0))
    assert get_me(bearer_auth(key)).status_code == 401


def test_key_in_constant_use_stops_working(bob: User, key: str, monkeypatch: Any):
    """Using a cached key must not extend its lifetime in the cache."""
    deactivate_in_another_process(bob)
    for tenth in range(10):
        monkeypatch.setattr(access_keys, "time", clock_ahead(tenth / 10))
        get_me(bearer_auth(key))

    monkeypatch.setattr(access_keys, "time", clock_ahead(1.0))
    assert get_me(bearer_auth(key)).status_code == 401


@pytest.mark.parametrize("deactivate_user", [deactivate, deactivate_in_another_process])
def test_cached_password_stops_working_immediately(bob: User, deactivate_user: Any):
    assert try_password("bob", PASSWORD) == 200
    deactivate_user(bob)

    assert try_password("bob", PASSWORD) == 401
    assert request_api_key("bob").status_code == 401


@pytest.mark.parametrize("deactivate_user", [deactivate, deactivate_in_another_process])
def test_session_ends_immediately(bob: User, deactivate_user: Any):
    browser = sign_in("bob")
    assert browser.get(ME_PATH).status_code == 200
    deactivate_user(bob)

    assert browser.get(ME_PATH).status_code == 401
    assert browser.get("/account/")["Location"] == "/login/?next=/account/"
    assert browser.post("/account/keys/", {"name": "late"}).status_code == 302
    assert not bob.access_keys.exists()


def test_deactivated_administrator_loses_the_administration(as_alice: Client, alice: User):
    assert as_alice.get("/admin/").status_code == 200
    deactivate_in_another_process(alice)

    assert as_alice.get("/admin/").status_code == 302


def test_deactivated_user_gets_the_same_message_as_for_a_wrong_password(bob: User, client: Client):
    deactivate(bob)
    response = client.post("/login/", {"login": "bob", "password": PASSWORD})
    wrong_password_response = client.post("/login/", {"login": "bob", "password": "wrong"})

    assert (response.status_code, wrong_password_response.status_code) == (401, 401)
    assert response.context["form"].non_field_errors() == wrong_password_response.context["form"].non_field_errors()


def test_deleted_user_loses_all_access(bob: User, key: str):
    browser = sign_in("bob")
    bob.delete()

    assert get_me(bearer_auth(key)).status_code == 401
    assert get_me(basic_auth("bob")).status_code == 401
    assert browser.get(ME_PATH).status_code == 401
