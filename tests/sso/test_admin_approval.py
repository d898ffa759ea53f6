"""The form of a connection: approval of reviewed values, and adoption of moved endpoints."""

import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from sso.models import OidcSetting
from sso.provider import discovery
from tests.providers.hostile import HostileProvider
from tests.sso.connections import connection_path, make_connection_at, messages_of, press_button
from tests.sso.test_takeovers import change_setting

pytestmark = pytest.mark.django_db


def seen_version(page: Any) -> str:
    """The version in the form of a page."""
    (version,) = re.findall(r'name="seen_version" value="([0-9]*)"', page.content.decode())
    return str(version)


class TestApproval:  # A57
    def test_only_an_administrator_approves(self, as_sonja: Client, as_alice: Client):
        press_button(as_sonja, "_save", client_id="mine")
        setting = OidcSetting.objects.get()
        assert setting.needs_approval
        page = as_sonja.get(connection_path(setting)).content.decode()
        assert "changed by a user without the role admin" in page and 'name="_approve"' not in page
        assert press_button(as_sonja, "_approve", setting).status_code == 403
        assert setting.refreshed().needs_approval
        assert 'name="_approve"' in as_alice.get(connection_path(setting)).content.decode()
        second_page = press_button(as_alice, "_approve", setting, seen_version="99")
        assert "review it again" in messages_of(second_page)
        # That page shows the submitted values, so it must not approve the stored ones.
        assert 'name="seen_version" value="99"' in second_page.content.decode()
        page_text = press_button(as_alice, "_test", setting).content.decode()
        assert 'name="seen_version" value=""' in page_text, "a form without a version must not get the stored one"
        for button in ("_test", "_try"):
            page_text = press_button(as_alice, button, setting, seen_version="98").content.decode()
            assert 'name="seen_version" value="98"' in page_text, button
        assert setting.refreshed().needs_approval
        version = seen_version(as_alice.get(connection_path(setting)))
        assert "was approved" in messages_of(press_button(as_alice, "_approve", setting, seen_version=version))
        assert not setting.refreshed().needs_approval

    def test_a_save_by_an_administrator_does_not_approve(self, as_sonja: Client, as_alice: Client):
        press_button(as_sonja, "_save")
        setting = OidcSetting.objects.get()
        press_button(as_alice, "_save", setting)
        assert setting.refreshed().needs_approval


class TestAdoption:
    def test_moved_endpoints_are_adopted_only_by_an_administrator(self, as_alice: Client, provider: HostileProvider):
        from sso import tasks

        setting = make_connection_at(provider, active=True, token_endpoint="https://old.example.com/token")
        tasks.refresh_daily()
        stored_setting = setting.refreshed()
        assert (
            stored_setting.token_endpoint == "https://old.example.com/token"
            and "token endpoint is now at" in stored_setting.resolve_error
        )
        assert "Adopt discovered endpoints" in as_alice.get(connection_path(setting)).content.decode()
        setting.update_unversioned(resolve_error="")
        assert "Adopt discovered endpoints" not in as_alice.get(connection_path(setting)).content.decode()
        page = press_button(as_alice, "_test", setting)
        assert page.context["report"].may_adopt and 'name="_adopt"' in page.content.decode()
        press_button(as_alice, "_adopt", setting)
        stored_setting = setting.refreshed()
        assert (stored_setting.token_endpoint, stored_setting.resolve_error) == (provider.url("token"), "")


class TestApprovalAfterAdoption:  # A57
    @pytest.fixture
    def setting(self, provider: HostileProvider) -> OidcSetting:
        """A connection that awaits approval, and whose provider has moved."""
        setting = make_connection_at(provider, active=True, token_endpoint="https://old.example.com/token")
        OidcSetting.objects.update(needs_approval=True)
        return setting.refreshed()

    def test_the_page_after_adopting_can_approve(
        self, as_alice: Client, provider: HostileProvider, setting: OidcSetting
    ):
        version = seen_version(as_alice.get(connection_path(setting)))
        page = press_button(as_alice, "_adopt", setting, seen_version=version)
        message = f"were adopted. Changed: token {provider.url('token')}."
        assert message in messages_of(page) and seen_version(page) == str(setting.refreshed().sys_version) != version
        assert "was approved" in messages_of(
            press_button(as_alice, "_approve", setting, seen_version=seen_version(page))
        )
        assert not setting.refreshed().needs_approval

    def test_the_page_after_updating_certificates_can_approve(self, as_alice: Client, setting: OidcSetting):
        OidcSetting.objects.update(issuer="")
        page = press_button(
            as_alice, "_update_certificates", setting, seen_version=seen_version(as_alice.get(connection_path(setting)))
        )
        assert "are up to date" in messages_of(page) and setting.refreshed().issuer
        assert "was approved" in messages_of(
            press_button(as_alice, "_approve", setting, seen_version=seen_version(page))
        )

    @pytest.mark.parametrize("change_time", ["before", "during", "after"])
    def test_a_change_by_another_user_is_not_approved(
        self, as_alice: Client, sonja: User, setting: OidcSetting, monkeypatch: Any, change_time: str
    ):
        version = seen_version(as_alice.get(connection_path(setting)))
        if change_time == "before":
            change_setting(sonja, client_id="mine")
        if change_time == "during":
            change_during_discovery(monkeypatch, lambda: change_setting(sonja, client_id="mine"))
        page = press_button(as_alice, "_adopt", setting, seen_version=version)
        assert "were adopted" in messages_of(page)
        if change_time == "after":
            change_setting(sonja, client_id="mine")
        assert "review it again" in messages_of(
            press_button(as_alice, "_approve", setting, seen_version=seen_version(page))
        )
        stored_setting = setting.refreshed()
        assert stored_setting.needs_approval and stored_setting.client_id == "mine"

    def test_nothing_is_adopted_if_the_provider_was_changed(
        self, as_alice: Client, sonja: User, setting: OidcSetting, monkeypatch: Any
    ):
        change_during_discovery(monkeypatch, lambda: change_setting(sonja, realm="other"))
        page = press_button(
            as_alice, "_adopt", setting, seen_version=seen_version(as_alice.get(connection_path(setting)))
        )
        assert "Nothing was changed. The connection was deleted or changed to another provider" in messages_of(page)
        assert not setting.refreshed().issuer

    def test_a_later_change_needs_another_review(self, as_alice: Client, sonja: User, setting: OidcSetting):
        page = press_button(
            as_alice, "_approve", setting, seen_version=seen_version(as_alice.get(connection_path(setting)))
        )
        assert "was approved" in messages_of(page)
        change_setting(sonja, client_id="mine")
        assert "review it again" in messages_of(
            press_button(as_alice, "_approve", setting, seen_version=seen_version(page))
        )
        assert setting.refreshed().needs_approval


def change_during_discovery(monkeypatch: Any, change: Any) -> None:
    original_discover = discovery.discover

    def discover_after_change(*arguments: Any) -> Any:
        change()
        return original_discover(*arguments)

    monkeypatch.setattr(discovery, "discover", discover_after_change)
