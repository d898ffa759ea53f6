"""Back-channel logout concurrent with a sign-in: no session outlives the provider's."""

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
from sso.models.provider_sign_outs import RETENTION
from tests.providers.behaviours import fails
from tests.providers.hostile import HostileProvider
from tests.providers.signing import ABSENT, jwk
from tests.sso.sign_ins import Browser, active, ann, refused
from tests.sso.test_logout_backchannel import browser_of, is_in, tell
from tests.tableapi.test_write_concurrency import PATIENCE_S, beside, result, settle, stopping


@pytest.fixture
def ours(db: Any, provider: HostileProvider) -> HostileProvider:
    active(provider)
    ann()
    return provider


def meanwhile(monkeypatch: Any, module: Any, name: str, work: Callable[[], Any]) -> None:
    """Do this before the function begins, once."""
    original, waiting = getattr(module, name), [work]

    def first(*positional: Any, **named: Any) -> Any:
        if waiting:
            waiting.pop()()
        return original(*positional, **named)

    monkeypatch.setattr(module, name, first)


def told(token: str) -> Callable[[], None]:
    def tell_it() -> None:
        assert tell(token).status_code == 200

    return tell_it


@pytest.mark.parametrize(
    "named", [{}, {"sid": "sid-1"}, {"sub": ABSENT, "sid": "sid-1"}], ids=["subject", "both", "session"]
)
def test_a_sign_in_in_progress_is_refused(ours: HostileProvider, monkeypatch: Any, named: dict[str, Any]):
    ours.claims = {"sid": "sid-1"}
    meanwhile(monkeypatch, OidcBackend, "get_or_create_user", told(ours.logout_token(**named)))
    browser = Browser(ours)

    refused(browser.sign_in(), "signed_out_meanwhile", 403)
    assert not is_in(browser.client) and not Session.objects.exclude(user=None) and not ProviderSession.objects.exists()
    assert browser.sign_in().status_code == 302, "the next one is a new session there"


@pytest.mark.parametrize("named", [{"sub": "sub-other"}, {"sid": "sid-2"}, {"sub": ABSENT, "sid": "sid-2"}], ids=str)
def test_the_sign_in_of_another_subject_succeeds(ours: HostileProvider, monkeypatch: Any, named: dict[str, Any]):
    ours.claims = {"sid": "sid-1"}
    meanwhile(monkeypatch, OidcBackend, "get_or_create_user", told(ours.logout_token(**named)))

    assert Browser(ours).sign_in().status_code == 302


def test_a_session_that_was_just_created_is_ended(ours: HostileProvider, monkeypatch: Any):
    meanwhile(monkeypatch, sign_in_events.SignInEvent, "record", told(ours.logout_token()))
    browser = Browser(ours)
    browser.sign_in()

    assert not is_in(browser.client) and not Session.objects.exclude(user=None)


def test_a_token_issued_before_the_sign_out_is_refused(ours: HostileProvider):
    """It lay in the browser meanwhile, behind the page that waits."""
    active(ours, name="Fragment", response_type="id_token")
    browser = Browser(ours)
    back = browser.back(browser.start())
    assert tell(ours.logout_token(iat=int(time.time()) + 2)).status_code == 200

    refused(browser.come(back), "signed_out_meanwhile", 403)


@pytest.mark.django_db(transaction=True)
def test_a_sign_out_waits_for_a_session_being_created(http_allowed: None, monkeypatch: Any):
    with HostileProvider() as ours:
        active(ours)
        ann()
        browser, token = Browser(ours), ours.logout_token()
        reached, go = stopping(monkeypatch, ProviderSession, "begin")
        signing_in = beside(browser.sign_in)
        assert reached.wait(PATIENCE_S)
        signing_out = beside(lambda: tell(token))
        assert settle(signing_out), "it waits until the session can be found"
        go.set()

        assert result(signing_in).status_code in (302, 400) and result(signing_out).status_code == 200
    assert not is_in(browser.client) and not Session.objects.exclude(user=None)


class TestOneTokenCountsOnce:
    def test_a_replay_ends_nothing(self, ours: HostileProvider):
        token = ours.logout_token()
        first = browser_of(ours)
        assert tell(token).status_code == 200 and not is_in(first)
        later = browser_of(ours)
        response = tell(token)

        assert (response.status_code, response.json()["error_description"]) == (400, "token_replayed")
        assert is_in(later)
        assert tell(ours.logout_token()).status_code == 200 and not is_in(later)

    def test_a_token_is_identified_by_its_jti(self, ours: HostileProvider):
        assert [tell(ours.logout_token(jti="one")).status_code for _ in range(2)] == [200, 400]

    def test_a_token_that_could_not_be_checked_may_be_sent_again(self, ours: HostileProvider):
        client = browser_of(ours)
        ours.jwks = {"keys": [jwk("rsa-2")]}
        ours.serve("certs", fails(500), times=1)
        token = ours.logout_token({"key": "rsa-2"})
        response = tell(token)
        assert (response.status_code, response["Retry-After"]) == (503, "1") and is_in(client)
        CertificatePair.objects.update(asked_for_unknown_at=timezone.now() - timedelta(seconds=31))
        assert tell(token).status_code == 200 and not is_in(client)

    def test_tokens_are_remembered_longer_than_they_are_valid(self, ours: HostileProvider):
        tell(ours.logout_token(jti="old"))
        ProviderSignOut.objects.update(came_at=F("came_at") - RETENTION)
        tell(ours.logout_token(jti="new"))
        tasks.forget_ended_sessions()

        assert ProviderSignOut.objects.count() == 1
        assert tell(ours.logout_token(jti="new")).status_code == 400
        assert (
            tell(ours.logout_token(jti="late", iat=int(time.time()) - int(RETENTION.total_seconds()))).status_code
            == 400
        )
