"""The keys of the API docs: created for a session, limited in time and number, and ended with the session."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.authentication import access_keys
from accounts.models import AccessKey, Session, User
from accounts.tasks import forget_expired
from tests.accounts.callers import basic_auth, bearer_auth, get_me, sign_in
from tests.support.users import PASSWORD

KEY_PATH = "/api/docs/key"


def create_docs_key(browser: Client, **body: Any) -> str:
    response = browser.post(KEY_PATH, body, "application/json")
    assert response.status_code == 200, response.content
    access_keys.KEY_CACHE.clear()
    return str(response.json()["data"]["auth_key"])


def status_with(key: str) -> int:
    access_keys.KEY_CACHE.clear()  # the caches of other processes expire within a second
    return int(get_me(bearer_auth(key)).status_code)


def test_key_is_read_only_unless_writes_are_allowed(as_alice: Client):
    company = {"name": "A"}
    for body, status in (({}, 403), ({"allow_writes": False}, 403), ({"allow_writes": True}, 201)):
        key = create_docs_key(as_alice, **body)
        response = Client().post("/rest/v1/table/company", company, "application/json", headers=bearer_auth(key))
        assert response.status_code == status, body
        assert get_me(bearer_auth(key)).json()["login"] == "alice"


def test_key_is_valid_for_fifteen_minutes(as_bob: Client):
    key = create_docs_key(as_bob)
    expires_at = AccessKey.objects.get().expires_at
    assert expires_at is not None and abs(expires_at - timezone.now() - timedelta(minutes=15)) < timedelta(seconds=5)

    AccessKey.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert status_with(key) == 401
    forget_expired()
    assert not AccessKey.objects.exists()


def test_key_ends_when_its_owner_signs_out(bob: User):
    browser, other_browser = sign_in("bob"), sign_in("bob")
    key, other_key = create_docs_key(browser), create_docs_key(other_browser)
    browser.post("/logout/")
    assert (status_with(key), status_with(other_key)) == (401, 200)


def test_key_ends_when_another_device_ends_the_session(bob: User):
    browser, other_browser = sign_in("bob"), sign_in("bob")
    key = create_docs_key(browser)
    session_key = AccessKey.objects.get().session
    other_browser.post(f"/account/sessions/{session_key}/end/")
    assert status_with(key) == 401


def test_key_ends_with_the_expiry_of_the_session(as_bob: Client):
    key = create_docs_key(as_bob)
    assert status_with(key) == 200
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    assert status_with(key) == 401


def test_key_ends_with_a_new_password(bob: User):
    browser = sign_in("bob")
    key = create_docs_key(browser)
    new_password = "correct horse battery staple"
    form = {"old_password": PASSWORD, "new_password1": new_password, "new_password2": new_password}
    assert browser.post("/account/password/", form).status_code == 302
    assert status_with(key) == 401


def test_key_ends_when_its_owner_is_deactivated(as_bob: Client, bob: User):
    key = create_docs_key(as_bob)
    bob.active = False
    bob.save()
    assert status_with(key) == 401


def test_session_has_at_most_five_keys(bob: User):
    browser, other_browser = sign_in("bob"), sign_in("bob")
    other_key = create_docs_key(other_browser)
    login_key = access_keys.create_login_key(bob)
    keys = [create_docs_key(browser) for _ in range(7)]
    assert [status_with(key) for key in keys] == [401, 401, 200, 200, 200, 200, 200]
    assert status_with(other_key) == status_with(login_key) == 200


@pytest.mark.parametrize("body", [{"allow_writes": "yes"}, {"allow_writes": None}, {"scope": []}, [], [True], "x", 1])
def test_other_bodies_are_refused(as_bob: Client, body: Any):
    assert as_bob.post(KEY_PATH, body, "application/json").status_code in (400, 422)
    assert not AccessKey.objects.exists()


def test_only_a_session_with_a_csrf_token_creates_a_key(bob: User):
    strict_browser = Client(enforce_csrf_checks=True)
    strict_browser.force_login(bob)
    assert strict_browser.post(KEY_PATH, {}, "application/json").status_code == 403
    match = re.search(r'csrfmiddlewaretoken" value="(\w+)"', strict_browser.get("/api/docs").content.decode())
    assert match
    response = strict_browser.post(KEY_PATH, {}, "application/json", headers={"X-CSRFToken": match[1]})
    assert response.status_code == 200

    for headers in ({}, basic_auth("bob"), bearer_auth(response.json()["data"]["auth_key"])):
        assert Client().post(KEY_PATH, {}, "application/json", headers=headers).status_code == 401
    assert Client().get(KEY_PATH).status_code == 401
    assert strict_browser.get(KEY_PATH).status_code == 405
    assert AccessKey.objects.count() == 1


def test_response_is_not_cached(as_bob: Client):
    assert as_bob.post(KEY_PATH, {}, "application/json").headers["Cache-Control"] == "no-store"


def test_account_page_does_not_list_the_key(as_bob: Client):
    create_docs_key(as_bob)
    page = as_bob.get("/account/").content.decode()
    assert AccessKey.objects.get().prefix not in page and "never used" not in page


def test_administrators_see_where_the_key_comes_from(as_bob: Client, as_alice: Client):
    create_docs_key(as_bob)
    assert "created by the API docs" in as_alice.get("/admin/accounts/accesskey/").content.decode()


def test_stored_session_of_a_key_is_no_filter_and_no_column(as_bob: Client, as_alice: Client):
    create_docs_key(as_bob)
    session = AccessKey.objects.get().session
    for path in ("/admin/accounts/accesskey/", f"/admin/accounts/accesskey/{AccessKey.objects.get().pk}/change/"):
        assert session not in as_alice.get(path, follow=True).content.decode()
    response = as_alice.get(f"/admin/accounts/accesskey/?session__startswith={session[:2]}")
    assert response.status_code in (302, 400)


def test_page_offers_a_key_only_after_sign_in(as_bob: Client):
    assert b'id="docs-key"' in as_bob.get("/api/docs").content
    page = Client().get("/api/docs").content
    assert b'id="docs-key"' not in page and b"/login/?next=/api/docs" in page
