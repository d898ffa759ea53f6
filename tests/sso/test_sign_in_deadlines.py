"""All steps after the callback share a deadline, and all calls to the provider share a slot."""

import time
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from sso.connections import certificate_updates
from sso.models import CertificatePair, IdpCertificate, OidcSetting
from sso.provider import discovery, request_slots
from sso.scripts import mapping_script
from system.outbound.deadline import Deadline
from tests.providers.behaviours import Behaviour, RecordedRequest, responds_with_error, stays_silent
from tests.providers.hostile import HostileProvider
from tests.providers.signing import jwk
from tests.sso.connections import connection_path, form_data, make_connection_at, messages_of, press_button
from tests.sso.sign_ins import START_PATH, Browser, check_refusal, make_active_connection, make_ann

pytestmark = pytest.mark.django_db
ENDLESS_SCRIPT = "function map(claims) { for (;;) {} }"


@pytest.fixture
def browser(provider: HostileProvider) -> Browser:
    make_active_connection(provider)
    make_ann()
    return Browser(provider)


def respond_after(provider: HostileProvider, seconds: float) -> Behaviour:
    def respond_late(request: RecordedRequest) -> None:
        request.stop.wait(seconds)
        provider.respond_correctly(request)

    return respond_late


def clear_endpoints() -> None:
    OidcSetting.objects.update(issuer="", resolve_tried_at=None)


