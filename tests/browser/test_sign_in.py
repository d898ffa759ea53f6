"""Sign-in and sign-out through a real identity provider, with a real browser, over https."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.sso_setup import FRAGMENT_CLIENT, PUBLIC_CLIENT, SsoSetup, fill_connection
from tests.providers.real import CLIENT_SECRET
from tests.support.users import PASSWORD as LOCAL_PASSWORD

pytestmark = [pytest.mark.browser, pytest.mark.provider]


@pytest.mark.parametrize(
    ("realm", "columns"),
    [
        ("main", {}),
        ("main", PUBLIC_CLIENT),
        ("first", {}),
        ("plain", {"client_id": "servicebase-post", "scope": "openid email profile"}),
        ("main", FRAGMENT_CLIENT),
    ],
    ids=["realms with secret", "realms with PKCE", "realm with secret", "no realm, secret in the form", "fragment"],
)
def test_user_signs_in_through_the_provider(
    visitor_factory: Any, sso_setup: SsoSetup, realm: str, columns: dict[str, str]
):
    sso_setup.connect(realm, **columns)
    anna = visitor_factory().sign_in("anna")

    assert anna.page.url == f"{sso_setup.product.url}/"
    assert anna.page.get_by_role("heading", name="Hello, Anna").is_visible()
    cookies = {cookie["name"]: cookie for cookie in anna.context.cookies(sso_setup.product.url)}
    session = cookies["servicebase_session"]
    assert (session["secure"], session["httpOnly"], session["sameSite"]) == (True, True, "Lax")  # A59


def test_token_is_removed_from_the_fragment(visitor_factory: Any, sso_setup: SsoSetup):  # A60
    sso_setup.connect(**FRAGMENT_CLIENT)
    anna = visitor_factory().sign_in("anna")
    product_urls = [url for url in anna.requested_urls if url.startswith(sso_setup.product.url)]
    urls_with_token = [url for url in product_urls if "id_token" in url.partition("#")[0]]

    assert urls_with_token == [] and "#" not in anna.page.url
    anna.page.go_back(wait_until="load")
    assert "id_token" not in anna.page.url
    assert "id_token" not in sso_setup.product.output and "eyJ" not in sso_setup.product.output


def test_four_fields_are_enough_for_a_connection(visitor_factory: Any, sso_setup: SsoSetup):
    sso_setup.disconnect()
    alice = visitor_factory().sign_in_locally("alice", LOCAL_PASSWORD)
    page = alice.page
    page.goto("/admin/sso/oidcsetting/add/")
    fill_connection(page, "Company account", sso_setup)
    page.locator("#id_active").check()
    page.locator("#id_enable_user_creation").check()
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/change/**")
    page.get_by_role("button", name="Test connection").click()
    page.get_by_text("The connection works. No setting was changed.").wait_for()
    page.get_by_role("button", name="Update certificates").click()
    page.get_by_text("The certificates are up to date").wait_for()
    assert CLIENT_SECRET not in page.content()  # A56

    assert visitor_factory().sign_in("anna").check_greeting("Anna")
    page.goto("/admin/sso/signin/")
    assert page.locator("#result_list").get_by_text("anna").first.is_visible()


def test_test_connection_keeps_unsaved_input(visitor_factory: Any, sso_setup: SsoSetup):
    sso_setup.disconnect()
    page = visitor_factory().sign_in_locally("alice", LOCAL_PASSWORD).page
    page.goto("/admin/sso/oidcsetting/add/")
    fill_connection(page, "Tested first", sso_setup)
    page.locator("#id_client_id").fill("servicebas")
    page.get_by_role("button", name="Test connection").click()
    page.get_by_text("it does not accept this service").wait_for()
    page.locator("#id_client_id").fill("servicebase")
    page.get_by_role("button", name="Test connection").click()
    page.get_by_text("The connection works. No setting was changed.").wait_for()

    assert page.locator("#id_client_secret").input_value() == CLIENT_SECRET
    assert page.locator("#report").evaluate("element => element === document.activeElement")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/change/**")
    assert page.get_by_text("Enter the client secret again").count() == 0
    assert page.get_by_text("These values have not been tested.").count() == 0
    page.get_by_role("button", name="Test connection").click()
    page.get_by_text("The connection works. No setting was changed.").wait_for()
    page.locator("#id_scope").fill("openid email")
    page.get_by_role("button", name="Test connection").click()
    page.locator("[name=tested]").wait_for(state="attached")
    page.locator("#id_scope").fill("openid profile")
    expect(page.locator("[name=tested]")).to_have_count(0)


def test_test_connection_reports_invalid_fields(visitor_factory: Any, sso_setup: SsoSetup):
    page = visitor_factory().sign_in_locally("alice", LOCAL_PASSWORD).page
    page.goto("/admin/sso/oidcsetting/add/")
    fill_connection(page, "Impossible", sso_setup)
    page.locator("#id_realm").fill("../x")
    page.get_by_role("button", name="Test connection").click()

    page.get_by_text("A realm has 1 to 64 letters").wait_for()
    page.get_by_text("Enter the client secret again. It is never sent back to the browser.").wait_for()


def test_enter_saves_the_form(visitor_factory: Any, sso_setup: SsoSetup):
    sso_setup.disconnect()
    page = visitor_factory().sign_in_locally("alice", LOCAL_PASSWORD).page
    page.goto("/admin/sso/oidcsetting/add/")
    fill_connection(page, "By keyboard", sso_setup)
    page.keyboard.press("Enter")

    page.wait_for_url("**/change/**")
    assert page.locator("#id_name").input_value() == "By keyboard"


def test_administrator_approves_a_connection(visitor_factory: Any, sso_setup: SsoSetup):  # A57
    sso_setup.disconnect()
    sonja = visitor_factory().sign_in_locally("sonja", LOCAL_PASSWORD).page
    sonja.goto("/admin/sso/oidcsetting/add/")
    fill_connection(sonja, "To be approved", sso_setup)
    sonja.get_by_role("button", name="Save", exact=True).click()
    sonja.wait_for_url("**/change/**")
    alice = visitor_factory().sign_in_locally("alice", LOCAL_PASSWORD).page
    alice.goto(sonja.url)
    alice.get_by_role("button", name="Approve", exact=True).click()

    alice.get_by_text("was approved").wait_for()
    assert alice.get_by_role("button", name="Approve", exact=True).count() == 0


@pytest.mark.parametrize("has_overlap", [True, False], ids=["with overlap", "without overlap"])
def test_provider_rotates_its_keys(visitor_factory: Any, sso_setup: SsoSetup, has_overlap: bool):
    sso_setup.connect()
    visitor_factory().sign_in("anna")
    sso_setup.provider.rotate("main", overlap=has_overlap)

    assert visitor_factory().sign_in("anna").check_greeting("Anna")


def test_sign_out_of_the_product_also_signs_out_of_the_provider(visitor_factory: Any, sso_setup: SsoSetup):
    sso_setup.connect()
    anna = visitor_factory().sign_in("anna")
    page = anna.page
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{sso_setup.provider.url}/**")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{sso_setup.product.url}/login/?signed_out=1")
    assert page.get_by_text("You are signed out.").is_visible()
    assert not [url for url in anna.requested_urls if "id_token_hint" in url]

    page.goto("/")
    page.wait_for_url(f"{sso_setup.provider.url}/**")
    assert page.get_by_label("Password").is_visible()


def test_sign_out_of_the_provider_also_signs_out_of_the_product(visitor_factory: Any, sso_setup: SsoSetup):
    sso_setup.connect()
    anna, ben = visitor_factory().sign_in("anna"), visitor_factory().sign_in("ben")
    assert "servicebase" in sso_setup.provider.end_sessions("main", "anna")

    anna.page.goto("/account/")
    assert "/login/" in anna.page.url
    assert ben.check_greeting("ben")


def test_password_sign_in_works_while_the_provider_is_unreachable(visitor_factory: Any, sso_setup: SsoSetup):  # A61
    sso_setup.connect()
    alice = visitor_factory()
    sso_setup.provider.stop()
    try:
        response = alice.page.goto("/login/")
        assert response is not None and response.status == 200
        alice.sign_in_locally("alice", LOCAL_PASSWORD)
        assert alice.page.get_by_role("heading", name="Hello, alice").is_visible()
    finally:
        # Later tests use the same realm at the new port.
        sso_setup.provider.start()
        SsoSetup(sso_setup.product, sso_setup.provider, ("alice", LOCAL_PASSWORD))
