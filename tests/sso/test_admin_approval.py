"""The form of a connection: approval and adoption, and that nothing is approved unseen."""

import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from sso.models import OidcSetting
from sso.provider import discovery
from tests.providers.hostile import HostileProvider
from tests.sso.connections import address, make_at, press, said
from tests.sso.test_takeovers import change

pytestmark = pytest.mark.django_db


def seen(page: Any) -> str:
    """The version that a page says it shows."""
    (version,) = re.findall(r'name="seen_version" value="([0-9]*)"', page.content.decode())
    return str(version)


class TestApproval:  # A57
    def test_only_an_administrator_approves(self, as_sonja: Client, as_alice: Client):
        press(as_sonja, "_save", client_id="mine")
        setting = OidcSetting.objects.get()
        assert setting.needs_approval
        page = as_sonja.get(address(setting)).content.decode()
        assert "changed by a user without the role admin" in page and 'name="_approve"' not in page
        assert press(as_sonja, "_approve", setting).status_code == 403
        assert setting.refreshed().needs_approval
        assert 'name="_approve"' in as_alice.get(address(setting)).content.decode()
        again = press(as_alice, "_approve", setting, seen_version="99")
        assert "review it again" in said(again)
        # That page shows what was posted, so it must not approve what stands by now.
        assert 'name="seen_version" value="99"' in again.content.decode()
        unsaid = press(as_alice, "_test", setting).content.decode()
        assert 'name="seen_version" value=""' in unsaid, "an approved one became one to approve meanwhile"
        for button in ("_test", "_try"):
            output = press(as_alice, button, setting, seen_version="98").content.decode()
            assert 'name="seen_version" value="98"' in output, button
        assert setting.refreshed().needs_approval
        output = seen(as_alice.get(address(setting)))
        assert "was approved" in said(press(as_alice, "_approve", setting, seen_version=output))
        assert not setting.refreshed().needs_approval

    def test_a_save_by_an_administrator_does_not_approve(self, as_sonja: Client, as_alice: Client):
        press(as_sonja, "_save")
        setting = OidcSetting.objects.get()
        press(as_alice, "_save", setting)
        assert setting.refreshed().needs_approval


class TestAdopting:
    def test_moved_endpoints_are_adopted_only_by_an_administrator(self, as_alice: Client, provider: HostileProvider):
        from sso import tasks

        setting = make_at(provider, active=True, token_endpoint="https://old.example.com/token")
        tasks.refresh_daily()
        stored = setting.refreshed()
        assert (
            stored.token_endpoint == "https://old.example.com/token"
            and "token endpoint is now at" in stored.resolve_error
        )
        assert "Adopt discovered endpoints" in as_alice.get(address(setting)).content.decode()
        setting.update_unversioned(resolve_error="")
        assert "Adopt discovered endpoints" not in as_alice.get(address(setting)).content.decode()
        tested = press(as_alice, "_test", setting)
        assert tested.context["report"].may_adopt and 'name="_adopt"' in tested.content.decode()
        press(as_alice, "_adopt", setting)
        stored = setting.refreshed()
        assert (stored.token_endpoint, stored.resolve_error) == (provider.url("token"), "")


class TestApprovingWhatWasAdopted:  # A57
    @pytest.fixture
    def setting(self, provider: HostileProvider) -> OidcSetting:
        """It awaits an approval, and its provider has moved."""
        created = make_at(provider, active=True, token_endpoint="https://old.example.com/token")
        OidcSetting.objects.update(needs_approval=True)
        return created.refreshed()

    def test_the_page_after_adopting_can_approve(
        self, as_alice: Client, provider: HostileProvider, setting: OidcSetting
    ):
        opened = seen(as_alice.get(address(setting)))
        page = press(as_alice, "_adopt", setting, seen_version=opened)
        text = f"were adopted. Changed: token {provider.url('token')}."
        assert text in said(page) and seen(page) == str(setting.refreshed().sys_version) != opened
        assert "was approved" in said(press(as_alice, "_approve", setting, seen_version=seen(page)))
        assert not setting.refreshed().needs_approval

    def test_the_page_after_updating_certificates_can_approve(self, as_alice: Client, setting: OidcSetting):
        OidcSetting.objects.update(issuer="")
        page = press(as_alice, "_update_certificates", setting, seen_version=seen(as_alice.get(address(setting))))
        assert "are up to date" in said(page) and setting.refreshed().issuer
        assert "was approved" in said(press(as_alice, "_approve", setting, seen_version=seen(page)))

    @pytest.mark.parametrize("when", ["before", "meanwhile", "afterwards"])
    def test_a_change_by_another_user_is_not_approved_with_it(
        self, as_alice: Client, sonja: User, setting: OidcSetting, monkeypatch: Any, when: str
    ):
        opened = seen(as_alice.get(address(setting)))
        if when == "before":
            change(sonja, client_id="mine")
        if when == "meanwhile":
            while_it_is_looked_for(monkeypatch, lambda: change(sonja, client_id="mine"))
        page = press(as_alice, "_adopt", setting, seen_version=opened)
        assert "were adopted" in said(page)
        if when == "afterwards":
            change(sonja, client_id="mine")
        assert "review it again" in said(press(as_alice, "_approve", setting, seen_version=seen(page)))
        stored = setting.refreshed()
        assert stored.needs_approval and stored.client_id == "mine"

    def test_nothing_is_adopted_if_the_provider_was_changed(
        self, as_alice: Client, sonja: User, setting: OidcSetting, monkeypatch: Any
    ):
        while_it_is_looked_for(monkeypatch, lambda: change(sonja, realm="other"))
        page = press(as_alice, "_adopt", setting, seen_version=seen(as_alice.get(address(setting))))
        assert "Nothing was changed. The connection was deleted or changed to another provider" in said(page)
        assert not setting.refreshed().issuer

    def test_a_later_change_needs_another_review(self, as_alice: Client, sonja: User, setting: OidcSetting):
        page = press(as_alice, "_approve", setting, seen_version=seen(as_alice.get(address(setting))))
        assert "was approved" in said(page)
        change(sonja, client_id="mine")
        assert "review it again" in said(press(as_alice, "_approve", setting, seen_version=seen(page)))
        assert setting.refreshed().needs_approval


def while_it_is_looked_for(monkeypatch: Any, work: Any) -> None:
    resolve = discovery.discover

    def resolved(*positional: Any) -> Any:
        work()
        return resolve(*positional)

    monkeypatch.setattr(discovery, "discover", resolved)
