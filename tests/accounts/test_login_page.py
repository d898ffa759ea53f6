"""`/login/`: sign-in by password."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import FailedAttempts, Session, User
from tests.accounts.callers import ME_PATH, sign_in, try_password
from tests.support.users import PASSWORD

VALID_FORM = {"login": "bob", "password": PASSWORD}

FOREIGN_TARGETS = [
    "//evil.example",
    "///evil.example",
    "////evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "\\/evil.example",
    "https:evil.example",
    "https:/evil.example",
    "https://evil.example/",
    "http://testserver/",
    "HTTP://evil.example",
    "javascript:alert(1)",
    " javascript:alert(1)",
    "data:text/html,x",
    "\t//evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "/\r\n/evil.example",
    "\x00//evil.example",
    "\x01//evil.example",
    " //evil.example",
    "//[",
    "http://[::1",
    "evil.example",
    "admin/",
    "?next=x",
    "//evil.example@testserver/",
    "/" + "x" * 5000,
]
LOCAL_TARGETS = [
    "/account/",
    "/admin/accounts/user/?q=a&o=1",
    "/account/#keys",
    "/a//b",
    "/ü?ü=ü",
    "/@evil.example",
    "/a:b",
]


def test_page_is_shown(client: Client, db: None):
    page = client.get("/login/")

    assert page.status_code == 200
    assert b'name="login"' in page.content and b'type="password"' in page.content


def test_correct_password_signs_in(client: Client, bob: User):
    response = client.post("/login/", VALID_FORM)

    assert (response.status_code, response["Location"]) == (302, "/")
    assert client.get(ME_PATH).json()["login"] == "bob"


def test_wrong_password_shows_the_page_again_with_401(client: Client, bob: User):
    page = client.post("/login/", {**VALID_FORM, "password": "wrong-canary", "next": "/account/"})

    assert page.status_code == 401
    assert b"Incorrect login or password" in page.content
    assert b'value="bob"' in page.content and b'value="/account/"' in page.content
    assert b"canary" not in page.content
    assert client.get(ME_PATH).status_code == 401


@pytest.mark.parametrize("form", [{}, {"login": "bob"}, {"password": PASSWORD}, {**VALID_FORM, "login": "b" * 2000}])
def test_incomplete_form_is_400(client: Client, bob: User, form: dict[str, str]):
    assert client.post("/login/", form).status_code == 400


def test_nul_character_is_400(client: Client, bob: User):
    assert client.post("/login/", {**VALID_FORM, "login": "bob\x00"}).status_code == 400
    assert client.post("/login/", {**VALID_FORM, "password": PASSWORD + "\x00"}).status_code == 400


def test_invalid_utf8_does_not_sign_in(client: Client, bob: User):
    body = b"login=bob&password=%ff%fe%ed%a0%80"

    assert client.post("/login/", body, content_type="application/x-www-form-urlencoded").status_code == 401


def test_ten_wrong_passwords_lead_to_429(client: Client, bob: User):
    for number in range(10):
        try_password("bob", f"wrong {number}", ip="127.0.0.1")
    page = client.post("/login/", VALID_FORM)

    assert page.status_code == 429
    assert 0 < int(page["Retry-After"]) <= 900
    assert b"Too many failed attempts. Try again in 15 minutes." in page.content
    assert client.get(ME_PATH).status_code == 401


def test_waiting_time_does_not_depend_on_the_login(client: Client, bob: User):
    messages = []
    for login in ("bob", "nobody"):
        for number in range(10):
            try_password(login, f"wrong {number}", ip="127.0.0.1")
        FailedAttempts.objects.update(started_at=timezone.now() - timedelta(minutes=11))
        page = client.post("/login/", {**VALID_FORM, "login": login})
        messages.append(re.findall(r"Too many failed[^<]*", page.content.decode()))

    assert messages == [["Too many failed attempts. Try again in 4 minutes."]] * 2


@pytest.mark.parametrize("target", FOREIGN_TARGETS)
def test_no_redirect_to_another_site(client: Client, bob: User, target: str):
    assert client.post("/login/", {**VALID_FORM, "next": target})["Location"] == "/"
    assert client.get("/login/", {"next": target})["Location"] == "/", "already signed in"


def test_encoded_tab_does_not_redirect_to_another_site(client: Client, bob: User):
    client.post("/login/", VALID_FORM)

    assert client.get("/login/?next=%09//evil.example")["Location"] == "/"
    assert client.get("/login/?next=/%09/evil.example")["Location"] == "/"


@pytest.mark.parametrize("target", LOCAL_TARGETS)
def test_redirect_to_a_path_of_this_service(client: Client, bob: User, target: str):
    from django.utils.encoding import iri_to_uri

    assert client.post("/login/", {**VALID_FORM, "next": target})["Location"] == iri_to_uri(target)


def test_next_parameter_is_passed_on_and_escaped(client: Client, db: None):
    page = client.get("/login/", {"next": '/a"><script>'})

    assert b"<script>" not in page.content.replace(b"<script src", b"")
    assert b"/a&quot;&gt;" in page.content


def test_signed_in_user_is_redirected(as_bob: Client):
    assert as_bob.get("/login/", {"next": "/account/"})["Location"] == "/account/"
    assert as_bob.get("/login/")["Location"] == "/"


def test_sign_in_without_csrf_token_is_refused(bob: User):
    client = Client(enforce_csrf_checks=True)

    assert client.post("/login/", VALID_FORM).status_code == 403
    assert client.get(ME_PATH).status_code == 401


def test_sign_in_with_csrf_token_works(bob: User):
    client = Client(enforce_csrf_checks=True)
    client.get("/login/")
    token = client.cookies["servicebase_csrf"].value

    assert client.post("/login/", {**VALID_FORM, "csrfmiddlewaretoken": token}).status_code == 302


def test_sign_in_changes_the_session_key(bob: User):
    """Session fixation: a cookie planted by an attacker must not become a signed-in session."""
    attacker = Client()
    attacker.session.save()  # a session that an attacker got from the server
    victim = Client()
    victim.cookies["servicebase_session"] = attacker.cookies["servicebase_session"].value
    victim.post("/login/", VALID_FORM)

    assert victim.get(ME_PATH).json()["login"] == "bob"
    assert victim.cookies["servicebase_session"].value != attacker.cookies["servicebase_session"].value
    assert attacker.get(ME_PATH).status_code == 401


def test_invented_session_key_is_never_used(bob: User):
    client = Client()
    client.cookies["servicebase_session"] = "a" * 32
    client.post("/login/", VALID_FORM)

    assert client.cookies["servicebase_session"].value != "a" * 32


def test_signing_in_as_another_user_clears_the_session(bob: User, alice: User):
    browser = sign_in("bob")
    session = browser.session
    session["left behind"] = "of bob"
    session.save()
    browser.post("/login/", {"login": "alice", "password": PASSWORD})

    assert browser.get(ME_PATH).json()["login"] == "alice"
    assert "left behind" not in browser.session
    assert not Session.objects.filter(user=bob).exists()


def test_cookie_is_http_only(client: Client, bob: User):
    cookie = client.post("/login/", VALID_FORM).cookies["servicebase_session"]

    assert cookie["httponly"] and cookie["samesite"] == "Lax"
    assert cookie["max-age"] == 12 * 60 * 60


def test_sign_in_is_recorded_without_changing_the_user(client: Client, bob: User):
    columns_before = User.objects.values("sys_version", "sys_updated_at").get()
    client.post("/login/", VALID_FORM)

    assert bob.refreshed().last_login is not None
    assert User.objects.values("sys_version", "sys_updated_at").get() == columns_before
    assert bob.history.count() == 1, "the user record is unchanged"


def test_administration_uses_this_page(client: Client, alice: User):
    admin_path = "/admin/accounts/user/"
    page = client.get(admin_path, follow=True)

    assert page.request["PATH_INFO"] == "/login/"
    assert page.context["next"] == admin_path
    client.post("/admin/login/", {"username": "alice", "password": PASSWORD})
    assert client.get(ME_PATH).status_code == 401


def test_user_without_access_to_the_administration_gets_403(as_bob: Client):
    assert as_bob.get("/admin/", follow=True).status_code == 403
