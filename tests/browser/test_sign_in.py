"""Sign-in and sign-out through a real identity provider, with a real browser, over https."""

from typing import Any

import pytest

from tests.browser.identity_provider import FRAGMENT, PUBLIC, Pairing, fill_connection
from tests.providers.real import CLIENT_SECRET
from tests.support.users import PASSWORD as LOCAL_PASSWORD

pytestmark = [pytest.mark.browser, pytest.mark.provider]


@pytest.mark.parametrize(
    ("realm", "columns"),
    [
        ("main", {}),
        ("main", PUBLIC),
        ("first", {}),
        ("plain", {"client_id": "servicebase-post", "scope": "openid email profile"}),
        ("main", FRAGMENT),
    ],
    ids=["realms with secret", "realms with PKCE", "realm with secret", "no realm, secret in the form", "fragment"],
)
def test_user_signs_in_through_the_provider(travel: Any, pairing: Pairing, realm: str, columns: dict[str, str]):
    pairing.connect(realm, **columns)
    anna = travel().sign_in("anna")

    assert anna.page.url == f"{pairing.product.url}/"
    assert anna.page.get_by_role("heading", name="Hello, Anna").is_visible()
    cookies = {cookie["name"]: cookie for cookie in anna.context.cookies(pairing.product.url)}
    session = cookies["servicebase_session"]
    assert (session["secure"], session["httpOnly"], session["sameSite"]) == (True, True, "Lax")  # A59


def test_token_in_the_fragment_is_not_left_behind(travel: Any, pairing: Pairing):  # A60
    pairing.connect(**FRAGMENT)
    anna = travel().sign_in("anna")
    own = [address for address in anna.addresses if address.startswith(pairing.product.url)]
    went = [address for address in own if "id_token" in address.partition("#")[0]]

    assert went == [] and "#" not in anna.page.url
    anna.page.go_back(wait_until="load")
    assert "id_token" not in anna.page.url
    assert "id_token" not in pairing.product.output and "eyJ" not in pairing.product.output


def test_four_fields_are_enough_for_a_connection(travel: Any, pairing: Pairing):
    pairing.disconnect()
    alice = travel().sign_in_locally("alice", LOCAL_PASSWORD)
    page = alice.page
    page.goto("/admin/sso/oidcsetting/add/")
    fill_connection(page, "Company account", pairing)
    page.locator("#id_active").check()
    page.locator("#id_enable_user_creation").check()
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/change/**")
    page.get_by_role("button", name="Test connection").click()
    page.get_by_text("The connection works. No setting was changed.").wait_for()
    page.get_by_role("button", name="Update certificates").click()
    page.get_by_text("The certificates are up to date").wait_for()
    assert CLIENT_SECRET not in page.content()  # A56

    assert travel().sign_in("anna").greets("Anna")
    page.goto("/admin/sso/signin/")
    assert page.locator("#result_list").get_by_text("anna").first.is_visible()


def test_test_connection_keeps_unsaved_input(travel: Any, pairing: Pairing):
    pairing.disconnect()
    page = travel().sign_in_locally("alice", LOCAL_PASSWORD).page
    page.goto("/admin/sso/oidcsetting/add/")
    fill_connection(page, "Tested first", pairing)
    page.locator("#id_client_id").fill("servicebas")
    page.get_by_role("button", name="Test connection").click()
    page.get_by_text("it does not accept this service").wait_for()
    page.locator("#id_client_id").fill("servicebase")
    page.get_by_role("button", name="Test connection").click()
    page.get_by_text("The connection works. No setting was changed.").wait_for()

    assert page.locator("#id_client_secret").input_value() == CLIENT_SECRET
    assert page.locator("#report").evaluate("box => box === document.activeElement")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/change/**")
    assert page.get_by_text("Enter the client secret again").count() == 0
    page.get_by_role("button", name="Test connection").click()
    page.get_by_text("The connection works. No setting was changed.").wait_for()


def test_test_connection_reports_invalid_fields(travel: Any, pairing: Pairing):
    page = travel().sign_in_locally("alice", LOCAL_PASSWORD).page
    page.goto("/admin/sso/oidcsetting/add/")
    fill_connection(page, "Impossible", pairing)
    page.locator("#id_realm").fill("../x")
    page.get_by_role("button", name="Test connection").click()

    page.get_by_text("A realm has 1 to 64 letters").wait_for()
    page.get_by_text("Enter the client secret again. It is never sent back to the browser.").wait_for()


def test_enter_saves_the_form(travel: Any, pairing: Pairing):
    pairing.disconnect()
    page = travel().sign_in_locally("alice", LOCAL_PASSWORD).page
    page.goto("/admin/sso/oidcsetting/add/")
    fill_connection(page, "By keyboard", pairing)
    page.keyboard.press("Enter")

    page.wait_for_url("**/change/**")
    assert page.locator("#id_name").input_value() == "By keyboard"


def test_administrator_approves_a_connection(travel: Any, pairing: Pairing):  # A57
    pairing.disconnect()
    sonja = travel().sign_in_locally("sonja", LOCAL_PASSWORD).page
    sonja.goto("/admin/sso/oidcsetting/add/")
    fill_connection(sonja, "To be approved", pairing)
    sonja.get_by_role("button", name="Save", exact=True).click()
    sonja.wait_for_url("**/change/**")
    alice = travel().sign_in_locally("alice", LOCAL_PASSWORD).page
    alice.goto(sonja.url)
    alice.get_by_role("button", name="Approve", exact=True).click()

    alice.get_by_text("was approved").wait_for()
    assert alice.get_by_role("button", name="Approve", exact=True).count() == 0


@pytest.mark.parametrize("overlap", [True, False], ids=["with overlap", "without overlap"])
def test_provider_rotates_its_keys(travel: Any, pairing: Pairing, overlap: bool):
    pairing.connect()
    travel().sign_in("anna")
    pairing.provider.rotate("main", overlap=overlap)

    assert travel().sign_in("anna").greets("Anna")


def test_sign_out_here_also_signs_out_at_the_provider(travel: Any, pairing: Pairing):
    pairing.connect()
    anna = travel().sign_in("anna")
    page = anna.page
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{pairing.provider.url}/**")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{pairing.product.url}/login/?signed_out=1")
    assert page.get_by_text("You are signed out.").is_visible()
    assert not [address for address in anna.addresses if "id_token_hint" in address]

    page.goto("/")
    page.wait_for_url(f"{pairing.provider.url}/**")
    assert page.get_by_label("Password").is_visible()


def test_sign_out_at_the_provider_also_signs_out_here(travel: Any, pairing: Pairing):
    pairing.connect()
    anna, ben = travel().sign_in("anna"), travel().sign_in("ben")
    assert "servicebase" in pairing.provider.end_sessions("main", "anna")

    anna.page.goto("/account/")
    assert "/login/" in anna.page.url
    assert ben.greets("ben")


def test_unreachable_provider_is_reported_and_passwords_work(travel: Any, pairing: Pairing):  # A61
    pairing.connect()
    alice = travel()
    pairing.provider.stop()
    try:
        answer = alice.page.goto("/login/")
        assert answer is not None and answer.status == 200
        alice.sign_in_locally("alice", LOCAL_PASSWORD)
        assert alice.page.get_by_role("heading", name="Hello, alice").is_visible()
    finally:
        # The same realm at another port: what later tests connect to.
        pairing.provider.start()
        Pairing(pairing.product, pairing.provider, ("alice", LOCAL_PASSWORD))
