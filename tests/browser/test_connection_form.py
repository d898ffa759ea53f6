"""The form of a connection in a browser: focus, buttons on a phone, and the page after Test connection."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visitor import Visitor
from tests.config.stack import Stack, manage
from tests.providers.hostile import HostileProvider

pytestmark = pytest.mark.browser

ADD = "/admin/sso/oidcsetting/add/"


NONE = "from sso.models import OidcSetting; [each.delete() for each in OidcSetting.objects.all()]"


@pytest.fixture(autouse=True)
def no_connection_stays(product: Stack) -> Iterator[None]:
    """An active one would lead everybody else to a provider that is gone."""
    yield
    cleared = manage("shell", "-c", NONE, env=product.env)
    assert cleared.returncode == 0, cleared.stderr


@pytest.fixture
def provider() -> Iterator[HostileProvider]:
    with HostileProvider() as provider:
        provider.client_secret = ""
        yield provider


def fill(page: Page, provider: HostileProvider, **columns: str) -> None:
    right = {"name": "Company", "url_idp": provider.url_idp, "realm": provider.realm, "client_id": provider.client_id}
    for name, value in {**right, **columns}.items():
        page.locator(f"#id_{name}").fill(value)
    page.locator("#id_authorization_type").select_option("pkce")


def save(page: Page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()


def test_first_field_or_first_invalid_field_has_the_focus(visitor: Visitor, provider: HostileProvider):
    visitor.sign_in("sonja").open(ADD)
    expect(visitor.page.locator("#id_name")).to_be_focused()
    fill(visitor.page, provider, realm="no realm", scope="email")
    save(visitor.page)

    expect(visitor.page.locator("#id_realm")).to_be_focused()
    expect(visitor.page.locator("#id_realm")).to_be_in_viewport(ratio=1)


def test_all_buttons_are_reachable_without_scrolling(visitor: Visitor, provider: HostileProvider):
    page = visitor.sign_in("alice").page
    visitor.open(ADD)
    fill(page, provider, client_secret="typed")
    page.locator("label[for=id_active], #id_active").last.check(force=True)
    save(page)
    page.wait_for_url("**/change/")
    buttons = page.locator("#submit-row").locator("button, a")

    assert {"Save", "Test connection", "Update certificates", "Delete"} <= set(buttons.all_inner_texts())
    for button in buttons.all():
        expect(button).to_be_in_viewport(ratio=1)
    assert visitor.overflow() <= 0


def test_page_shows_stored_certificates_after_a_test(at_desk: Visitor, provider: HostileProvider):
    page = at_desk.sign_in("sonja").page
    page.goto(ADD)
    fill(page, provider)
    save(page)
    page.wait_for_url("**/change/")
    endpoint = page.locator(".readonly").nth(2)
    expect(endpoint).to_have_text(provider.url("token"))
    moved = f"{provider.url_idp}/elsewhere"
    provider.discovery = {"token_endpoint": moved}
    page.locator("#id_name").fill("Typed")
    page.get_by_role("button", name="Test connection").click()

    expect(page.locator("#report")).to_be_focused()
    expect(endpoint).to_have_text(moved)
    expect(page.locator("#stored-certificates")).to_contain_text("after the connection is activated")
    assert page.locator("#id_name").input_value() == "Typed"