class TestDeadline:  # A61
    @pytest.fixture(autouse=True)
    def short_deadline(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(request_slots, "MAX_REQUEST_S", 1.5)

    @pytest.mark.parametrize("slow_endpoints", [("discovery", "token"), ("token", "certs"), ("token", "userinfo")])
    def test_delays_of_several_endpoints_share_one_deadline(self, browser: Browser, slow_endpoints: tuple[str, str]):
        """Each delay alone would be within the deadline."""
        callback_url = browser.authorize(browser.start())
        for endpoint in slow_endpoints:
            browser.provider.serve(endpoint, respond_after(browser.provider, 1.0))
        if "discovery" in slow_endpoints:
            clear_endpoints()
        code = "certificates_unavailable" if "certs" in slow_endpoints else "provider_unavailable"
        started_at = time.monotonic()

        check_refusal(browser.follow_callback(callback_url), code, 503)
        assert time.monotonic() - started_at < 2.5
        for endpoint in slow_endpoints:
            browser.provider.behave_correctly(endpoint)
        assert browser.sign_in().status_code == 302

    def test_script_stopped_by_the_deadline_is_not_reported_as_faulty(self, browser: Browser):
        OidcSetting.objects.update(script=ENDLESS_SCRIPT)
        browser.provider.serve("token", respond_after(browser.provider, 0.8))
        started_at = time.monotonic()

        assert "of CPU time" in check_refusal(browser.sign_in(), "too_busy", 503).detail
        assert time.monotonic() - started_at < 2.5

    def test_script_that_uses_its_full_second_is_reported_as_faulty(self, browser: Browser, monkeypatch: Any):
        monkeypatch.setattr(request_slots, "MAX_REQUEST_S", 6.0)
        OidcSetting.objects.update(script=ENDLESS_SCRIPT)

        check_refusal(browser.sign_in(), "script_error", 401)

    def test_the_deadline_applies_to_discovery_too(self, browser: Browser):
        clear_endpoints()
        browser.provider.serve("discovery", stays_silent())
        started_at = time.monotonic()

        check_refusal(browser.client.get(START_PATH), "provider_unresolved", 503)
        assert time.monotonic() - started_at < 2.5

    def test_waiting_for_another_request_ends_at_the_deadline(self, browser: Browser):
        browser.sign_in()
        CertificatePair.objects.update(asked_for_unknown_at=timezone.now(), answered_at=None)
        browser.provider.id_token = lambda claims: browser.provider.sign(claims, key="rsa-2")
        started_at = time.monotonic()

        assert "still in progress" in check_refusal(browser.sign_in(), "certificates_unavailable", 503).detail
        assert time.monotonic() - started_at < 2.5


class TestUnavailableKey:
    @pytest.fixture
    def browser_with_unknown_key(self, browser: Browser) -> Browser:
        """The next token of the provider names a key that is not stored."""
        assert browser.sign_in().status_code == 302
        browser.provider.jwks = {"keys": [jwk("rsa-1"), jwk("rsa-2")]}
        browser.provider.id_token = lambda claims: browser.provider.sign(claims, key="rsa-2")
        return browser

    def test_unavailable_keys_are_not_reported_as_a_wrong_token(self, browser_with_unknown_key: Browser):
        browser_with_unknown_key.provider.serve("certs", responds_with_error(503))

        for _ in range(2):  # the second sign-in is within 30 s, so no request is made
            assert "503" in check_refusal(browser_with_unknown_key.sign_in(), "certificates_unavailable", 503).detail
        assert [certificate.kid for certificate in IdpCertificate.objects.all()] == ["rsa-1"]

    def test_the_sign_in_succeeds_when_the_keys_are_available_again(self, browser_with_unknown_key: Browser):
        browser_with_unknown_key.provider.serve("certs", responds_with_error(503), times=1)
        check_refusal(browser_with_unknown_key.sign_in(), "certificates_unavailable", 503)
        CertificatePair.objects.update(asked_for_unknown_at=timezone.now() - timedelta(seconds=31))

        assert browser_with_unknown_key.sign_in().status_code == 302

    def test_a_key_that_the_provider_does_not_publish_is_refused(self, browser_with_unknown_key: Browser):
        browser_with_unknown_key.provider.jwks = {"keys": [jwk("rsa-1")]}

        for _ in range(2):
            check_refusal(browser_with_unknown_key.sign_in(), "token_key", 401)


def test_waiting_for_the_keys_ends_at_the_deadline(browser: Browser):
    browser.sign_in()
    CertificatePair.objects.update(asked_for_unknown_at=timezone.now(), answered_at=None)
    started_at = time.monotonic()
    certificate_updates.refresh_for_unknown_kid(OidcSetting.objects.get(), Deadline.after(0.3))

    assert 0.2 < time.monotonic() - started_at < 2


class TestBusyMachine:
    def test_engine_that_does_not_start_in_time_is_reported(self, browser: Browser, monkeypatch: Any):
        monkeypatch.setattr(mapping_script, "MAX_START_S", 0.01 - mapping_script.MAX_RUN_S)

        check_refusal(browser.sign_in(), "too_busy", 503)

    def test_script_without_processor_time_is_reported(self, browser: Browser, monkeypatch: Any):
        monkeypatch.setattr("system.sandbox.process.MIN_CPU_SHARE", 10.0)
        OidcSetting.objects.update(script=ENDLESS_SCRIPT)

        check_refusal(browser.sign_in(), "too_busy", 503)


class TestButtons:  # A61
    """Buttons of the form also take one of the two slots, and have the same deadline."""

    @pytest.mark.parametrize("button", ["_test", "_update_certificates", "_adopt"])
    def test_without_a_slot_no_request_is_made(self, as_sonja: Client, provider: HostileProvider, button: str):
        setting = make_connection_at(provider, active=True)
        with request_slots.request_slot(), request_slots.request_slot():
            page = press_button(as_sonja, button, setting)
        message = page.context["report"].title if button == "_test" else messages_of(page)

        assert request_slots.NO_SLOT_FREE in message and provider.requests == []
        assert press_button(as_sonja, button, setting).status_code == 200 and provider.requests

    @pytest.mark.parametrize("button", ["_test", "_update_certificates", "_adopt"])
    def test_buttons_hold_a_slot_during_their_requests(self, as_sonja: Client, provider: HostileProvider, button: str):
        setting = make_connection_at(provider, active=True)
        free_slot_flags: list[bool] = []

        def record_free_slot(request: RecordedRequest) -> None:
            with request_slots.request_slot():  # the other slot
                free_slot_flags.append(request_slots.SLOTS.acquire(blocking=False))
            provider.respond_correctly(request)

        for endpoint in ("discovery", "certs"):
            provider.serve(endpoint, record_free_slot)
        press_button(as_sonja, button, setting)

        assert free_slot_flags and not any(free_slot_flags)

    def test_without_a_slot_the_first_sign_in_looks_up_the_provider(
        self, as_sonja: Client, provider: HostileProvider, django_capture_on_commit_callbacks: Any
    ):
        make_ann()
        columns = {"url_idp": provider.url_idp, "realm": provider.realm, "user_field": "login", "active": True}
        with (
            request_slots.request_slot(),
            request_slots.request_slot(),
            django_capture_on_commit_callbacks(execute=True),
        ):
            as_sonja.post(connection_path(None), {**form_data(**columns), "_save": "1"})
        setting = OidcSetting.objects.get()
        assert provider.requests == []
        assert (
            "was not looked up because too many requests were in progress"
            in as_sonja.get(connection_path(setting)).content.decode()
        )

        provider.client_secret = ""
        assert Browser(provider).sign_in().status_code == 302

    def test_testing_a_connection_has_one_deadline(self, as_sonja: Client, provider: HostileProvider, monkeypatch: Any):
        monkeypatch.setattr(discovery, "MAX_DISCOVERY_S", 1.0)
        provider.serve("certs", stays_silent())
        started_at = time.monotonic()
        page = press_button(as_sonja, "_test", make_connection_at(provider))

        assert time.monotonic() - started_at < 4
        assert "its keys cannot be used" in page.context["report"].title

    def test_updating_certificates_of_an_unresolved_provider_has_one_deadline(
        self, as_sonja: Client, provider: HostileProvider, monkeypatch: Any
    ):
        setting = make_connection_at(provider, active=True)
        clear_endpoints()
        monkeypatch.setattr(discovery, "MAX_DISCOVERY_S", 1.5)
        provider.serve("discovery", respond_after(provider, 0.7))
        provider.serve("certs", stays_silent())
        started_at = time.monotonic()
        page = press_button(as_sonja, "_update_certificates", setting)

        assert time.monotonic() - started_at < 4
        assert messages_of(page).startswith("The certificate update failed.")


def test_the_waiting_page_does_not_count_as_a_restart(browser: Browser):
    clear_endpoints()
    with request_slots.request_slot(), request_slots.request_slot():
        for _ in range(5):
            page = browser.client.get(f"{START_PATH}?again")
            assert page.status_code == 503 and b'http-equiv="refresh"' in page.content

    for number in range(4):
        next_location = browser.client.get(f"{START_PATH}?again")["Location"]
        assert next_location.startswith(browser.provider.issuer) == (number < 3), (
            "the page reloads at most three times a minute"
        )
