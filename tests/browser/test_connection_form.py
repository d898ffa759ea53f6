"""The form of a connection in a browser: focus, buttons on a phone, and the page after Test connection."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visitor import Visitor
from tests.config.stack import Stack, manage
from tests.providers.hostile import HostileProvider

pytestmark = pytest.mark.browser

ADD_PATH = "/admin/sso/oidcsetting/add/"
DELETE_CONNECTIONS = "from sso.models import OidcSetting; [setting.delete() for setting in OidcSetting.objects.all()]"


@pytest.fixture(autouse=True)
def connection_cleanup(product: Stack) -> Iterator[None]:
    """Deletes connections after each test. An active one would redirect later sign-ins to a stopped provider."""
    yield
    completed = manage("shell", "-c", DELETE_CONNECTIONS, env=product.env)
    assert completed.returncode == 0, completed.stderr


@pytest.fixture
def provider() -> Iterator[HostileProvider]:
    with HostileProvider() as provider:
        provider.client_secret = ""
        yield provider


def fill_form(page: Page, provider: HostileProvider, **columns: str) -> None:
    valid_values = {
        "name": "Company",
        "url_idp": provider.url_idp,
        "realm": provider.realm,
        "client_id": provider.client_id,
    }
    for name, value in {**valid_values, **columns}.items():
        page.locator(f"#id_{name}").fill(value)
    page.locator("#id_authorization_type").select_option("pkce")


def save_form(page: Page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()


def test_first_field_or_first_invalid_field_is_focused(visitor: Visitor, provider: HostileProvider):
    visitor.sign_in("sonja").open(ADD_PATH)
    expect(visitor.page.locator("#id_name")).to_be_focused()
    fill_form(visitor.page, provider, realm="no realm", scope="email")
    save_form(visitor.page)

    expect(visitor.page.locator("#id_realm")).to_be_focused()
    for part in ("label[for=id_realm]", "#id_realm", "#id_realm_error"):
        expect(visitor.page.locator(part)).to_be_in_viewport(ratio=1)


def test_all_buttons_are_reachable_without_scrolling(visitor: Visitor, provider: HostileProvider):
    page = visitor.sign_in("alice").page
    visitor.open(ADD_PATH)
    fill_form(page, provider, client_secret="typed")
    page.locator("label[for=id_active], #id_active").last.check(force=True)
    save_form(page)
    page.wait_for_url("**/change/")
    buttons = page.locator("#submit-row").locator("button, a")

    assert {"Save", "Test connection", "Update certificates", "Delete"} <= set(buttons.all_inner_texts())
    for button in buttons.all():
        expect(button).to_be_in_viewport(ratio=1)
    assert visitor.overflow_px() <= 0


def test_page_shows_stored_certificates_after_a_test(desktop_visitor: Visitor, provider: HostileProvider):
    page = desktop_visitor.sign_in("sonja").page
    page.goto(ADD_PATH)
    fill_form(page, provider)
    save_form(page)
    page.wait_for_url("**/change/")
    endpoint = page.locator(".readonly").nth(2)
    expect(endpoint).to_have_text(provider.url("token"))
    new_endpoint = f"{provider.url_idp}/elsewhere"
    provider.discovery = {"token_endpoint": new_endpoint}
    page.locator("#id_name").fill("Typed")
    page.get_by_role("button", name="Test connection").click()

    expect(page.locator("#report")).to_be_focused()
    expect(endpoint).to_have_text(new_endpoint)
    expect(page.locator("#stored-certificates")).to_contain_text("after the connection is activated")
    assert page.locator("#id_name").input_value() == "Typed"
