"""Unusual ways through sign-in: returning without a response, waiting for a slot, copying the Redirect URI."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.identity_provider import FRAGMENT, Pairing, Traveller, fill_connection
from tests.config.stack import eventually, manage
from tests.providers.hostile import HostileProvider
from tests.support.users import PASSWORD

pytestmark = [pytest.mark.browser, pytest.mark.provider]

NOT_FOUND_YET = "from sso.models import OidcSetting; OidcSetting.objects.update(issuer='', resolve_tried_at=None)"


def test_empty_fragment_restarts_the_sign_in_without_a_loop(travel: Any, pairing: Pairing):
    """As somebody who left the provider's page and opens the service anew: an attempt is still open."""
    pairing.connect(**FRAGMENT)
    anna = travel()
    bridged = f"{pairing.product.url}/sso/start/?again"
    for times in range(3):
        anna.page.goto("/", wait_until="commit")
        anna.page.wait_for_url(f"{pairing.provider.url}/**")
        assert anna.addresses.count(bridged) == times, "the first time nothing is open yet"
    anna.page.goto("/", wait_until="commit")
    anna.page.wait_for_url(f"{pairing.product.url}/login/")

    assert anna.addresses.count(bridged) == 3
    anna.page.get_by_role("link", name="Company account").click()
    anna.page.wait_for_url(f"{pairing.provider.url}/**")


def about_to_test(alice: Traveller, pairing: Pairing, provider: HostileProvider) -> Page:
    """A form with this provider typed into it."""
    page = alice.sign_in_locally("alice", PASSWORD).page
    page.goto("/admin/sso/oidcsetting/add/")
    fill_connection(page, "Does not answer", pairing)
    page.locator("#id_url_idp").fill(provider.url_idp)
    return page


def test_sign_in_without_a_free_slot_waits_and_continues(travel: Any, pairing: Pairing):
    """Two tests of a provider that does not answer take both places of the only web process."""
    pairing.connect()
    forgotten = manage("shell", "-c", NOT_FOUND_YET, env=pairing.product.env)
    assert forgotten.returncode == 0, forgotten.stderr
    anna = travel()
    with HostileProvider() as silent:
        go = silent.hold("discovery")
        forms = [about_to_test(travel(), pairing, silent) for _ in range(2)]
        try:
            for form in forms:
                form.get_by_role("button", name="Test connection").click()
            eventually(lambda: len(silent.requests_to("discovery")) == 2)
            answer = anna.page.goto("/sso/start/")
            assert answer is not None and answer.status == 503
            expect(anna.page.get_by_role("status")).to_contain_text("This page refreshes automatically.")
        finally:
            go.set()
        anna.page.wait_for_url(f"{pairing.provider.url}/**")
        for form in forms:
            form.locator("#report").wait_for()

    anna.page.get_by_label("Login").wait_for()


def test_redirect_uri_can_be_copied(travel: Any, pairing: Pairing):
    alice = travel().sign_in_locally("alice", PASSWORD)
    alice.context.grant_permissions(["clipboard-read", "clipboard-write"])
    alice.page.goto("/admin/sso/oidcsetting/add/")
    alice.page.get_by_role("button", name="Copy", exact=True).click()

    expect(alice.page.get_by_role("button", name="Copied")).to_be_visible()
    copied = "() => navigator.clipboard.readText()"
    eventually(lambda: alice.page.evaluate(copied) == f"{pairing.product.url}/sso/callback/")
