"""A save discovers the provider after its transaction; sign-ins repeat a failed discovery at most once in 30 s."""

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
from tests.providers.behaviours import responds_with_error
from tests.providers.hostile import HostileProvider
from tests.sso.connections import VALID_COLUMNS, connection_path, make_connection, make_connection_at, press_button
from tests.sso.test_certificate_races import run_concurrently
from tests.tableapi.world import api, data_of


def save_new_connection(provider: HostileProvider, **columns: Any) -> OidcSetting:
    valid_columns = {**VALID_COLUMNS, "url_idp": provider.url_idp, "realm": provider.realm}
    setting = OidcSetting(**{**valid_columns, **columns})
    save_connection(setting)
    return setting


@pytest.mark.django_db(transaction=True)
class TestDiscoveryAtSave:
    def test_the_provider_is_looked_up_after_the_commit(self, provider: HostileProvider, monkeypatch: Any):
        transaction_flags: list[bool] = []
        original_discover = discovery.discover

        def record_and_discover(*arguments: Any) -> Any:
            transaction_flags.append(connection.in_atomic_block)
            return original_discover(*arguments)

        monkeypatch.setattr(discovery, "discover", record_and_discover)
        setting = save_new_connection(provider)
        stored_setting = setting.refreshed()
        assert transaction_flags == [False]
        assert (stored_setting.issuer, stored_setting.token_endpoint) == (provider.issuer, provider.url("token"))
        assert stored_setting.resolved_at and not stored_setting.resolve_error

    def test_a_save_by_the_table_api_looks_up_the_provider(self, provider: HostileProvider, sonja: User):
        (record,) = data_of(
            api(sonja).post("oidc_setting", {**VALID_COLUMNS, "url_idp": provider.url_idp, "realm": "main"})
        )
        (stored_record,) = data_of(api(sonja).get(f"oidc_setting/{record['sys_id']}"))
        assert stored_record["issuer"] == provider.issuer

    def test_an_unresolved_connection_is_saved_with_the_reason(self, provider: HostileProvider):
        provider.discovery = {"issuer": "https://other.example.com"}
        stored_setting = save_new_connection(provider, active=True).refreshed()
        assert stored_setting.active and stored_setting.endpoints is None
        assert stored_setting.resolve_error.startswith("The provider's issuer is https://other.example.com. If it is")

    def test_a_save_that_keeps_the_pair_makes_no_request(self, provider: HostileProvider):
        setting = save_new_connection(provider)
        provider.requests.clear()
        setting = setting.refreshed()
        setting.name = "Renamed"
        save_connection(setting)
        assert provider.requests == []

    def test_a_new_pair_is_looked_up(self, provider: HostileProvider):
        setting = make_connection()
        setting.url_idp, setting.realm = provider.url_idp, provider.realm
        save_connection(setting)
        assert setting.refreshed().issuer == provider.issuer

    def test_an_unresolved_connection_is_looked_up_at_each_save(self, provider: HostileProvider):
        provider.serve("discovery", responds_with_error(404))
        setting = save_new_connection(provider)
        provider.behave_correctly("discovery")
        save_connection(setting.refreshed())
        assert setting.refreshed().issuer == provider.issuer

    def test_a_failed_save_makes_no_request(self, provider: HostileProvider):
        with pytest.raises(Exception, match="realm"):
            save_new_connection(provider, realm="no realm")
        assert provider.requests == []

    def test_saving_the_model_runs_no_script_sends_no_request_and_requires_no_approval(
        self, provider: HostileProvider, sonja: User, monkeypatch: Any
    ):
        monkeypatch.setattr(mapping_script, "check_script", lambda source: 1 / 0)
        setting = OidcSetting(
            **{**VALID_COLUMNS, "url_idp": provider.url_idp, "script": "function map() { return {} }"}
        )
        with acting_user.acting_as(sonja.pk):
            setting.save()
        assert provider.requests == [] and not setting.refreshed().needs_approval

    def test_concurrent_sign_ins_make_one_request(self, provider: HostileProvider):
        provider.serve("discovery", responds_with_error(404), times=1)
        setting = save_new_connection(provider)
        OidcSetting.objects.update(resolve_tried_at=None)
        provider.requests.clear()
        outcomes = run_concurrently(lambda: discovery_outcome(OidcSetting.objects.get(pk=setting.pk)), 6)
        assert len(provider.requests_to("discovery")) == 1
        assert True in outcomes and set(outcomes) <= {True, "provider_unresolved"}


def discovery_outcome(setting: OidcSetting) -> Any:
    try:
        return discovery.ensure_endpoints(setting).issuer == setting.issuer
    except SignInRefused as refusal:
        return refusal.code


@pytest.mark.django_db
class TestDiscoveryAtSignIn:
    def test_known_endpoints_are_used(self, provider: HostileProvider):
        assert discovery_outcome(make_connection_at(provider)) is True
        assert provider.requests == []

    def test_an_unresolved_provider_is_looked_up_once_in_30_s(self, provider: HostileProvider):
        provider.serve("discovery", responds_with_error(404))
        setting = save_new_connection(provider)
        assert [discovery_outcome(setting.refreshed()) for _ in range(3)] == ["provider_unresolved"] * 3
        assert len(provider.requests_to("discovery")) == 1
        for seconds_ago, expected_outcome in ((29, "provider_unresolved"), (31, True)):
            provider.behave_correctly("discovery")
            OidcSetting.objects.update(resolve_tried_at=timezone.now() - timedelta(seconds=seconds_ago))
            assert discovery_outcome(setting.refreshed()) == expected_outcome
        assert discovery.ensure_endpoints(setting.refreshed()).issuer == provider.issuer

    def test_the_refusal_contains_the_reason_for_the_log(self, provider: HostileProvider):
        provider.discovery = {"issuer": "https://other.example.com"}
        with pytest.raises(SignInRefused) as exc_info:
            discovery.ensure_endpoints(save_new_connection(provider))
        assert (exc_info.value.code, exc_info.value.status) == ("provider_unresolved", 503)
        assert "issuer is https://other.example.com" in exc_info.value.detail


