"""What the Redirect URI accepts: each attempt once, in its browser, in time, from its provider."""

import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.db import connection
from django.test import Client

from accounts.models import Session
from sso import sign_in_attempts
from sso.http import sign_in_events
from sso.models import OidcSetting, SignIn
from tests.providers.hostile import HostileProvider
from tests.sso.sign_ins import CALLBACK, PAGE, Browser, active, ann, refused

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(provider: HostileProvider) -> Browser:
    active(provider)
    ann()
    return Browser(provider)


def came(browser: Browser, query: dict[str, Any] | list[tuple[str, str]]) -> Any:
    return browser.client.get(f"{CALLBACK}?{urlencode(query)}", headers=PAGE)


def later(seconds: float) -> SimpleNamespace:
    """A module `time` that is ahead; put it into the one module whose memory is meant."""
    return SimpleNamespace(time=lambda: time.time() + seconds)


def query_of(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


def test_a_state_that_is_missing_or_invented_is_refused(browser: Browser):  # A16
    right = query_of(browser.back(browser.start()))
    for state in ({}, {"state": ""}, {"state": "x"}, {"state": right["state"] + "x"}, {"state": "\x00"}):
        refused(came(browser, {"code": right["code"], **state}), "state_unknown", 400)

    assert not browser.provider.asked("token"), "nobody was called"
    assert came(browser, right).status_code == 302, "the attempt is still good"


def test_a_state_counts_only_in_its_browser(browser: Browser):  # A16
    victim, attacker = Browser(browser.provider), browser
    back = attacker.back(attacker.start())
    victim.start()

    refused(victim.come(back), "state_unknown", 400)
    refused(Browser(browser.provider).come(back), "state_unknown", 400)
    assert victim.login is None


def test_a_state_counts_once(browser: Browser):  # A16, A18
    back = browser.back(browser.start())
    assert browser.come(back).status_code == 302

    refused(browser.come(back), "state_unknown", 400)
    assert len(browser.provider.asked("token")) == 1


def test_a_refused_response_uses_up_its_state(browser: Browser):  # A16
    right = query_of(browser.back(browser.start()))
    assert came(browser, {**right, "code": "wrong"}).status_code == 401

    refused(came(browser, right), "state_unknown", 400)


def test_an_invented_session_has_no_attempt(browser: Browser):
    browser.start()
    other = Browser(browser.provider)
    other.client.cookies["servicebase_session"] = "a" * 32

    refused(other.come(browser.back(browser.start())), "state_unknown", 400)


def test_a_session_that_expired_has_no_attempt(browser: Browser):
    back = browser.back(browser.start())
    Session.objects.update(expire_date="2020-01-01T00:00:00Z")

    refused(browser.come(back), "state_unknown", 400)
    assert browser.sign_in().status_code == 302, "and starts anew"


def test_an_attempt_is_valid_for_ten_minutes(browser: Browser, monkeypatch: Any):  # A15
    back = browser.back(browser.start())
    monkeypatch.setattr(sign_in_attempts, "time", later(601))

    refused(browser.come(back), "state_expired", 400)


@pytest.mark.parametrize(("behind", "is_good"), [(59, True), (61, False)])
def test_clocks_of_two_hosts_may_differ_a_little(browser: Browser, monkeypatch: Any, behind: int, is_good: bool):
    back = browser.back(browser.start())
    monkeypatch.setattr(sign_in_attempts, "time", later(-behind))

    response = browser.come(back)
    assert (response.status_code == 302) is is_good


def test_of_two_concurrent_responses_one_succeeds(transactional_db: None, provider: HostileProvider):  # A17
    active(provider)
    ann()
    for _ in range(3):
        browser = Browser(provider)
        back = browser.back(browser.start())
        cookie = browser.client.cookies["servicebase_session"].value

        def once(_: int, back: str = back, cookie: str = cookie) -> int:
            client = Client()
            client.cookies["servicebase_session"] = cookie
            try:
                while (response := Browser(provider, client).come(back)).status_code == 503:
                    pass  # no place: it is told to come again
                return int(response.status_code)
            finally:
                connection.close()

        with ThreadPoolExecutor(4) as threads:
            assert sorted(threads.map(once, range(4))) == [302, 400, 400, 400]


TOKENS = [{"id_token": "x"}, {"access_token": "x"}, {"id_token": ""}, {"code": "c", "id_token": "canary-token"}]


@pytest.mark.parametrize("given", TOKENS)
def test_a_token_in_the_query_is_refused(browser: Browser, given: dict[str, str]):
    right = query_of(browser.back(browser.start()))
    response = came(browser, {**right, **given})

    refused(response, "token_in_query", 400)
    assert b"canary" not in response.content


MALFORMED: list[list[tuple[str, str]]] = [
    [("code", "a"), ("code", "b")],
    [("state", "other")],
    [("error", "access_denied")],
    [("iss", "a"), ("iss", "b")],
    [("code", "x" * 5000)],
]


@pytest.mark.parametrize("more", MALFORMED, ids=str)
def test_repeated_long_or_contradictory_parameters_are_refused(browser: Browser, more: list[tuple[str, str]]):
    right = query_of(browser.back(browser.start()))

    refused(came(browser, [*right.items(), *more]), "response_malformed", 400)


def test_an_empty_code_is_refused(browser: Browser):
    right = query_of(browser.back(browser.start()))
    browser.provider.client_secret = ""

    assert came(browser, {**right, "code": ""}).status_code in (400, 401)


ERRORS = [
    ("access_denied", "provider_denied", 401),
    ("login_required", "provider_denied", 401),
    ("<script>alert(1)</script>", "provider_denied", 401),
    ("x" * 4000, "provider_denied", 401),
    ("\x00", "provider_denied", 401),
    ("server_error", "provider_unavailable", 503),
    ("temporarily_unavailable", "provider_unavailable", 503),
]


@pytest.mark.parametrize(("error", "code", "status"), ERRORS, ids=[error[:20] for error, _, _ in ERRORS])
def test_an_error_of_the_provider_is_shown(browser: Browser, error: str, code: str, status: int):
    state = query_of(browser.back(browser.start()))["state"]
    response = came(browser, {"error": error, "error_description": "<b>canary</b>", "state": state})

    entry = refused(response, code, status)
    assert b"canary" not in response.content and b"<script>alert" not in response.content
    assert "canary" not in entry.detail and "<" not in entry.detail
    refused(came(browser, {"error": error, "state": state}), "state_unknown", 400)


def test_an_error_with_an_unknown_state_is_refused(browser: Browser):
    refused(came(browser, {"error": "access_denied"}), "state_unknown", 400)


def test_the_response_may_name_its_issuer(browser: Browser):  # A19
    right = query_of(browser.back(browser.start()))

    assert came(browser, {**right, "iss": browser.provider.issuer}).status_code == 302


@pytest.mark.parametrize("iss", ["https://other.example", "", "ISSUER/", "issuer"])
def test_a_response_of_another_issuer_is_refused(browser: Browser, iss: str):  # A19
    right = query_of(browser.back(browser.start()))
    response = came(browser, {**right, "iss": iss.replace("ISSUER", browser.provider.issuer)})

    refused(response, "response_issuer", 401)
    assert not browser.provider.asked("token"), "the code was not shown to anybody"


def test_a_provider_that_advertises_iss_must_send_it(browser: Browser):  # A19
    OidcSetting.objects.update(iss_in_response=True)
    right = query_of(browser.back(browser.start()))
    refused(came(browser, right), "response_issuer", 401)

    right = query_of(browser.back(browser.start()))
    assert came(browser, {**right, "iss": browser.provider.issuer}).status_code == 302


def test_a_code_for_one_connection_is_not_redeemed_at_another(browser: Browser, http_allowed: None):  # A19
    back = browser.back(browser.start())
    with HostileProvider(realm="other") as other:
        active(other, name="Other")
        refused(browser.come(back), "not_available", 503)

        assert not other.requests and not browser.provider.asked("token")


def test_a_head_request_uses_nothing_up(browser: Browser):
    back = browser.back(browser.start())
    parts = urlsplit(back)
    assert browser.client.head(f"{parts.path}?{parts.query}").status_code == 405

    assert browser.come(back).status_code == 302


def test_an_empty_response_starts_a_sign_in_three_times_a_minute(browser: Browser, monkeypatch: Any):
    def goes_to() -> str:
        return str(browser.client.get(CALLBACK)["Location"])

    assert [goes_to() for _ in range(5)] == ["/sso/start/"] * 3 + ["/login/"] * 2
    monkeypatch.setattr(sign_in_attempts, "time", later(61))
    assert goes_to() == "/sso/start/"


def test_a_browser_has_ten_attempts_at_most(browser: Browser):
    backs = [browser.back(browser.start()) for _ in range(12)]

    assert len(browser.client.session["sso_attempts"]) == 10
    for back in backs[:2]:
        refused(browser.come(back), "state_unknown", 400)
    assert browser.come(backs[2]).status_code == 302
    assert browser.come(backs[11]).status_code == 302, "two windows of one browser"


def test_expired_attempts_are_removed(browser: Browser, monkeypatch: Any):
    for _ in range(5):
        browser.start()
    monkeypatch.setattr(sign_in_attempts, "time", later(700))
    browser.start()

    assert len(browser.client.session["sso_attempts"]) == 1


@pytest.mark.parametrize("left", ["text", ["list"], {"s": 5}, {"s": {"nonce": "of another version"}}, None])
def test_attempts_in_another_format_are_ignored(browser: Browser, left: Any):
    browser.start()
    session = browser.client.session
    session["sso_attempts"] = left
    session.save()

    refused(came(browser, {"code": "c", "state": "s"}), "state_unknown", 400)
    assert browser.sign_in().status_code == 302


def test_concurrent_starts_keep_all_attempts(transactional_db: None, provider: HostileProvider):
    active(provider)
    browser = Browser(provider)
    browser.start()
    cookie = browser.client.cookies["servicebase_session"].value

    def start(_: int) -> str:
        client = Client()
        client.cookies["servicebase_session"] = cookie
        try:
            return Browser(provider, client).start()
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as threads:
        states = {query_of(location)["state"] for location in threads.map(start, range(6))}

    assert states < set(browser.client.session["sso_attempts"]) and len(states) == 6


def test_stray_responses_do_not_fill_the_log(browser: Browser):
    sign_in_events.STRAY_ENTRY_TIMES.clear()
    for number in range(35):
        response = Client(REMOTE_ADDR=f"192.0.2.{number}").get(CALLBACK, {"code": "c", "state": "s"})
        assert response.status_code == 400

    assert SignIn.objects.count() == 30
    for _ in range(35):
        assert came(browser, {"code": "c", "state": "s"}).status_code == 400
    assert SignIn.objects.count() == 30
    assert browser.sign_in().status_code == 302
    assert SignIn.objects.count() == 31, "those that answer an attempt are always told"
