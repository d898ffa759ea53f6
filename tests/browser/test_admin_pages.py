"""Each administrator sees the pages of the administration that their role allows, and can open them."""

import pytest

from tests.browser.visitor import Visitor, create_many_roles
from tests.config.stack import Stack

pytestmark = pytest.mark.browser

SSO_PAGES = {
    "/admin/sso/oidcsetting/",
    "/admin/sso/idpcertificate/",
    "/admin/sso/identitylink/",
    "/admin/sso/signin/",
}
COLLECTION_PAGES = {
    "/admin/collections_app/collection/",
    "/admin/collections_app/document/",
    "/admin/collections_app/source/",
}
EXPECTED_PAGES = {
    "alice": {
        *SSO_PAGES,
        *COLLECTION_PAGES,
        "/admin/accounts/user/",
        "/admin/accounts/role/",
        "/admin/accounts/group/",
        "/admin/accounts/company/",
        "/admin/accounts/accesskey/",
        "/admin/tableapi/column/",
        "/admin/tableapi/view/",
        "/admin/tableapi/rule/",
        "/admin/tableapi/deferredrecord/",
        "/admin/system/property/",
        "/admin/system/deletionlogentry/",
        "/admin/django_celery_beat/periodictask/",
    },
    "sonja": SSO_PAGES,
    "carl": COLLECTION_PAGES,
}


def sidebar_paths(visitor: Visitor) -> list[str]:
    hrefs = visitor.page.eval_on_selector_all("a[href^='/admin/']", "links => links.map(link => link.pathname)")
    return sorted({href for href in hrefs if href.count("/") == 4})


def first_record_paths(visitor: Visitor) -> list[str]:
    """The path of the first record of a list, or no path. The table header has links too."""
    hrefs = visitor.page.eval_on_selector_all("#result_list a", "links => links.map(link => link.pathname)")
    return [href for href in hrefs if href.endswith("/change/")][:1]


def has_add_link(visitor: Visitor, path: str) -> bool:
    return visitor.page.locator(f"a[href^='{path}add/']").count() > 0


@pytest.mark.parametrize("login", EXPECTED_PAGES)
def test_every_page_of_a_role_opens_without_errors(visitor: Visitor, login: str):
    visitor.sign_in(login)
    assert visitor.open("/admin/") == 200
    paths = sidebar_paths(visitor)
    assert EXPECTED_PAGES[login] <= set(paths)
    if login == "alice":
        return  # `test_every_page.py` opens the pages
    assert set(paths) == EXPECTED_PAGES[login]
    for path in paths:
        assert visitor.open(path) == 200, path
        assert visitor.overflow_px() <= 0, path
        subpaths = [path + "add/"] if has_add_link(visitor, path) else []
        for record_path in first_record_paths(visitor):
            subpaths += [record_path, record_path.replace("/change/", "/history/")]
        for subpath in subpaths:
            assert visitor.open(subpath) == 200, subpath
            assert visitor.overflow_px() <= 0, subpath


def test_user_without_a_role_gets_an_explanation(visitor: Visitor):
    visitor.sign_in("bob")

    assert visitor.open("/admin/") == 403
    assert "None of your roles gives access to the administration site" in visitor.page.content()


def test_page_redirects_to_sign_in_and_back(desktop_visitor: Visitor):
    desktop_visitor.page.goto("/admin/accounts/role/")
    desktop_visitor.page.get_by_label("Login").fill("alice")
    desktop_visitor.page.get_by_label("Password").fill("correct horse 42")
    desktop_visitor.page.keyboard.press("Enter")

    desktop_visitor.page.wait_for_url("**/admin/accounts/role/")


def test_key_of_the_theme_does_not_change_the_stored_colors(desktop_visitor: Visitor):
    page = desktop_visitor.sign_in("alice").page
    desktop_visitor.open("/admin/")
    colors = page.evaluate("document.documentElement.className")
    page.keyboard.press("Control+e")

    assert page.evaluate("Alpine.nextTick().then(() => document.documentElement.className)") == colors


def test_administrator_creates_a_user_with_a_role(desktop_visitor: Visitor):
    desktop_visitor.sign_in("alice")
    page = desktop_visitor.page
    page.goto("/admin/accounts/user/add/")
    page.get_by_label("Login").fill("dora")
    page.locator("#id_password1").fill("a long password")
    page.locator("#id_password2").fill("a long password")
    page.get_by_text("Save and continue editing").click()
    page.wait_for_url("**/change/")
    page.get_by_text("Add another Role", exact=True).click()
    page.locator("#id_grants-0-role").select_option(label="itil")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/admin/accounts/user/")

    page.goto("/admin/accounts/user/?q=dora")
    assert page.locator("#result_list").get_by_text("dora").count() == 1


def test_roles_can_be_filtered_and_long_names_fit(visitor: Visitor, product: Stack):
    """Uses only the keyboard."""
    create_many_roles(product)
    visitor.sign_in("alice")
    page = visitor.page
    page.goto("/admin/accounts/role/add/")
    page.locator("#id_description").focus()
    page.keyboard.press("Tab")
    for search_text in ("TEAM 149", "www"):
        page.keyboard.type(search_text)
        page.locator(".select2-results__option--highlighted").wait_for()
        page.keyboard.press("Enter")

    read_selected_roles = "field => [...field.selectedOptions].map(option => option.text)"
    selected_roles = page.locator("#id_contains").evaluate(read_selected_roles)
    assert selected_roles == ["team 149", "w" * 100]
    assert visitor.overflow_px() <= 0


def test_new_key_is_shown_once(desktop_visitor: Visitor):
    desktop_visitor.sign_in("alice")
    page = desktop_visitor.page
    page.goto("/admin/accounts/accesskey/add/")
    page.locator(".field-user .select2-selection").click()
    page.locator(".select2-dropdown .select2-search__field").fill("bob")
    page.locator(".select2-results__option", has_text="bob").click()
    page.get_by_label("Name").fill("for a script")
    page.get_by_role("button", name="Save", exact=True).click()
    secret = page.locator("#new-key").inner_text()

    assert secret.startswith("sb_")
    desktop_visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy", exact=True).click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == secret
    page.goto("/admin/accounts/accesskey/")
    assert secret not in page.content()
    response = page.request.get("/api/me", headers={"Authorization": f"Bearer {secret}"})
    assert response.json()["login"] == "bob"
