"""The pages outside of the administration."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.visitor import Visitor, create_many_roles
from tests.config.stack import Stack

pytestmark = pytest.mark.browser

NARROW_SIZE: Any = {"width": 320, "height": 700}
MAX_LINE_HEIGHT_PX = 48


@pytest.mark.parametrize("path", ["/", "/account/", "/api/docs", "/api/docs/reference"])
def test_every_page_opens_without_errors(visitor: Visitor, path: str):
    visitor.sign_in("bob")

    assert visitor.open(path) == 200
    visitor.page.wait_for_load_state("networkidle")
    assert visitor.overflow_px() <= 0


@pytest.mark.parametrize("path", ["/", "/admin/"])
def test_the_header_has_two_lines_on_a_narrow_phone(desktop_visitor: Visitor, path: str):
    page = desktop_visitor.sign_in("alice").page
    page.set_viewport_size(NARROW_SIZE)
    page.goto(path)
    tops = page.locator(".page-header nav > *").evaluate_all("(parts) => parts.map((part) => part.offsetTop)")
    assert max(tops) - min(tops) < MAX_LINE_HEIGHT_PX
    assert desktop_visitor.overflow_px() <= 0


def test_unknown_url_shows_the_error_page(visitor: Visitor):
    assert visitor.open("/nowhere") == 404
    assert visitor.page.get_by_text("The requested URL does not exist.").is_visible()
    assert visitor.overflow_px() <= 0


def test_sign_in_and_out_work_by_keyboard(desktop_visitor: Visitor):
    page = desktop_visitor.page
    page.goto("/")
    page.wait_for_url("**/login/")
    expect(page.get_by_label("Login")).to_be_focused()
    page.keyboard.type("bob")
    page.keyboard.press("Tab")
    page.keyboard.type("correct horse 42")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Hello, bob").wait_for()
    page.get_by_role("button", name="Sign out").focus()
    page.keyboard.press("Enter")

    page.wait_for_url("**/login/?signed_out=1")
    assert page.get_by_text("You are signed out.").is_visible()


def test_wrong_password_is_reported_and_keeps_the_login(desktop_visitor: Visitor):
    page = desktop_visitor.page
    page.goto("/login/")
    page.get_by_label("Login").fill("bob")
    page.get_by_label("Password").fill("not it")
    page.get_by_role("button", name="Sign in").click()

    assert page.get_by_role("alert").get_by_text("Incorrect login or password").is_visible()
    assert page.get_by_label("Login").input_value() == "bob"
    assert page.get_by_label("Password").input_value() == ""


def test_roles_of_a_key_can_be_filtered(visitor: Visitor, product: Stack):
    """Uses only the keyboard."""
    create_many_roles(product)
    visitor.sign_in("alice")
    page = visitor.page
    page.goto("/account/")
    if not page.get_by_label("Name", exact=True).is_visible():
        page.get_by_text("New key").click()
    page.get_by_label("Filter: Limit to roles").focus()
    for search_text in ("TEAM 149", "team 01"):
        page.keyboard.type(search_text)
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        page.keyboard.press("Shift+Tab")
        page.get_by_label("Filter: Limit to roles").fill("")
    page.keyboard.type("no such role")

    assert page.locator("#id_scope label:visible").all_inner_texts() == ["team 010", "team 149"]
    assert page.url.endswith("/account/") and visitor.overflow_px() <= 0


def test_time_zone_of_the_browser_is_offered_and_saved(desktop_visitor: Visitor):
    desktop_visitor.sign_in("bob")
    page = desktop_visitor.page
    page.add_init_script(
        "const original = Intl.DateTimeFormat.prototype.resolvedOptions;"
        "Intl.DateTimeFormat.prototype.resolvedOptions = function () {"
        " return {...original.call(this), timeZone: 'America/New_York'}; };"
    )
    page.goto("/account/")
    page.get_by_role("button", name="Use America/New York, the time zone of your browser").click()
    page.get_by_role("button", name="Save profile").click()

    page.get_by_text("Profile saved.").wait_for()
    assert page.get_by_label("Time zone").input_value() == "America/New_York"
    assert not page.get_by_role("button", name="Use America/New York").is_visible()
    page.get_by_label("Time zone").select_option("UTC")
    page.get_by_role("button", name="Save profile").click()
    page.get_by_text("Profile saved.").wait_for()


def test_user_creates_uses_and_revokes_a_key(desktop_visitor: Visitor):
    desktop_visitor.sign_in("bob")
    page = desktop_visitor.page
    page.goto("/account/")
    if not page.get_by_label("Name", exact=True).is_visible():
        page.get_by_text("New key").click()
    page.get_by_label("Name", exact=True).fill("my laptop")
    page.get_by_role("button", name="Create key").click()
    secret = page.locator("#new-key").inner_text()
    headers = {"Authorization": f"Bearer {secret}"}
    assert page.request.get("/api/me", headers=headers).json()["login"] == "bob"
    desktop_visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy", exact=True).click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == secret

    page.goto("/account/")
    assert secret not in page.content()
    page.get_by_role("button", name="Revoke my laptop").click()
    page.get_by_role("heading", name="Revoke this key?").wait_for()
    assert page.request.get("/api/me", headers=headers).status == 200
    page.get_by_role("button", name="Revoke").click()
    page.get_by_text("was revoked").wait_for()

    page.wait_for_timeout(1100)  # other processes may cache the key for a second
    assert page.request.get("/api/me", headers=headers).status == 401