@pytest.mark.django_db
class TestRediscovery:
    def test_a_harmless_change_is_applied_automatically(self, provider: HostileProvider):
        setting = make_connection_at(provider)
        provider.algorithms = ["ES256"]
        provider.discovery = {"token_endpoint": f"{provider.issuer}/elsewhere"}
        assert discovery.rediscover(setting) == ""
        stored_setting = setting.refreshed()
        assert (stored_setting.algorithms, stored_setting.token_endpoint) == (["ES256"], f"{provider.issuer}/elsewhere")

    @pytest.mark.parametrize("name", ["token_endpoint", "jwks_uri", "userinfo_endpoint"])
    def test_another_host_is_never_applied_automatically(self, provider: HostileProvider, name: str):
        setting = make_connection_at(provider)
        provider.discovery = {name: "https://mine.example.com/x"}
        assert "is now at mine.example.com" in discovery.rediscover(setting)
        stored_setting = setting.refreshed()
        assert (
            getattr(stored_setting, name).startswith(provider.issuer)
            and "mine.example.com" in stored_setting.resolve_error
        )
        assert discovery.rediscover(setting, accepts_risky_change=True) == ""
        stored_setting = setting.refreshed()
        assert getattr(stored_setting, name) == "https://mine.example.com/x" and not stored_setting.resolve_error

    def test_another_issuer_is_never_applied_automatically(self, provider: HostileProvider):
        setting = make_connection_at(provider, issuer="http://127.0.0.1/before")
        assert "issuer is" in discovery.rediscover(setting)
        assert setting.refreshed().issuer == "http://127.0.0.1/before"

    def test_an_unavailable_provider_keeps_the_known_endpoints(self, provider: HostileProvider):
        setting = make_connection_at(provider)
        endpoints_before = setting.endpoints
        provider.serve("discovery", responds_with_error(500))
        assert discovery.rediscover(setting)
        assert setting.refreshed().endpoints == endpoints_before is not None and setting.refreshed().resolve_error
        provider.behave_correctly("discovery")
        discovery.rediscover(setting)
        assert not setting.refreshed().resolve_error


@pytest.mark.django_db
class TestTestConnection:
    def test_connection_test_stores_harmless_changes_but_no_settings(self, as_sonja: Client, provider: HostileProvider):
        setting = make_connection_at(provider, resolve_error="was away")
        version_before = setting.sys_version
        provider.algorithms = ["ES256"]
        report = press_button(as_sonja, "_test", setting, name="Typed", scope="openid more").context["report"]
        assert "endpoints were updated" in " ".join(report.notes)
        stored_setting = setting.refreshed()
        assert (stored_setting.algorithms, stored_setting.resolve_error) == (["ES256"], "")
        assert (stored_setting.name, stored_setting.scope, stored_setting.sys_version) == (
            "Example",
            "openid",
            version_before + 1,
        )
        second_report = press_button(as_sonja, "_test", stored_setting).context["report"]
        assert "endpoints were updated" not in " ".join(second_report.notes)
        assert setting.refreshed().sys_version == version_before + 1

    def test_connection_test_stores_the_endpoints_of_an_unresolved_provider(
        self, as_sonja: Client, provider: HostileProvider
    ):
        provider.serve("discovery", responds_with_error(404))
        setting = save_new_connection(provider)
        provider.behave_correctly("discovery")
        assert setting.refreshed().endpoints is None
        press_button(as_sonja, "_test", setting)
        assert setting.refreshed().issuer == provider.issuer

    @pytest.mark.parametrize("name", ["issuer", "token_endpoint"])
    def test_connection_test_does_not_store_moved_endpoints(
        self, as_sonja: Client, provider: HostileProvider, name: str
    ):
        setting = make_connection_at(provider, **{name: "https://old.example.com/x"})
        report = press_button(as_sonja, "_test", setting).context["report"]
        assert report.may_adopt and getattr(setting.refreshed(), name) == "https://old.example.com/x"

    def test_connection_test_stores_nothing_of_an_unsaved_provider(self, as_sonja: Client, provider: HostileProvider):
        setting = make_connection()
        endpoints_before = setting.endpoints
        press_button(as_sonja, "_test", setting, url_idp=provider.url_idp, realm=provider.realm)
        assert setting.refreshed().endpoints == endpoints_before

    @pytest.mark.parametrize("is_changed_by_another_user", [False, True])
    def test_the_page_after_a_test_approves_what_it_shows(  # A57
        self, as_alice: Client, provider: HostileProvider, is_changed_by_another_user: bool
    ):
        setting = make_connection_at(provider)
        OidcSetting.objects.update(needs_approval=True)
        version = as_alice.get(connection_path(setting)).context["seen_version"]
        if is_changed_by_another_user:
            changed_setting = setting.refreshed()
            changed_setting.client_id = "mine"
            save_connection(changed_setting)
        provider.algorithms = ["ES256"]
        page = press_button(as_alice, "_test", setting, seen_version=version)
        assert setting.refreshed().algorithms == ["ES256"]
        press_button(as_alice, "_approve", setting, seen_version=page.context["seen_version"])
        assert setting.refreshed().needs_approval is is_changed_by_another_user
