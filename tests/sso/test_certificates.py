"""The certificate update: the specified algorithm, invalid responses, and the 30-second limit for unknown keys."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from sso import tasks
from sso.connections import certificate_updates
from sso.connections.certificate_updates import CertificateUpdateFailed, UpdateOutcome
from sso.models import CertificatePair, IdpCertificate, OidcSetting
from sso.tokens import key_sets
from system.models import DeletionLogEntry
from tests.providers.behaviours import (
    hangs_up,
    redirects_to,
    responds_with,
    responds_with_error,
    responds_with_gzip_bomb,
    responds_with_html,
    responds_with_huge_body,
    sends_byte_by_byte,
    sends_endless_chunks,
)
from tests.providers.hostile import HostileProvider
from tests.providers.signing import ABSENT, jwk
from tests.sso.connections import make_connection, make_connection_at

pytestmark = pytest.mark.django_db


@pytest.fixture
def setting(provider: HostileProvider, db: Any) -> OidcSetting:
    return make_connection_at(provider, active=True)


def update_certificates(provider: HostileProvider, setting: OidcSetting, *keys: Any) -> UpdateOutcome:
    if keys:
        provider.jwks = {"keys": [jwk(key) if isinstance(key, str) else key for key in keys]}
    return certificate_updates.refresh_certificates(setting, trigger=certificate_updates.TRIGGER_FORM)


def stored_kids(setting: OidcSetting) -> list[str]:
    return [certificate.kid for certificate in IdpCertificate.of_pair(*setting.pair)]


def logged_deletions() -> list[tuple[str, str]]:
    return sorted(DeletionLogEntry.objects.values_list("table", "display_value"))


def pair_of(setting: OidcSetting) -> CertificatePair:
    return CertificatePair.objects.get(url_idp=setting.url_idp, realm=setting.realm)


class TestUpdate:  # A34
    def test_new_keys_are_added_known_keys_kept_and_absent_keys_removed(
        self, provider: HostileProvider, setting: OidcSetting
    ):
        assert update_certificates(provider, setting, "rsa-1", "rsa-2") == UpdateOutcome(2, 0, 0)
        row_before = IdpCertificate.objects.values().get(kid="rsa-2")
        assert update_certificates(provider, setting, "rsa-2", "p256-1", "ed-1") == UpdateOutcome(2, 1, 1)
        assert stored_kids(setting) == ["ed-1", "p256-1", "rsa-2"]
        assert IdpCertificate.objects.values().get(kid="rsa-2") == row_before
        assert logged_deletions() == [("idp_certificate", "rsa-1")]
        payload = DeletionLogEntry.objects.get().payload
        assert (payload["url_idp"], payload["realm"]) == setting.pair

    def test_keys_are_stored_as_published(self, provider: HostileProvider, setting: OidcSetting):
        key = jwk("rsa-1", x5c=["MII"], alg="RS256")
        update_certificates(provider, setting, key)
        assert IdpCertificate.objects.get().json == key

    def test_a_second_update_changes_nothing(self, provider: HostileProvider, setting: OidcSetting):
        update_certificates(provider, setting, "rsa-1")
        rows_before = list(IdpCertificate.objects.values())
        assert update_certificates(provider, setting) == UpdateOutcome(0, 1, 0)
        assert list(IdpCertificate.objects.values()) == rows_before and logged_deletions() == []

    def test_a_key_changed_under_its_kid_is_kept_with_a_warning(self, provider: HostileProvider, setting: OidcSetting):
        update_certificates(provider, setting, "rsa-1")
        rows_before = list(IdpCertificate.objects.values())
        outcome = update_certificates(provider, setting, jwk("rsa-2", kid="rsa-1"), "p256-1")
        assert (outcome.added, outcome.unchanged, outcome.removed) == (1, 1, 0)
        assert "different keys with key IDs that are already stored: “rsa-1”." in str(outcome)
        assert [row for row in IdpCertificate.objects.values() if row["kid"] == "rsa-1"] == rows_before
        assert "rsa-1" in pair_of(setting).warning
        update_certificates(provider, setting, "rsa-1", "p256-1")
        assert pair_of(setting).warning == "", "the warning disappears with its cause"

    def test_a_renewed_certificate_of_the_same_key_is_not_a_change(
        self, provider: HostileProvider, setting: OidcSetting
    ):
        update_certificates(provider, setting, jwk("rsa-1", x5c=["old"]))
        assert update_certificates(provider, setting, jwk("rsa-1", x5c=["new"])).warning == ""

    def test_an_unusable_key_does_not_count_as_absent(self, provider: HostileProvider, setting: OidcSetting):
        update_certificates(provider, setting, "rsa-1")
        outcome = update_certificates(provider, setting, jwk("rsa-1", use="enc"), "p256-1")
        assert (outcome.removed, stored_kids(setting)) == (0, ["p256-1", "rsa-1"]) and outcome.warning

    def test_a_key_without_kid_is_stored_under_its_thumbprint(self, provider: HostileProvider, setting: OidcSetting):
        update_certificates(provider, setting, jwk("rsa-1", kid=ABSENT))
        assert update_certificates(provider, setting) == UpdateOutcome(0, 1, 0)
        (key,) = certificate_updates.signing_keys(setting)
        assert key["kid"] == stored_kids(setting)[0] and len(key["kid"]) == 43

    def test_other_pairs_are_not_changed(self, provider: HostileProvider, setting: OidcSetting):
        other_setting = make_connection(realm="other")
        IdpCertificate.objects.create(
            kid="rsa-1", url_idp=other_setting.url_idp, realm=other_setting.realm, json=jwk("rsa-1")
        )
        update_certificates(provider, setting, "rsa-2")
        assert (stored_kids(other_setting), stored_kids(setting)) == (["rsa-1"], ["rsa-2"])

    def test_a_late_response_does_not_overwrite_a_newer_one(self, provider: HostileProvider, setting: OidcSetting):
        """A response from before a change of keys is applied after the new keys are stored."""
        update_certificates(provider, setting, "rsa-1")
        old_keys = key_sets.parse_key_set({"keys": [jwk("rsa-1")]})
        request_number = certificate_updates._next_request_number(*setting.pair)
        update_certificates(provider, setting, "rsa-2")
        assert certificate_updates._apply_key_set(*setting.pair, old_keys, request_number) == UpdateOutcome(unchanged=1)
        assert stored_kids(setting) == ["rsa-2"] and logged_deletions() == [("idp_certificate", "rsa-1")]

    def test_nothing_is_stored_for_a_pair_without_connection(self, provider: HostileProvider, setting: OidcSetting):
        deleted_setting = OidcSetting(url_idp="https://idp.example.com", realm="gone", jwks_uri=provider.url("certs"))
        certificate_updates.refresh_certificates(deleted_setting, trigger=certificate_updates.TRIGGER_DAILY)
        assert not IdpCertificate.objects.exists()


class TestInvalidResponses:  # A28 A29 A30
    @pytest.mark.parametrize(
        "behaviour",
        [responds_with_error(500), responds_with_error(404), responds_with_html(), responds_with_huge_body(),
         responds_with_gzip_bomb(), hangs_up(), sends_endless_chunks(), redirects_to("http://169.254.169.254/latest"),
         responds_with(b'{"keys": [], "keys": []}'), responds_with(b"\xff{}"),
         responds_with({"keys": []}), responds_with({"keys": [jwk("small-1")]}), responds_with([jwk("rsa-1")]),
         responds_with({"keys": [jwk("rsa-1"), jwk("rsa-1")]})],
        ids=["500", "404", "html", "huge", "bomb", "hangs up", "endless", "redirect", "repeated key", "not UTF-8",
             "empty", "unusable", "a list", "one kid twice"],
    )  # fmt: skip
    def test_invalid_responses_change_nothing_and_are_reported(
        self, provider: HostileProvider, setting: OidcSetting, behaviour: Any
    ):
        update_certificates(provider, setting, "rsa-1", "rsa-2")
        rows_before = list(IdpCertificate.objects.values())
        provider.serve("certs", behaviour)
        with pytest.raises(CertificateUpdateFailed) as exc_info:
            update_certificates(provider, setting)
        assert str(exc_info.value).startswith("The certificate update failed. Check the connection settings. ")
        assert list(IdpCertificate.objects.values()) == rows_before and logged_deletions() == []
        assert pair_of(setting).failure == exc_info.value.reason
        provider.behave_correctly("certs")
        update_certificates(provider, setting)
        assert pair_of(setting).failure == ""

    def test_a_slow_response_ends_at_the_deadline(self, provider: HostileProvider, setting: OidcSetting, settings: Any):
        settings.OUTBOUND_POLICY = {**settings.OUTBOUND_POLICY, "total_s": 0.5}
        provider.serve("certs", sends_byte_by_byte(0.05))
        with pytest.raises(CertificateUpdateFailed, match=r"within 0\.5 s"):
            update_certificates(provider, setting)


class TestUnknownKids:  # A32
    @pytest.fixture
    def setting_with_keys(self, provider: HostileProvider, setting: OidcSetting) -> OidcSetting:
        update_certificates(provider, setting, "rsa-1")
        provider.requests.clear()
        return setting

    def test_many_unknown_kids_cause_one_request(self, provider: HostileProvider, setting_with_keys: OidcSetting):
        assert [certificate_updates.refresh_for_unknown_kid(setting_with_keys) for _ in range(20)] == [True] + [
            False
        ] * 19
        assert len(provider.requests_to("certs")) == 1

    def test_after_30_s_there_is_another_request(self, provider: HostileProvider, setting_with_keys: OidcSetting):
        certificate_updates.refresh_for_unknown_kid(setting_with_keys)
        for seconds_ago, request_count in ((29, 1), (31, 2)):
            CertificatePair.objects.update(asked_for_unknown_at=timezone.now() - timedelta(seconds=seconds_ago))
            certificate_updates.refresh_for_unknown_kid(setting_with_keys)
            assert len(provider.requests_to("certs")) == request_count

    def test_a_fetch_without_stored_keys_does_not_count(self, provider: HostileProvider, setting: OidcSetting):
        assert certificate_updates.refresh_for_unknown_kid(setting)
        provider.jwks = {"keys": [jwk("rsa-2")]}
        assert certificate_updates.refresh_for_unknown_kid(setting) and stored_kids(setting) == ["rsa-2"]
        IdpCertificate.objects.all().delete()
        assert certificate_updates.refresh_for_unknown_kid(setting)

    def test_form_and_daily_task_ignore_the_limit(self, provider: HostileProvider, setting_with_keys: OidcSetting):
        update_certificates(provider, setting_with_keys)
        tasks.refresh_daily()
        assert certificate_updates.refresh_for_unknown_kid(setting_with_keys)
        update_certificates(provider, setting_with_keys)
        tasks.refresh_daily()
        assert len(provider.requests_to("certs")) == 5

    def test_a_failed_request_counts_towards_the_limit(self, provider: HostileProvider, setting_with_keys: OidcSetting):
        provider.serve("certs", responds_with_error(500))
        assert not any(certificate_updates.refresh_for_unknown_kid(setting_with_keys) for _ in range(3))
        assert len(provider.requests_to("certs")) == 1

    def test_pairs_do_not_wait_for_each_other(self, provider: HostileProvider, setting_with_keys: OidcSetting):
        other_setting = make_connection_at(provider, realm="other")
        for setting in (setting_with_keys, other_setting):
            assert certificate_updates.refresh_for_unknown_kid(setting)

    def test_unsolicited_tokens_cause_at_most_one_request(self, provider: HostileProvider, setting: OidcSetting):
        """Even if no key is stored, and without waiting for the request of another caller."""
        provider.serve("certs", responds_with_error(500))
        for _ in range(5):
            certificate_updates.refresh_for_unknown_kid(setting, is_unsolicited=True)
        assert len(provider.requests_to("certs")) == 1

    def test_without_endpoints_no_request_is_made(self, provider: HostileProvider):
        assert not certificate_updates.refresh_for_unknown_kid(OidcSetting.objects.create(**{
            "name": "x", "url_idp": provider.url_idp, "realm": "main", "client_id": "x", "redirect_uri": "http://testserver/",
        }))  # fmt: skip
        assert provider.requests == []


class TestDailyTask:
    def test_daily_task_updates_endpoints_and_keys(self, provider: HostileProvider, setting: OidcSetting):
        provider.algorithms = ["ES256"]
        tasks.refresh_daily()
        assert stored_kids(setting) == ["rsa-1"] and setting.refreshed().algorithms == ["ES256"]

    def test_inactive_connections_are_not_refreshed(self, provider: HostileProvider):
        make_connection_at(provider)
        tasks.refresh_daily()
        assert provider.requests == []

    def test_an_unavailable_provider_changes_nothing(self, provider: HostileProvider, setting: OidcSetting):
        tasks.refresh_daily()
        for endpoint in ("certs", "discovery"):
            provider.serve(endpoint, responds_with_error(503))
        tasks.refresh_daily()
        stored_setting = setting.refreshed()
        assert (stored_setting.issuer, stored_kids(setting)) == (provider.issuer, ["rsa-1"])
        assert stored_setting.resolve_error and pair_of(setting).failure

    def test_daily_task_finds_a_provider_that_was_not_found_before(self, provider: HostileProvider):
        setting = make_connection_at(
            provider, active=True, issuer="", authorization_endpoint="", jwks_uri="", token_endpoint=""
        )
        tasks.refresh_daily()
        assert setting.refreshed().issuer == provider.issuer and stored_kids(setting) == ["rsa-1"]

    def test_daily_task_is_scheduled(self):
        from django_celery_beat.models import PeriodicTask

        from config.scheduling import schedules

        schedules.update_schedules()
        assert PeriodicTask.objects.get(task="sso.tasks.refresh_daily").schedule.run_every == timedelta(days=1)
