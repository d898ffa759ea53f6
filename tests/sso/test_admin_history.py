"""The history of a connection has one entry per save, which describes the change."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from sso.connections import saving
from sso.models import OidcSetting
from sso.provider import discovery
from system import encryption
from tests.providers.behaviours import responds_with_error
from tests.providers.hostile import HostileProvider
from tests.sso.connections import connection_path, make_connection, make_connection_at, press_button

pytestmark = pytest.mark.django_db(transaction=True)


def history_entries(browser: Client, setting: OidcSetting) -> list[Any]:
    """The entries of the history page, newest first."""
    return list(browser.get(connection_path(setting, "history")).context["page_obj"])


def new_values(entry: Any) -> dict[str, str]:
    return {change["field"]: change["new"] for change in entry.changes}


def test_a_new_connection_has_one_entry_with_its_endpoints(as_sonja: Client, sonja: User, provider: HostileProvider):
    press_button(as_sonja, "_save", None, url_idp=provider.url_idp, realm=provider.realm)
    setting = OidcSetting.objects.get()
    (entry,) = history_entries(as_sonja, setting)

    assert setting.issuer == entry.issuer == provider.issuer
    assert (entry.history_type, entry.history_user_id) == ("+", sonja.pk)


def test_a_change_of_the_provider_has_one_entry_with_its_endpoints(as_sonja: Client, provider: HostileProvider):
    setting = make_connection()
    press_button(as_sonja, "_save", setting, url_idp=provider.url_idp, realm=provider.realm)
    change_entry, _ = history_entries(as_sonja, setting)

    assert (
        new_values(change_entry)["Provider URL"] == provider.url_idp
        and new_values(change_entry)["Issuer"] == provider.issuer
    )


def test_endpoints_found_later_have_their_own_entry(as_sonja: Client, provider: HostileProvider):
    provider.serve("discovery", responds_with_error(404))
    press_button(as_sonja, "_save", None, url_idp=provider.url_idp, realm="main")
    provider.behave_correctly("discovery")
    setting = OidcSetting.objects.get()
    discovery.rediscover(setting)
    discovery_entry, created_entry = history_entries(as_sonja, setting)

    assert created_entry.issuer == "" and new_values(discovery_entry)["Issuer"] == provider.issuer
    assert discovery_entry.history_user_id is None, "no user made the change"


def test_endpoints_are_not_attributed_to_a_concurrent_save(provider: HostileProvider):
    provider.serve("discovery", responds_with_error(404))
    setting = make_connection_at(provider, issuer="")
    provider.behave_correctly("discovery")
    OidcSetting.objects.get().store_columns(name="Renamed")
    saving.find_provider(setting, amends_last_entry=True)

    assert [entry.issuer for entry in setting.history.order_by("history_id")] == ["", "", provider.issuer]


def test_a_save_without_changes_has_no_entry(as_sonja: Client):
    setting = make_connection()
    press_button(as_sonja, "_save", setting)

    assert len(history_entries(as_sonja, setting)) == 1


def test_a_save_that_finds_the_provider_has_an_entry(as_sonja: Client, provider: HostileProvider):
    provider.serve("discovery", responds_with_error(404))
    setting = make_connection_at(provider, issuer="")
    provider.behave_correctly("discovery")
    press_button(as_sonja, "_save", setting)
    discovery_entry, created_entry = history_entries(as_sonja, setting)

    assert created_entry.issuer == "" and new_values(discovery_entry)["Issuer"] == provider.issuer


def test_a_change_of_the_secret_is_recorded_without_the_secret(as_sonja: Client):
    setting = make_connection()
    press_button(as_sonja, "_save", setting, client_secret="canary-1")
    press_button(as_sonja, "_save", setting.refreshed(), name="Renamed")
    press_button(as_sonja, "_save", setting.refreshed(), client_secret="", forget_secret=True)
    reasons = [entry.history_change_reason for entry in history_entries(as_sonja, setting)]

    assert reasons == ["The client secret was removed.", None, "The client secret was entered.", None]
    page = as_sonja.get(connection_path(setting, "history")).content.decode()
    assert "The client secret was entered." in page and "canary" not in page


def test_a_later_entry_does_not_mention_the_secret_again():
    setting = make_connection()
    setting.client_secret = encryption.encrypt("canary")
    setting.save()
    setting.store_columns(active=True)

    reasons = setting.history.order_by("history_id").values_list("history_change_reason", flat=True)
    assert list(reasons) == [None, "The client secret was entered.", None]


def test_an_approval_has_an_entry(as_sonja: Client, as_alice: Client):
    press_button(as_sonja, "_save")
    setting = OidcSetting.objects.get()
    press_button(as_alice, "_approve", setting, seen_version=str(setting.sys_version))

    assert new_values(history_entries(as_alice, setting)[0]) == {"Needs approval": "no"}
