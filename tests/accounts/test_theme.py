"""The switch between light and dark: stored per user, and rendered by the server on every page."""

import pytest
from django.test import Client

from accounts.models import User

PAGES = ("/", "/account/", "/tables/", "/collections/", "/api/docs", "/nowhere")


@pytest.fixture
def bob_client(bob: User) -> Client:
    client = Client(HTTP_ACCEPT="text/html")
    client.force_login(bob, "accounts.authentication.PasswordBackend")
    return client


def test_theme_is_stored_and_used_by_every_page(bob: User, bob_client: Client):
    response = bob_client.post("/account/theme/", {"theme": "dark"})

    assert (response.status_code, response.headers["Location"]) == (302, "/")
    for path in PAGES:
        assert 'data-theme="dark"' in bob_client.get(path).content.decode(), path


def test_administration_has_the_theme_too(client: Client, alice: User):
    client.force_login(alice, "accounts.authentication.PasswordBackend")
    assert 'class="auto"' in client.get("/admin/").content.decode()
    client.post("/account/theme/", {"theme": "light"})
    assert 'class="light"' in client.get("/admin/").content.decode()


@pytest.mark.parametrize("theme", ["", "blue", "DARK", "dark\x00"])
def test_unknown_theme_is_refused(bob: User, bob_client: Client, theme: str):
    assert bob_client.post("/account/theme/", {"theme": theme}).status_code == 422
    bob.refresh_from_db()
    assert bob.theme == "system"


def test_pages_do_not_repeat_their_address(bob_client: Client):
    for path in PAGES:
        assert "a-secret" not in bob_client.get(f"{path}?token=a-secret").content.decode(), path


def test_choice_is_no_change_of_the_record(bob: User, bob_client: Client):
    bob_client.post("/account/theme/", {"theme": "dark"})
    version = bob.sys_version
    bob.refresh_from_db()
    assert (bob.theme, bob.sys_version) == ("dark", version)


def test_error_page_has_the_navigation_of_a_signed_in_user(bob_client: Client):
    page = bob_client.get("/nowhere").content.decode()
    assert "Sign out" in page and 'href="/collections/"' in page
    assert "Sign out" not in Client(HTTP_ACCEPT="text/html").get("/nowhere").content.decode()
