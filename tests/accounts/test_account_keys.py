"""Access keys on the account page: created, shown once, revoked."""

import re
from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.test import Client
from django.utils import timezone

from accounts.authentication import access_keys
from accounts.models import AccessKey, Role, User, UserRole
from tests.accounts.callers import bearer_auth, get_me, only_access_key

KEYS_PATH = "/account/keys/"
SECRET_PATTERN = re.compile(r"sb_[\w-]{43}")


def create_key(browser: Client, **form: Any) -> Any:
    """Submits the form; returns the page after the redirect."""
    return browser.post(KEYS_PATH, {"name": "script", "days": "90", **form}, follow=True)


def shown_secrets(page: Any) -> list[str]:
    return SECRET_PATTERN.findall(page.content.decode())


def test_new_key_is_shown_only_once(as_bob: Client):
    page = create_key(as_bob)

    assert (page.status_code, page.redirect_chain) == (200, [("/account/", 302)])
    (secret,) = shown_secrets(page)
    assert get_me(bearer_auth(secret)).json()["login"] == "bob"
    assert page["Cache-Control"] == "no-store"
    assert secret[:9] in as_bob.get("/account/").content.decode()
    assert shown_secrets(as_bob.get("/account/")) == shown_secrets(create_key(as_bob, name="")) == []


def test_new_key_that_cannot_be_decrypted_is_not_shown(as_bob: Client, settings: Any):
    as_bob.post(KEYS_PATH, {"name": "script", "days": "90"})
    settings.SECRET_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    page = as_bob.get("/account/")

    assert page.status_code == 200 and shown_secrets(page) == []


def test_reloading_the_page_creates_no_second_key(as_bob: Client):
    create_key(as_bob)
    as_bob.get("/account/")

    assert AccessKey.objects.count() == 1


def test_new_key_is_stored_encrypted_in_the_session_and_in_no_cookie(as_bob: Client):
    as_bob.post(KEYS_PATH, {"name": "script", "days": "90"})
    session_text = str(dict(as_bob.session))
    (secret,) = shown_secrets(as_bob.get("/account/"))

    assert all(secret not in cookie.value for cookie in as_bob.cookies.values())
    assert secret not in session_text
    assert "new_key" not in as_bob.session


@pytest.mark.parametrize(("days", "lifetime"), [("30", timedelta(30)), ("365", timedelta(365)), ("", None)])
def test_lifetime_can_be_chosen(as_bob: Client, days: str, lifetime: timedelta | None):
    create_key(as_bob, days=days)
    expires_at = only_access_key().expires_at

    if lifetime is None:
        assert expires_at is None
    else:
        assert abs(expires_at - timezone.now() - lifetime) < timedelta(seconds=10)


@pytest.mark.parametrize(
    "invalid_form", [{"name": ""}, {"name": "x" * 101}, {"days": "7"}, {"days": "-1"}, {"name": "\x00"}]
)
def test_invalid_form_creates_no_key(as_bob: Client, invalid_form: dict[str, str]):
    assert create_key(as_bob, **invalid_form).status_code == 400
    assert not AccessKey.objects.exists()


def test_key_can_be_limited_to_own_roles(as_sonja: Client):
    (secret,) = shown_secrets(create_key(as_sonja, scope=[Role.objects.get(name="sso_admin").pk]))

    assert get_me(bearer_auth(secret)).json()["roles"] == ["sso_admin"]


def test_contained_roles_can_be_chosen(as_sonja: Client, sonja: User):
    contained_role = Role.objects.create(name="inner")
    UserRole.objects.create(user=sonja, role=Role.objects.create(name="outer", contains=[contained_role.pk]))
    (secret,) = shown_secrets(create_key(as_sonja, scope=[contained_role.pk]))

    assert get_me(bearer_auth(secret)).json()["roles"] == ["inner"]


@pytest.mark.parametrize("name", ["admin", "itil"])
def test_role_that_the_user_lacks_cannot_be_chosen(as_sonja: Client, name: str):
    page = create_key(as_sonja, scope=[Role.objects.get(name=name).pk])

    assert page.status_code == 400
    assert not AccessKey.objects.exists()


def test_roles_are_not_offered_to_a_user_without_roles(as_bob: Client):
    assert b"Limit to roles" not in as_bob.get("/account/").content
    create_key(as_bob, scope=[Role.objects.get(name="admin").pk])
    assert only_access_key().scope == []


def test_administrator_can_choose_any_role(as_alice: Client):
    (secret,) = shown_secrets(create_key(as_alice, scope=[Role.objects.get(name="itil").pk]))

    assert get_me(bearer_auth(secret)).json()["roles"] == ["itil"]


def test_key_always_belongs_to_the_signed_in_user(as_bob: Client, bob: User, alice: User):
    create_key(as_bob, user=alice.pk, login="alice", kind="login")

    assert AccessKey.objects.values("user", "kind", "sys_created_by").get() == {
        "user": bob.pk,
        "kind": "named",
        "sys_created_by": bob.pk,
    }


def test_revoking_requires_confirmation(as_bob: Client, bob: User, alice: User):
    secret = access_keys.create_key(bob, "backup <b>", expires_at=None)
    page = as_bob.get(f"{KEYS_PATH}{only_access_key().pk}/revoke/").content.decode()

    assert "Revoke this key?" in page and "backup &lt;b&gt;" in page and secret[:9] in page
    assert get_me(bearer_auth(secret)).status_code == 200
    access_keys.create_key(alice, "of alice", expires_at=None)
    key_of_alice = AccessKey.objects.get(user=alice)
    assert as_bob.get(f"{KEYS_PATH}{key_of_alice.pk}/revoke/")["Location"] == "/account/"


def test_revoked_key_is_refused(as_bob: Client, bob: User):
    secret, other_secret = (access_keys.create_key(bob, name, expires_at=None) for name in ("one", "two"))
    assert get_me(bearer_auth(secret)).status_code == 200
    response = as_bob.post(f"{KEYS_PATH}{AccessKey.objects.get(name='one').pk}/revoke/")

    assert response["Location"] == "/account/"
    assert [get_me(bearer_auth(key)).status_code for key in (secret, other_secret)] == [401, 200]


@pytest.mark.parametrize("sys_id", ["", "1", "x", "nothing-here", "9" * 200])
def test_key_of_another_user_and_missing_key_give_the_same_404(as_bob: Client, alice: User, settings: Any, sys_id: str):
    secret = access_keys.create_key(alice, "of alice", expires_at=None)
    response = as_bob.post(f"{KEYS_PATH}{sys_id or only_access_key().pk}/revoke/")

    assert response.status_code == 404
    assert b"of alice" not in response.content
    assert get_me(bearer_auth(secret)).status_code == 200


def test_page_lists_only_own_keys(as_bob: Client, bob: User, alice: User):
    access_keys.create_key(alice, "of alice", expires_at=None)
    access_keys.create_key(bob, "<b>of bob</b>", expires_at=timezone.now() - timedelta(days=1))
    page = as_bob.get("/account/").content

    assert b"of alice" not in page
    assert b"&lt;b&gt;of bob" in page and b"<b>of bob" not in page
    assert b"expired" in page
