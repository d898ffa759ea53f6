"""Concurrent certificate updates, with a database connection per thread and a provider that delays responses."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from sso.connections import certificate_updates
from sso.models import CertificatePair, IdpCertificate, OidcSetting
from system.models import DeletionLogEntry
from tests.config.stack import eventually
from tests.providers.hostile import HostileProvider
from tests.providers.signing import jwk
from tests.sso.connections import make_connection_at

pytestmark = pytest.mark.django_db(transaction=True)

THREAD_COUNT = 8


def run_concurrently(action: Any, count: int) -> list[Any]:
    """Runs the action in `count` concurrent threads; returns their results."""
    barrier = threading.Barrier(count)

    def run_action(number: int) -> Any:
        barrier.wait()
        try:
            return action()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run_action, range(count)))


@pytest.fixture
def setting(provider: HostileProvider, transactional_db: Any) -> OidcSetting:
    return make_connection_at(provider, active=True)


def update_certificates(setting: OidcSetting) -> certificate_updates.UpdateOutcome:
    return certificate_updates.refresh_certificates(setting, trigger=certificate_updates.TRIGGER_FORM)


def stored_kids() -> list[str]:
    return sorted(IdpCertificate.objects.values_list("kid", flat=True))


def test_concurrent_updates_have_the_effect_of_one(provider: HostileProvider, setting: OidcSetting):  # A33
    provider.jwks = {"keys": [jwk("rsa-1"), jwk("rsa-2")]}
    update_certificates(setting)
    provider.jwks = {"keys": [jwk("rsa-2"), jwk("p256-1")]}
    outcomes = run_concurrently(lambda: update_certificates(setting), THREAD_COUNT)

    assert stored_kids() == ["p256-1", "rsa-2"]
    assert sum(outcome.added for outcome in outcomes) == sum(outcome.removed for outcome in outcomes) == 1
    assert DeletionLogEntry.objects.filter(table="idp_certificate").count() == 1


def test_twenty_concurrent_unknown_kids_cause_one_request(provider: HostileProvider, setting: OidcSetting):  # A32
    update_certificates(setting)
    provider.requests.clear()
    provider.jwks = {"keys": [jwk("rsa-2")]}
    release = provider.hold("certs")
    found_flags: list[bool] = []
    fetch_thread = threading.Thread(
        target=lambda: found_flags.extend(run_concurrently(lambda: finds_unknown_key(setting), 20))
    )
    fetch_thread.start()
    eventually(lambda: provider.requests_to("certs"))
    release.set()
    fetch_thread.join()

    assert len(provider.requests_to("certs")) == 1
    assert found_flags == [True] * 20


def finds_unknown_key(setting: OidcSetting) -> bool:
    """Whether the key of a token with the kid rsa-2 is found."""
    certificate_updates.refresh_for_unknown_kid(setting)
    return any(key["kid"] == "rsa-2" for key in certificate_updates.signing_keys(setting))


def test_no_keys_remain_of_a_connection_deleted_during_the_request(provider: HostileProvider, setting: OidcSetting):
    release = provider.hold("certs")
    update_thread = threading.Thread(target=lambda: run_concurrently(lambda: update_certificates(setting), 1))
    update_thread.start()
    eventually(lambda: provider.requests_to("certs"))
    setting.delete()
    release.set()
    update_thread.join()

    assert stored_kids() == []
    assert CertificatePair.objects.get().fetched_at is None


@pytest.mark.parametrize("repetition", range(5))
def test_no_keys_remain_after_deleting_and_updating_concurrently(
    provider: HostileProvider, setting: OidcSetting, repetition: int
):  # A36
    jobs: list[Any] = [setting.delete, *[lambda: update_certificates(setting)] * 3]
    assert len(run_concurrently(lambda: jobs.pop()(), 4)) == 4

    assert stored_kids() == []
