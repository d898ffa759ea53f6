"""`/`: the redirect for visitors, and the page for signed-in users."""

import pytest
from django.test import Client

from accounts.models import User
from system import properties
from system.models import Property


def test_anonymous_user_is_redirected_to_sign_in(client: Client, db: None):
    response = client.get("/")

    assert (response.status_code, response["Location"]) == (302, "/login/")


@pytest.mark.parametrize("url", ["/start/page", "/rest/v1/x?y=z", "https://testserver/login/sso/", "/login/?a=b"])
def test_anonymous_user_is_redirected_to_the_welcome_page(client: Client, db: None, url: str):
    properties.put(properties.WELCOME_PAGE, url)

    assert client.get("/")["Location"] == url


@pytest.mark.parametrize(
    "url", ["/", "/?", "/?a=b", "/#top", "http://testserver", "https://testserver/", "?a", "/.", "/a/..", "/%2e"]
)
def test_welcome_page_cannot_redirect_to_itself(client: Client, db: None, url: str):
    Property.objects.filter(name="svc.welcome_page.url").update(value=url)

    assert client.get("/")["Location"] == "/login/"


@pytest.mark.parametrize("name", ["login", "nothing", "accounts"])
def test_welcome_page_is_not_resolved_as_a_view_name(client: Client, db: None, name: str):
    with pytest.raises(ValueError, match="must begin with a slash"):
        properties.put(properties.WELCOME_PAGE, name)
    Property.objects.filter(name="svc.welcome_page.url").update(value=name)

    assert client.get("/")["Location"] == name


def test_welcome_page_of_another_site_is_refused(db: None):
    for url in ("https://evil.example", "//evil.example", "javascript:alert(1)", "/\\evil.example"):
        with pytest.raises(ValueError, match="Enter a path"):
            properties.put(properties.WELCOME_PAGE, url)


def test_empty_welcome_page_means_the_sign_in_page(client: Client, db: None):
    properties.put(properties.WELCOME_PAGE, "/start")
    properties.put(properties.WELCOME_PAGE, "")

    assert Property.objects.get(name="svc.welcome_page.url").value == ""
    assert client.get("/")["Location"] == "/login/"


def test_signed_in_user_sees_permitted_entries(as_bob: Client):
    properties.put(properties.WELCOME_PAGE, "/start")
    page = as_bob.get("/")

    assert page.status_code == 200
    assert b'href="/account/"' in page.content and b'href="/api/docs"' in page.content
    assert b'href="/admin/"' not in page.content, "no link to a page that the user cannot open"


def test_password_is_not_offered_to_a_user_without_one(client: Client, as_bob: Client):
    client.force_login(User.objects.create_user("keyless"))

    assert b"Manage your profile, access keys and sessions." in client.get("/").content
    assert b"Manage your profile, password, access keys and sessions." in as_bob.get("/").content
    assert b"assword" not in client.get("/account/").content


@pytest.mark.parametrize("fixture_name", ["as_alice", "as_sonja", "as_carl"])
def test_all_kinds_of_administrators_see_the_link_to_the_administration(
    request: pytest.FixtureRequest, fixture_name: str
):
    browser = request.getfixturevalue(fixture_name)

    assert b'href="/admin/"' in browser.get("/").content


def test_names_are_escaped(client: Client, bob: User):
    bob.first_name = "<script>alert(1)</script>"
    bob.save()
    client.force_login(bob)

    assert b"<script>alert" not in client.get("/").content
