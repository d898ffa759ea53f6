"""`/logout/`: accepts only POST, and redirects to a page that does not sign in again."""

import pytest
from django.test import Client

from accounts.models import Session, User
from tests.accounts.callers import ME_PATH, sign_in

both_routes = pytest.mark.parametrize("path", ["/logout/", "/admin/logout/"])


@both_routes
def test_sign_out_ends_the_session_and_shows_the_sign_in_page(alice: User, path: str):
    browser = sign_in("alice")
    response = browser.post(path)

    assert (response.status_code, response["Location"]) == (302, "/login/?signed_out=1")
    assert browser.get(ME_PATH).status_code == 401
    assert not Session.objects.exists()
    page = browser.get(response["Location"])
    assert page.status_code == 200 and b"You are signed out." in page.content


@both_routes
def test_old_cookie_is_refused(alice: User, path: str):
    browser = sign_in("alice")
    client = Client()
    client.cookies["servicebase_session"] = browser.cookies["servicebase_session"].value
    assert client.get(ME_PATH).status_code == 200
    browser.post(path)

    assert client.get(ME_PATH).status_code == 401


@both_routes
def test_get_does_not_sign_out(alice: User, path: str):
    browser = sign_in("alice")

    assert browser.get(path).status_code == 405
    assert browser.get(ME_PATH).status_code == 200


@both_routes
def test_form_of_another_site_does_not_sign_out(alice: User, path: str):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)

    assert client.post(path).status_code == 403
    assert client.get(ME_PATH).status_code == 200


def test_next_parameter_is_ignored(as_bob: Client):
    assert as_bob.post("/logout/?next=//evil.example", {"next": "//evil.example"})["Location"] == "/login/?signed_out=1"


def test_anonymous_user_sees_the_same_page(client: Client, db: None):
    assert client.post("/logout/")["Location"] == "/login/?signed_out=1"


def test_signed_in_user_never_sees_the_signed_out_message(as_bob: Client):
    """The user signed in again in another window, or followed a link to the page."""
    for path in ("/login/?signed_out=1", "/sso/logout/"):
        response = as_bob.get(path, follow=True)
        assert response.request["PATH_INFO"] == "/" and response.status_code == 200
        assert b"You are signed out" not in response.content


def test_other_sessions_continue(bob: User):
    browser, other_browser = sign_in("bob"), sign_in("bob")
    browser.post("/logout/")

    assert other_browser.get(ME_PATH).status_code == 200
