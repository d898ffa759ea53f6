"""Changing the password: requirements, and which sessions and keys end."""

import pytest
from django.test import Client

from accounts.authentication import access_keys
from accounts.models import Session, User
from system import process_cache
from tests.accounts.callers import ME_PATH, bearer_auth, get_me, sign_in, try_password
from tests.support.users import PASSWORD

NEW_PASSWORD = "another horse 43"
PASSWORD_FORM = {"old_password": PASSWORD, "new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
PASSWORD_PATH = "/account/password/"


def test_new_password_works_immediately(as_bob: Client):
    assert try_password("bob", PASSWORD) == 200
    assert as_bob.post(PASSWORD_PATH, PASSWORD_FORM)["Location"] == "/account/"

    assert try_password("bob", PASSWORD) == 401
    assert try_password("bob", NEW_PASSWORD) == 200


def test_other_sessions_end_and_the_current_one_gets_a_new_cookie(bob: User, alice: User):
    browser, other_browser, browser_of_alice = sign_in("bob"), sign_in("bob"), sign_in("alice")
    cookie_before = browser.cookies["servicebase_session"].value
    browser.post(PASSWORD_PATH, PASSWORD_FORM)

    assert browser.get(ME_PATH).json()["login"] == "bob"
    assert browser.cookies["servicebase_session"].value != cookie_before
    assert other_browser.get(ME_PATH).status_code == 401
    assert Session.objects.filter(user=bob).count() == 1
    assert browser_of_alice.get(ME_PATH).status_code == 200


def test_sign_in_keys_end_and_named_keys_stay(as_bob: Client, bob: User, alice: User):
    login_key, named_key = access_keys.create_login_key(bob), access_keys.create_key(bob, "script", expires_at=None)
    key_of_alice = access_keys.create_login_key(alice)
    as_bob.post(PASSWORD_PATH, PASSWORD_FORM)

    assert [get_me(bearer_auth(key)).status_code for key in (login_key, named_key, key_of_alice)] == [401, 200, 200]


@pytest.mark.parametrize(
    ("invalid_fields", "message"),
    [
        ({"old_password": "wrong"}, b"The current password is incorrect."),
        ({"old_password": ""}, b"This field is required"),
        ({"new_password2": "a third horse 44"}, b"didn\xe2\x80\x99t match"),
        ({"new_password1": "short 1", "new_password2": "short 1"}, b"too short"),
        ({"new_password1": "password123", "new_password2": "password123"}, b"too common"),
        ({"new_password1": "bob@example.com", "new_password2": "bob@example.com"}, b"too similar"),
        ({"new_password1": "bob1234567", "new_password2": "bob1234567"}, b"too similar to the login"),
        ({"new_password1": "x1" * 257, "new_password2": "x1" * 257}, b"at most 512 characters"),
        ({"new_password1": NEW_PASSWORD + "\x00", "new_password2": NEW_PASSWORD + "\x00"}, b"Null characters"),
    ],
)
def test_invalid_input_is_reported_and_changes_nothing(as_bob: Client, invalid_fields: dict[str, str], message: bytes):
    page = as_bob.post(PASSWORD_PATH, {**PASSWORD_FORM, **invalid_fields})

    assert page.status_code == 400
    assert message in page.content
    assert try_password("bob", PASSWORD) == 200


def test_response_contains_no_password(as_bob: Client):
    page = as_bob.post(PASSWORD_PATH, {**PASSWORD_FORM, "new_password2": "a third horse 44"})

    for password in (PASSWORD, NEW_PASSWORD, "a third horse 44"):
        assert password.encode() not in page.content


def test_guessing_the_current_password_is_limited(as_bob: Client):
    for number in range(10):
        assert as_bob.post(PASSWORD_PATH, {**PASSWORD_FORM, "old_password": f"wrong {number}"}).status_code == 400
    response = as_bob.post(PASSWORD_PATH, PASSWORD_FORM, headers={"Accept": "text/html"})

    assert response.status_code == 429 and "Retry-After" in response
    assert try_password("bob", PASSWORD, ip="127.0.0.1") == 429, "the counter is shared with the sign-in routes"
    process_cache.clear_all()
    assert try_password("bob", PASSWORD) == 200, "other addresses are not locked out"


def test_user_without_a_password_cannot_set_one(client: Client, db: None):
    """For a user of a provider, a password would be an additional way to sign in."""
    user = User.objects.create_user("keyless")
    client.force_login(user)

    assert b"Change password" not in client.get("/account/").content
    assert client.post(PASSWORD_PATH, PASSWORD_FORM).status_code == 404
    assert not user.refreshed().has_usable_password()


def test_admin_password_form_redirects_to_the_account_page(as_alice: Client):
    assert as_alice.get("/admin/password_change/")["Location"] == "/account/"
    response = as_alice.post("/admin/password_change/", {**PASSWORD_FORM, "old_password": PASSWORD})

    assert (response.status_code, response["Location"]) == (302, "/account/")
    assert try_password("alice", PASSWORD) == 200
