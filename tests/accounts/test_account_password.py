"""Changing one's own password: its requirements, and what it ends."""

import pytest
from django.test import Client

from accounts.authentication import access_keys
from accounts.models import Session, User
from system import process_cache
from tests.accounts.callers import ME, ask, bearer, guess, sign_in
from tests.support.users import PASSWORD

NEW = "another horse 43"
CHANGE = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}
ADDRESS = "/account/password/"


def test_new_password_works_immediately(as_bob: Client):
    assert guess("bob", PASSWORD) == 200
    assert as_bob.post(ADDRESS, CHANGE)["Location"] == "/account/"

    assert guess("bob", PASSWORD) == 401
    assert guess("bob", NEW) == 200


def test_other_sessions_end_and_this_one_gets_a_new_cookie(bob: User, alice: User):
    here, there, of_alice = sign_in("bob"), sign_in("bob"), sign_in("alice")
    before = here.cookies["servicebase_session"].value
    here.post(ADDRESS, CHANGE)

    assert here.get(ME).json()["login"] == "bob"
    assert here.cookies["servicebase_session"].value != before
    assert there.get(ME).status_code == 401
    assert Session.objects.filter(user=bob).count() == 1
    assert of_alice.get(ME).status_code == 200


def test_sign_in_keys_end_and_named_keys_stay(as_bob: Client, bob: User, alice: User):
    from_login, named = access_keys.create_login_key(bob), access_keys.create_key(bob, "script", expires_at=None)
    of_alice = access_keys.create_login_key(alice)
    as_bob.post(ADDRESS, CHANGE)

    assert [ask(bearer(key)).status_code for key in (from_login, named, of_alice)] == [401, 200, 200]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"old_password": "wrong"}, b"The current password is incorrect."),
        ({"old_password": ""}, b"This field is required"),
        ({"new_password2": "a third horse 44"}, b"didn\xe2\x80\x99t match"),
        ({"new_password1": "short 1", "new_password2": "short 1"}, b"too short"),
        ({"new_password1": "password123", "new_password2": "password123"}, b"too common"),
        ({"new_password1": "bob@example.com", "new_password2": "bob@example.com"}, b"too similar"),
        ({"new_password1": "bob1234567", "new_password2": "bob1234567"}, b"too similar to the login"),
        ({"new_password1": "x1" * 257, "new_password2": "x1" * 257}, b"at most 512 characters"),
        ({"new_password1": NEW + "\x00", "new_password2": NEW + "\x00"}, b"Null characters"),
    ],
)
def test_invalid_input_is_reported_and_changes_nothing(as_bob: Client, change: dict[str, str], said: bytes):
    page = as_bob.post(ADDRESS, {**CHANGE, **change})

    assert page.status_code == 400
    assert said in page.content
    assert guess("bob", PASSWORD) == 200


def test_response_contains_no_password(as_bob: Client):
    page = as_bob.post(ADDRESS, {**CHANGE, "new_password2": "a third horse 44"})

    for sent in (PASSWORD, NEW, "a third horse 44"):
        assert sent.encode() not in page.content


def test_guessing_the_current_password_is_limited(as_bob: Client):
    for number in range(10):
        assert as_bob.post(ADDRESS, {**CHANGE, "old_password": f"wrong {number}"}).status_code == 400
    refused = as_bob.post(ADDRESS, CHANGE, headers={"Accept": "text/html"})

    assert refused.status_code == 429 and "Retry-After" in refused
    assert guess("bob", PASSWORD, address="127.0.0.1") == 429, "the same count as at the door"
    process_cache.clear_all()
    assert guess("bob", PASSWORD) == 200, "and from elsewhere bob is not locked out"


def test_user_without_a_password_cannot_set_one(client: Client, db: None):
    """Signed in by a provider: a password would be a second way in that nobody asked for."""
    user = User.objects.create_user("keyless")
    client.force_login(user)

    assert b"Change password" not in client.get("/account/").content
    assert client.post(ADDRESS, CHANGE).status_code == 404
    assert not user.refreshed().has_usable_password()


def test_admin_password_form_redirects_here(as_alice: Client):
    assert as_alice.get("/admin/password_change/")["Location"] == "/account/"
    sent = as_alice.post("/admin/password_change/", {**CHANGE, "old_password": PASSWORD})

    assert (sent.status_code, sent["Location"]) == (302, "/account/")
    assert guess("alice", PASSWORD) == 200
