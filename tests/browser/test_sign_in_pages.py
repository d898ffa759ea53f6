"""Sign-in pages: a return without a response, waiting for a slot, and copying the Redirect URI."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.sso_setup import FRAGMENT_CLIENT, SsoSetup, SsoVisitor, fill_connection
from tests.config.stack import eventually, manage
from tests.providers.hostile import HostileProvider
from tests.support.users import PASSWORD

pytestmark = [pytest.mark.browser, pytest.mark.provider]

FORGET_DISCOVERY = "from sso.models import OidcSetting; OidcSetting.objects.update(issuer='', resolve_tried_at=None)"


def test_empty_fragment_restarts_the_sign_in_at_most_three_times(visitor_factory: Any, sso_setup: SsoSetup):
    """The user leaves the provider's page and opens the service again while an attempt is pending."""
    sso_setup.connect(**FRAGMENT_CLIENT)
    anna = visitor_factory()
    restart_url = f"{sso_setup.product.url}/sso/start/?again"
    for count in range(3):
        anna.page.goto("/", wait_until="commit")
        anna.page.wait_for_url(f"{sso_setup.provider.url}/**")
        assert anna.requested_urls.count(restart_url) == count, "no attempt is open the first time"
    anna.page.goto("/", wait_until="commit")
    anna.page.wait_for_url(f"{sso_setup.product.url}/login/")

    assert anna.requested_urls.count(restart_url) == 3
    anna.page.get_by_role("link", name="Company account").click()
    anna.page.wait_for_url(f"{sso_setup.provider.url}/**")


def open_filled_form(alice: SsoVisitor, sso_setup: SsoSetup, provider: HostileProvider) -> Page:
    """Opens the form of a new connection and fills in this provider."""
    page = alice.sign_in_locally("alice", PASSWORD).page
    page.goto("/admin/sso/oidcsetting/add/")
    fill_connection(page, "Does not answer", sso_setup)
    page.locator("#id_url_idp").fill(provider.url_idp)
    return page


def test_sign_in_waits_for_a_free_slot_and_continues(visitor_factory: Any, sso_setup: SsoSetup):
    """Two connection tests of a provider that does not respond occupy both slots of the only web process."""
    sso_setup.connect()
    completed = manage("shell", "-c", FORGET_DISCOVERY, env=sso_setup.product.env)
    assert completed.returncode == 0, completed.stderr
    anna = visitor_factory()
    with HostileProvider() as provider:
        release_discovery = provider.hold("discovery")
        forms = [open_filled_form(visitor_factory(), sso_setup, provider) for _ in range(2)]
        try:
            for form in forms:
                form.get_by_role("button", name="Test connection").click()
            eventually(lambda: len(provider.requests_to("discovery")) == 2)
            response = anna.page.goto("/sso/start/")
            assert response is not None and response.status == 503
            expect(anna.page.get_by_role("status")).to_contain_text("This page refreshes automatically.")
        finally:
            release_discovery.set()
        anna.page.wait_for_url(f"{sso_setup.provider.url}/**")
        for form in forms:
            form.locator("#report").wait_for()

    anna.page.get_by_label("Login").wait_for()


def test_redirect_uri_can_be_copied(visitor_factory: Any, sso_setup: SsoSetup):
    alice = visitor_factory().sign_in_locally("alice", PASSWORD)
    alice.context.grant_permissions(["clipboard-read", "clipboard-write"])
    alice.page.goto("/admin/sso/oidcsetting/add/")
    field = alice.page.get_by_label("Redirect URI")
    button = alice.page.get_by_role("button", name="Copy the URL")
    assert field.locator("xpath=following-sibling::*[1]").get_attribute("data-copies") == "id_redirect_uri"
    description = "The callback URL of this service. Register exactly this URL at the provider."
    expect(field).to_have_accessible_description(description)
    button.click()

    expect(alice.page.get_by_role("button", name="Copied")).to_be_visible()
    read_clipboard = "() => navigator.clipboard.readText()"
    eventually(lambda: alice.page.evaluate(read_clipboard) == f"{sso_setup.product.url}/sso/callback/")
