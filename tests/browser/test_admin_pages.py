"""Each administrator opens every page of the administration that their role allows."""

import pytest

from tests.browser.visitor import Visitor, has_many_roles
from tests.config.stack import Stack

pytestmark = pytest.mark.browser

SIGN_ON = {
    "/admin/sso/oidcsetting/",
    "/admin/sso/idpcertificate/",
    "/admin/sso/identitylink/",
    "/admin/sso/signin/",
}
COLLECTIONS = {"/admin/collections_app/collection/", "/admin/collections_app/document/"}
EXPECTED = {
    "alice": {
        *SIGN_ON,
        *COLLECTIONS,
        "/admin/accounts/user/",
        "/admin/accounts/role/",
        "/admin/accounts/group/",
        "/admin/accounts/company/",
        "/admin/accounts/accesskey/",
        "/admin/tableapi/table/",
        "/admin/tableapi/column/",
        "/admin/tableapi/view/",
        "/admin/tableapi/rule/",
        "/admin/tableapi/deferredrecord/",
        "/admin/system/property/",
        "/admin/system/deletionlogentry/",
        "/admin/django_celery_beat/periodictask/",
    },
    "sonja": SIGN_ON,
    "carl": COLLECTIONS,
}


def sidebar(visitor: Visitor) -> list[str]:
    hrefs = visitor.page.eval_on_selector_all("a[href^='/admin/']", "links => links.map(link => link.pathname)")
    return sorted({href for href in hrefs if href.count("/") == 4})


def records(visitor: Visitor) -> list[str]:
    """The first record of the list; the table's head has links too."""
    hrefs = visitor.page.eval_on_selector_all("#result_list a", "links => links.map(link => link.pathname)")
    return [href for href in hrefs if href.endswith("/change/")][:1]


def can_add(visitor: Visitor, path: str) -> bool:
    return visitor.page.locator(f"a[href^='{path}add/']").count() > 0


@pytest.mark.parametrize("login", EXPECTED)
def test_every_page_of_a_role_opens_without_errors(visitor: Visitor, login: str):
    visitor.sign_in(login)
    assert visitor.open("/admin/") == 200
    pages = sidebar(visitor)
    assert EXPECTED[login] <= set(pages)
    if login != "alice":
        assert set(pages) == EXPECTED[login]
    opened = 0
    for path in pages:
        assert visitor.open(path) == 200, path
        assert visitor.overflow() <= 0, path
        further = [path + "add/"] if can_add(visitor, path) else []
        for record in records(visitor):
            further += [record, record.replace("/change/", "/history/")]
        for each in further:
            assert visitor.open(each) == 200, each
            assert visitor.overflow() <= 0, each
            opened += "/change/" in each
    assert opened >= (5 if login == "alice" else 0)


def test_user_without_a_role_gets_an_explanation(visitor: Visitor):
    visitor.sign_in("bob")

    assert visitor.open("/admin/") == 403
    assert "None of your roles gives access to the administration site" in visitor.page.content()


def test_page_asks_to_sign_in_and_returns(at_desk: Visitor):
    at_desk.page.goto("/admin/accounts/role/")
    at_desk.page.get_by_label("Login").fill("alice")
    at_desk.page.get_by_label("Password").fill("correct horse 42")
    at_desk.page.keyboard.press("Enter")

    at_desk.page.wait_for_url("**/admin/accounts/role/")


def test_administrator_creates_a_user_with_a_role(at_desk: Visitor):
    at_desk.sign_in("alice")
    page = at_desk.page
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
    """By keyboard alone."""
    has_many_roles(product)
    visitor.sign_in("alice")
    page = visitor.page
    page.goto("/admin/accounts/role/add/")
    page.locator("#id_description").focus()
    page.keyboard.press("Tab")
    for typed in ("TEAM 149", "www"):
        page.keyboard.type(typed)
        page.locator(".select2-results__option--highlighted").wait_for()
        page.keyboard.press("Enter")

    chosen = page.locator("#id_contains").evaluate("field => [...field.selectedOptions].map(each => each.text)")
    assert chosen == ["team 149", "w" * 100]
    assert visitor.overflow() <= 0
    page.goto("/admin/tableapi/rule/add/")
    assert visitor.overflow() <= 0


def test_new_key_is_shown_once(at_desk: Visitor):
    at_desk.sign_in("alice")
    page = at_desk.page
    page.goto("/admin/accounts/accesskey/add/")
    page.locator(".field-user .select2-selection").click()
    page.locator(".select2-dropdown .select2-search__field").fill("bob")
    page.locator(".select2-results__option", has_text="bob").click()
    page.get_by_label("Name").fill("for a script")
    page.get_by_role("button", name="Save", exact=True).click()
    secret = page.locator("#new-key").inner_text()

    assert secret.startswith("sb_")
    at_desk.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy", exact=True).click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == secret
    page.goto("/admin/accounts/accesskey/")
    assert secret not in page.content()
    answer = page.request.get("/api/me", headers={"Authorization": f"Bearer {secret}"})
    assert answer.json()["login"] == "bob"
