"""A deactivated user's keys, password and sessions stop within one second."""

from typing import Any

import pytest
from django.test import Client

from accounts.authentication import access_keys
from accounts.models import User
from tests.accounts.callers import ME, api_key, ask, basic, bearer, guess, later, sign_in
from tests.support.users import PASSWORD


@pytest.fixture
def key(bob: User) -> str:
    """A key that this process has just looked up."""
    secret = access_keys.create_key(bob, "script", expires_at=None)
    assert ask(bearer(secret)).status_code == 200
    return secret


def deactivate(user: User) -> None:
    user.active = False
    user.save()


def deactivate_elsewhere(user: User) -> None:
    """As another process does it: nothing in this one is told."""
    User.objects.filter(pk=user.pk).update(active=False)


def test_key_stops_working(bob: User, key: str):
    deactivate(bob)

    assert ask(bearer(key)).status_code == 401


def test_key_stops_within_a_second_in_other_processes(bob: User, key: str, monkeypatch: Any):
    deactivate_elsewhere(bob)
    assert ask(bearer(key)).status_code == 200, "this test would show nothing if look-ups were not remembered"

    monkeypatch.setattr(access_keys, "time", later(1.0))
    assert ask(bearer(key)).status_code == 401


def test_key_in_constant_use_stops(bob: User, key: str, monkeypatch: Any):
    """Using what is remembered must not make it younger."""
    deactivate_elsewhere(bob)
    for tenth in range(10):
        monkeypatch.setattr(access_keys, "time", later(tenth / 10))
        ask(bearer(key))

    monkeypatch.setattr(access_keys, "time", later(1.0))
    assert ask(bearer(key)).status_code == 401


@pytest.mark.parametrize("how", [deactivate, deactivate_elsewhere])
def test_cached_password_stops_immediately(bob: User, how: Any):
    assert guess("bob", PASSWORD) == 200
    how(bob)

    assert guess("bob", PASSWORD) == 401
    assert api_key("bob").status_code == 401


@pytest.mark.parametrize("how", [deactivate, deactivate_elsewhere])
def test_session_stops_immediately(bob: User, how: Any):
    browser = sign_in("bob")
    assert browser.get(ME).status_code == 200
    how(bob)

    assert browser.get(ME).status_code == 401
    assert browser.get("/account/")["Location"] == "/login/?next=/account/"
    assert browser.post("/account/keys/", {"name": "late"}).status_code == 302
    assert not bob.access_keys.exists()


def test_deactivated_administrator_loses_the_administration(as_alice: Client, alice: User):
    assert as_alice.get("/admin/").status_code == 200
    deactivate_elsewhere(alice)

    assert as_alice.get("/admin/").status_code == 302


def test_sign_in_message_equals_that_of_a_wrong_password(bob: User, client: Client):
    deactivate(bob)
    right = client.post("/login/", {"login": "bob", "password": PASSWORD})
    wrong = client.post("/login/", {"login": "bob", "password": "wrong"})

    assert (right.status_code, wrong.status_code) == (401, 401)
    assert right.context["form"].non_field_errors() == wrong.context["form"].non_field_errors()


def test_deleted_user_loses_all_access(bob: User, key: str):
    browser = sign_in("bob")
    bob.delete()

    assert ask(bearer(key)).status_code == 401
    assert ask(basic("bob")).status_code == 401
    assert browser.get(ME).status_code == 401
