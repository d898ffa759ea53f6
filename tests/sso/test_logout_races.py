"""Back-channel logout during a sign-in: no session outlives that of the provider."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from accounts.models import Session
from sso import tasks
from sso.backends import OidcBackend
from sso.http import sign_in_events
from sso.models import CertificatePair, ProviderSession, ProviderSignOut
from sso.models.provider_sessions import SIGN_OUT_RETENTION
from tests.providers.behaviours import responds_with_error
from tests.providers.hostile import HostileProvider
from tests.providers.signing import ABSENT, jwk
from tests.sso.sign_ins import Browser, check_refusal, make_active_connection, make_ann
from tests.sso.test_logout_backchannel import is_signed_in, send_logout_token, sign_in
from tests.tableapi.test_write_concurrency import (
    THREAD_TIMEOUT_S,
    paused_call,
    result_of,
    run_in_thread,
    waits_for_lock,
)


@pytest.fixture
def active_provider(db: Any, provider: HostileProvider) -> HostileProvider:
    make_active_connection(provider)
    make_ann()
    return provider


def run_before(monkeypatch: Any, target: Any, name: str, action: Callable[[], Any]) -> None:
    """Runs the action once, before the next call of the function."""
    original_function, pending_actions = getattr(target, name), [action]

    def run_action_first(*arguments: Any, **options: Any) -> Any:
        if pending_actions:
            pending_actions.pop()()
        return original_function(*arguments, **options)

    monkeypatch.setattr(target, name, run_action_first)


def logout_action(token: str) -> Callable[[], None]:
    def send_token() -> None:
        assert send_logout_token(token).status_code == 200

    return send_token


@pytest.mark.parametrize(
    "logout_claims", [{}, {"sid": "sid-1"}, {"sub": ABSENT, "sid": "sid-1"}], ids=["subject", "both", "session"]
)
def test_a_sign_in_in_progress_is_refused(
    active_provider: HostileProvider, monkeypatch: Any, logout_claims: dict[str, Any]
):
    active_provider.claims = {"sid": "sid-1"}
    run_before(
        monkeypatch,
        OidcBackend,
        "get_or_create_user",
        logout_action(active_provider.logout_token(**logout_claims)),
    )
    browser = Browser(active_provider)

    check_refusal(browser.sign_in(), "signed_out_meanwhile", 403)
    assert (
        not is_signed_in(browser.client)
        and not Session.objects.exclude(user=None)
        and not ProviderSession.objects.exists()
    )
    assert browser.sign_in().status_code == 302, "a new sign-in has a new session at the provider"


@pytest.mark.parametrize(
    "logout_claims", [{"sub": "sub-other"}, {"sid": "sid-2"}, {"sub": ABSENT, "sid": "sid-2"}], ids=str
)
def test_the_sign_in_of_another_subject_succeeds(
    active_provider: HostileProvider, monkeypatch: Any, logout_claims: dict[str, Any]
):
    active_provider.claims = {"sid": "sid-1"}
    run_before(
        monkeypatch,
        OidcBackend,
        "get_or_create_user",
        logout_action(active_provider.logout_token(**logout_claims)),
    )

    assert Browser(active_provider).sign_in().status_code == 302


def test_a_session_that_was_just_created_is_ended(active_provider: HostileProvider, monkeypatch: Any):
    run_before(monkeypatch, sign_in_events.SignInEvent, "record", logout_action(active_provider.logout_token()))
    browser = Browser(active_provider)
    browser.sign_in()

    assert not is_signed_in(browser.client) and not Session.objects.exclude(user=None)


def test_a_token_issued_before_the_sign_out_is_refused(active_provider: HostileProvider):
    """The browser held the token while it showed the waiting page."""
    make_active_connection(active_provider, name="Fragment", response_type="id_token")
    browser = Browser(active_provider)
    callback_url = browser.authorize(browser.start())
    assert send_logout_token(active_provider.logout_token(iat=int(time.time()) + 2)).status_code == 200

    check_refusal(browser.follow_callback(callback_url), "signed_out_meanwhile", 403)


@pytest.mark.django_db(transaction=True)
def test_a_sign_out_waits_for_a_session_being_created(allow_http: None, monkeypatch: Any):
    with HostileProvider() as active_provider:
        make_active_connection(active_provider)
        make_ann()
        browser, token = Browser(active_provider), active_provider.logout_token()
        is_reached, release = paused_call(monkeypatch, ProviderSession, "begin")
        sign_in_result = run_in_thread(browser.sign_in)
        assert is_reached.wait(THREAD_TIMEOUT_S)
        sign_out_result = run_in_thread(lambda: send_logout_token(token))
        assert waits_for_lock(sign_out_result), "the sign-out waits for the new session"
        release.set()

        assert result_of(sign_in_result).status_code in (302, 400) and result_of(sign_out_result).status_code == 200
    assert not is_signed_in(browser.client) and not Session.objects.exclude(user=None)


class TestReplayedTokens:
    def test_a_replayed_token_ends_no_session(self, active_provider: HostileProvider):
        token = active_provider.logout_token()
        first_client = sign_in(active_provider)
        assert send_logout_token(token).status_code == 200 and not is_signed_in(first_client)
        second_client = sign_in(active_provider)
        response = send_logout_token(token)

        assert (response.status_code, response.json()["error_description"]) == (400, "token_replayed")
        assert is_signed_in(second_client)
        assert send_logout_token(active_provider.logout_token()).status_code == 200 and not is_signed_in(second_client)

    def test_a_token_is_identified_by_its_jti(self, active_provider: HostileProvider):
        assert [send_logout_token(active_provider.logout_token(jti="one")).status_code for _ in range(2)] == [200, 400]

    def test_a_token_that_could_not_be_checked_may_be_sent_again(self, active_provider: HostileProvider):
        client = sign_in(active_provider)
        active_provider.jwks = {"keys": [jwk("rsa-2")]}
        active_provider.serve("certs", responds_with_error(500), times=1)
        token = active_provider.logout_token({"key": "rsa-2"})
        response = send_logout_token(token)
        assert (response.status_code, response["Retry-After"]) == (503, "1") and is_signed_in(client)
        CertificatePair.objects.update(asked_for_unknown_at=timezone.now() - timedelta(seconds=31))
        assert send_logout_token(token).status_code == 200 and not is_signed_in(client)

    def test_tokens_are_remembered_longer_than_they_are_valid(self, active_provider: HostileProvider):
        send_logout_token(active_provider.logout_token(jti="old"))
        ProviderSignOut.objects.update(came_at=F("came_at") - SIGN_OUT_RETENTION)
        send_logout_token(active_provider.logout_token(jti="new"))
        tasks.forget_ended_sessions()

        assert ProviderSignOut.objects.count() == 1
        assert send_logout_token(active_provider.logout_token(jti="new")).status_code == 400
        assert (
            send_logout_token(
                active_provider.logout_token(jti="late", iat=int(time.time()) - int(SIGN_OUT_RETENTION.total_seconds()))
            ).status_code
            == 400
        )
