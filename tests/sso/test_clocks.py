"""Requests to a provider and sign-outs when a host's clock is wrong or the database's clock was set back."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from sso import tasks
from sso.connections import certificate_updates
from sso.models import CertificatePair, OidcSetting, ProviderSignOut
from tests.providers.hostile import HostileProvider
from tests.sso.connections import make_connection, make_connection_at
from tests.support.clocks import let_time_pass, set_database_clock_back, shifted_host_clock

pytestmark = pytest.mark.django_db
wrong_clocks = pytest.mark.parametrize("hours", [-1, 1], ids=["behind", "ahead"])


class TestUnknownKid:
    """ "An unknown kid fetches at most once per 30 s and pair across all processes." """

    @pytest.fixture
    def setting(self, provider: HostileProvider) -> OidcSetting:
        setting = make_connection_at(provider)
        certificate_updates.refresh_certificates(setting, trigger="form")
        provider.requests.clear()
        return setting

    @wrong_clocks
    def test_limit_does_not_depend_on_the_host_clock(self, provider: HostileProvider, setting: OidcSetting, hours: int):
        with shifted_host_clock(hours):
            assert certificate_updates.refresh_for_unknown_kid(setting)
        assert not certificate_updates.refresh_for_unknown_kid(setting)
        let_time_pass(CertificatePair.objects.all(), "asked_for_unknown_at", seconds=31)
        assert certificate_updates.refresh_for_unknown_kid(setting)
        assert len(provider.requests_to("certs")) == 2

    def test_key_is_fetched_after_the_clock_was_set_back(self, provider: HostileProvider, setting: OidcSetting):
        assert certificate_updates.refresh_for_unknown_kid(setting)
        set_database_clock_back(CertificatePair.objects.all(), "asked_for_unknown_at", "answered_at")
        assert certificate_updates.refresh_for_unknown_kid(setting)
        assert not certificate_updates.refresh_for_unknown_kid(setting)
        assert len(provider.requests_to("certs")) == 2


class TestUnresolvedProvider:
    @pytest.fixture
    def setting(self, db: Any) -> OidcSetting:
        setting = make_connection()
        OidcSetting.objects.update(issuer="", resolve_tried_at=None)
        return setting.refreshed()

    @wrong_clocks
    def test_provider_is_looked_up_once_in_30_s_regardless_of_the_host_clock(self, setting: OidcSetting, hours: int):
        with shifted_host_clock(hours):
            assert setting.reserve_discovery()
        assert not setting.reserve_discovery()
        let_time_pass(OidcSetting.objects.all(), "resolve_tried_at", seconds=31)
        assert setting.reserve_discovery()

    def test_provider_is_looked_up_after_the_clock_was_set_back(self, setting: OidcSetting):
        assert setting.reserve_discovery()
        set_database_clock_back(OidcSetting.objects.all(), "resolve_tried_at")
        assert [setting.reserve_discovery(), setting.reserve_discovery()] == [True, False]


@pytest.mark.parametrize("hours", [-2, 2], ids=["behind", "ahead"])
def test_sign_out_is_stored_for_an_hour_regardless_of_host_clocks(hours: int):
    """A logout token is accepted once, and ends sign-ins in progress."""
    claims = {"iss": "https://idp.example.com", "sub": "ann", "iat": timezone.now().timestamp(), "jti": "one"}
    with shifted_host_clock(hours):
        assert ProviderSignOut.record(claims)
        tasks.forget_ended_sessions()
    tasks.forget_ended_sessions()
    assert not ProviderSignOut.record(claims)
    ProviderSignOut.objects.update(came_at=timezone.now() - timedelta(minutes=61))
    tasks.forget_ended_sessions()
    assert ProviderSignOut.record(claims)
