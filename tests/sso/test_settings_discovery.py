"""Saving a connection discovers its provider after the transaction; a sign-in repeats that once in 30 s."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.models import User
from sso.connections.saving import save_connection
from sso.models import OidcSetting
from sso.provider import discovery
from sso.refusals import SignInRefused
from sso.scripts import mapping_script
from system.records import acting_user
from tests.providers.behaviours import fails
from tests.providers.hostile import HostileProvider
from tests.sso.connections import RIGHT, address, make, make_at, press
from tests.sso.test_certificate_races import together
from tests.tableapi.world import api, data


def unfound(provider: HostileProvider, **columns: Any) -> OidcSetting:
    right = {**RIGHT, "url_idp": provider.url_idp, "realm": provider.realm}
    setting = OidcSetting(**{**right, **columns})
    save_connection(setting)
    return setting


@pytest.mark.django_db(transaction=True)
class TestAtTheSave:
    def test_the_provider_is_looked_up_after_the_commit(self, provider: HostileProvider, monkeypatch: Any):
        is_inside: list[bool] = []
        resolve = discovery.discover

        def noting(*words: Any) -> Any:
            is_inside.append(connection.in_atomic_block)
            return resolve(*words)

        monkeypatch.setattr(discovery, "discover", noting)
        setting = unfound(provider)
        stored = setting.refreshed()
        assert is_inside == [False]
        assert (stored.issuer, stored.token_endpoint) == (provider.issuer, provider.url("token"))
        assert stored.resolved_at and not stored.resolve_error

    def test_the_table_api_looks_it_up_too(self, provider: HostileProvider, sonja: User):
        (record,) = data(api(sonja).post("oidc_setting", {**RIGHT, "url_idp": provider.url_idp, "realm": "main"}))
        (read,) = data(api(sonja).get(f"oidc_setting/{record['sys_id']}"))
        assert read["issuer"] == provider.issuer

    def test_an_unresolved_connection_is_saved_with_the_reason(self, provider: HostileProvider):
        provider.discovery = {"issuer": "https://other.example.com"}
        stored = unfound(provider, active=True).refreshed()
        assert stored.active and stored.endpoints is None
        assert stored.resolve_error.startswith("The provider's issuer is https://other.example.com. If it is")

    def test_a_save_that_keeps_the_pair_makes_no_request(self, provider: HostileProvider):
        setting = unfound(provider)
        provider.requests.clear()
        setting = setting.refreshed()
        setting.name = "Renamed"
        save_connection(setting)
        assert provider.requests == []

    def test_a_new_pair_is_looked_up(self, provider: HostileProvider):
        setting = make()
        setting.url_idp, setting.realm = provider.url_idp, provider.realm
        save_connection(setting)
        assert setting.refreshed().issuer == provider.issuer

    def test_an_unresolved_connection_is_looked_up_at_each_save(self, provider: HostileProvider):
        provider.serve("discovery", fails(404))
        setting = unfound(provider)
        provider.behave("discovery")
        save_connection(setting.refreshed())
        assert setting.refreshed().issuer == provider.issuer

    def test_a_failed_save_makes_no_request(self, provider: HostileProvider):
        with pytest.raises(Exception, match="realm"):
            unfound(provider, realm="no realm")
        assert provider.requests == []

    def test_the_model_runs_no_script_makes_no_request_and_marks_nothing(
        self, provider: HostileProvider, sonja: User, monkeypatch: Any
    ):
        monkeypatch.setattr(mapping_script, "check_script", lambda source: 1 / 0)
        setting = OidcSetting(**{**RIGHT, "url_idp": provider.url_idp, "script": "function map() { return {} }"})
        with acting_user.acting_as(sonja.pk):
            setting.save()
        assert provider.requests == [] and not setting.refreshed().needs_approval

    def test_concurrent_sign_ins_make_one_request(self, provider: HostileProvider):
        provider.serve("discovery", fails(404), times=1)
        setting = unfound(provider)
        OidcSetting.objects.update(resolve_tried_at=None)
        provider.requests.clear()
        result = together(lambda: known(OidcSetting.objects.get(pk=setting.pk)), 6)
        assert len(provider.asked("discovery")) == 1
        assert True in result and set(result) <= {True, "provider_unresolved"}


def known(setting: OidcSetting) -> Any:
    try:
        return discovery.ensure_endpoints(setting).issuer == setting.issuer
    except SignInRefused as refusal:
        return refusal.code


@pytest.mark.django_db
class TestAtASignIn:
    def test_known_endpoints_are_used(self, provider: HostileProvider):
        assert known(make_at(provider)) is True
        assert provider.requests == []

    def test_an_unresolved_provider_is_looked_up_once_in_30_s(self, provider: HostileProvider):
        provider.serve("discovery", fails(404))
        setting = unfound(provider)
        assert [known(setting.refreshed()) for _ in range(3)] == ["provider_unresolved"] * 3
        assert len(provider.asked("discovery")) == 1
        for ago, expected in ((29, "provider_unresolved"), (31, True)):
            provider.behave("discovery")
            OidcSetting.objects.update(resolve_tried_at=timezone.now() - timedelta(seconds=ago))
            assert known(setting.refreshed()) == expected
        assert discovery.ensure_endpoints(setting.refreshed()).issuer == provider.issuer

    def test_the_refusal_carries_the_reason_for_the_log(self, provider: HostileProvider):
        provider.discovery = {"issuer": "https://other.example.com"}
        with pytest.raises(SignInRefused) as exc_info:
            discovery.ensure_endpoints(unfound(provider))
        assert (exc_info.value.code, exc_info.value.status) == ("provider_unresolved", 503)
        assert "issuer is https://other.example.com" in exc_info.value.detail


@pytest.mark.django_db
class TestLookingAgain:
    def test_a_harmless_change_applies_by_itself(self, provider: HostileProvider):
        setting = make_at(provider)
        provider.algorithms = ["ES256"]
        provider.discovery = {"token_endpoint": f"{provider.issuer}/elsewhere"}
        assert discovery.rediscover(setting) == ""
        stored = setting.refreshed()
        assert (stored.algorithms, stored.token_endpoint) == (["ES256"], f"{provider.issuer}/elsewhere")

    @pytest.mark.parametrize("name", ["token_endpoint", "jwks_uri", "userinfo_endpoint"])
    def test_another_host_never_applies_by_itself(self, provider: HostileProvider, name: str):
        setting = make_at(provider)
        provider.discovery = {name: "https://mine.example.com/x"}
        assert "is now at mine.example.com" in discovery.rediscover(setting)
        stored = setting.refreshed()
        assert getattr(stored, name).startswith(provider.issuer) and "mine.example.com" in stored.resolve_error
        assert discovery.rediscover(setting, accepts_risky_change=True) == ""
        stored = setting.refreshed()
        assert getattr(stored, name) == "https://mine.example.com/x" and not stored.resolve_error

    def test_another_issuer_never_applies_by_itself(self, provider: HostileProvider):
        setting = make_at(provider, issuer="http://127.0.0.1/before")
        assert "issuer is" in discovery.rediscover(setting)
        assert setting.refreshed().issuer == "http://127.0.0.1/before"

    def test_an_unavailable_provider_keeps_the_known_endpoints(self, provider: HostileProvider):
        setting = make_at(provider)
        existing = setting.endpoints
        provider.serve("discovery", fails(500))
        assert discovery.rediscover(setting)
        assert setting.refreshed().endpoints == existing is not None and setting.refreshed().resolve_error
        provider.behave("discovery")
        discovery.rediscover(setting)
        assert not setting.refreshed().resolve_error


@pytest.mark.django_db
class TestByTestConnection:
    def test_a_test_stores_harmless_changes_but_no_settings(self, as_sonja: Client, provider: HostileProvider):
        setting = make_at(provider, resolve_error="was away")
        before = setting.sys_version
        provider.algorithms = ["ES256"]
        report = press(as_sonja, "_test", setting, name="Typed", scope="openid more").context["report"]
        assert "endpoints were updated" in " ".join(report.notes)
        stored = setting.refreshed()
        assert (stored.algorithms, stored.resolve_error) == (["ES256"], "")
        assert (stored.name, stored.scope, stored.sys_version) == ("Example", "openid", before + 1)
        again = press(as_sonja, "_test", stored).context["report"]
        assert "endpoints were updated" not in " ".join(again.notes)
        assert setting.refreshed().sys_version == before + 1

    def test_a_test_stores_the_endpoints_of_an_unresolved_provider(self, as_sonja: Client, provider: HostileProvider):
        provider.serve("discovery", fails(404))
        setting = unfound(provider)
        provider.behave("discovery")
        assert setting.refreshed().endpoints is None
        press(as_sonja, "_test", setting)
        assert setting.refreshed().issuer == provider.issuer

    @pytest.mark.parametrize("name", ["issuer", "token_endpoint"])
    def test_a_test_does_not_store_moved_endpoints(self, as_sonja: Client, provider: HostileProvider, name: str):
        setting = make_at(provider, **{name: "https://old.example.com/x"})
        report = press(as_sonja, "_test", setting).context["report"]
        assert report.may_adopt and getattr(setting.refreshed(), name) == "https://old.example.com/x"

    def test_a_test_stores_nothing_of_an_unsaved_provider(self, as_sonja: Client, provider: HostileProvider):
        setting = make()
        existing = setting.endpoints
        press(as_sonja, "_test", setting, url_idp=provider.url_idp, realm=provider.realm)
        assert setting.refreshed().endpoints == existing

    @pytest.mark.parametrize("is_changed_before", [False, True])
    def test_the_page_after_a_test_approves_what_it_shows(  # A57
        self, as_alice: Client, provider: HostileProvider, is_changed_before: bool
    ):
        setting = make_at(provider)
        OidcSetting.objects.update(needs_approval=True)
        opened = as_alice.get(address(setting)).context["seen_version"]
        if is_changed_before:
            other = setting.refreshed()
            other.client_id = "mine"
            save_connection(other)
        provider.algorithms = ["ES256"]
        page = press(as_alice, "_test", setting, seen_version=opened)
        assert setting.refreshed().algorithms == ["ES256"]
        press(as_alice, "_approve", setting, seen_version=page.context["seen_version"])
        assert setting.refreshed().needs_approval is is_changed_before
