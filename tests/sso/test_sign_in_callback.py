"""The callback accepts each attempt once, in its browser, in time, and from its provider."""

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
from tests.sso.sign_ins import CALLBACK_PATH, HTML_HEADERS, Browser, check_refusal, make_active_connection, make_ann

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(provider: HostileProvider) -> Browser:
    make_active_connection(provider)
    make_ann()
    return Browser(provider)


def return_with(browser: Browser, query: dict[str, Any] | list[tuple[str, str]]) -> Any:
    return browser.client.get(f"{CALLBACK_PATH}?{urlencode(query)}", headers=HTML_HEADERS)


def clock_ahead(seconds: float) -> SimpleNamespace:
    """A stand-in for the module `time` whose clock is ahead; patch it into a single module."""
    return SimpleNamespace(time=lambda: time.time() + seconds)


def query_parameters(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def test_a_state_that_is_missing_or_invented_is_refused(browser: Browser):  # A16
    parameters = query_parameters(browser.authorize(browser.start()))
    for state_parameter in ({}, {"state": ""}, {"state": "x"}, {"state": parameters["state"] + "x"}, {"state": "\x00"}):
        check_refusal(return_with(browser, {"code": parameters["code"], **state_parameter}), "state_unknown", 400)

    assert not browser.provider.requests_to("token"), "the provider was not called"
    assert return_with(browser, parameters).status_code == 302, "the attempt is still valid"


def test_a_state_is_accepted_only_in_its_browser(browser: Browser):  # A16
    victim, attacker = Browser(browser.provider), browser
    callback_url = attacker.authorize(attacker.start())
    victim.start()

    check_refusal(victim.follow_callback(callback_url), "state_unknown", 400)
    check_refusal(Browser(browser.provider).follow_callback(callback_url), "state_unknown", 400)
    assert victim.login is None


def test_a_state_is_accepted_once(browser: Browser):  # A16, A18
    callback_url = browser.authorize(browser.start())
    assert browser.follow_callback(callback_url).status_code == 302

    check_refusal(browser.follow_callback(callback_url), "state_unknown", 400)
    assert len(browser.provider.requests_to("token")) == 1


def test_a_refused_response_invalidates_its_state(browser: Browser):  # A16
    parameters = query_parameters(browser.authorize(browser.start()))
    assert return_with(browser, {**parameters, "code": "wrong"}).status_code == 401

    check_refusal(return_with(browser, parameters), "state_unknown", 400)


def test_an_invented_session_has_no_attempt(browser: Browser):
    browser.start()
    other_browser = Browser(browser.provider)
    other_browser.client.cookies["servicebase_session"] = "a" * 32

    check_refusal(other_browser.follow_callback(browser.authorize(browser.start())), "state_unknown", 400)


def test_a_session_that_expired_has_no_attempt(browser: Browser):
    callback_url = browser.authorize(browser.start())
    Session.objects.update(expire_date="2020-01-01T00:00:00Z")

    check_refusal(browser.follow_callback(callback_url), "state_unknown", 400)
    assert browser.sign_in().status_code == 302, "the link starts a new sign-in"


def test_an_attempt_is_valid_for_ten_minutes(browser: Browser, monkeypatch: Any):  # A15
    callback_url = browser.authorize(browser.start())
    monkeypatch.setattr(sign_in_attempts, "time", clock_ahead(601))

    check_refusal(browser.follow_callback(callback_url), "state_expired", 400)


@pytest.mark.parametrize(("lag_s", "is_accepted"), [(59, True), (61, False)])
def test_clocks_of_two_hosts_may_differ_a_little(browser: Browser, monkeypatch: Any, lag_s: int, is_accepted: bool):
    callback_url = browser.authorize(browser.start())
    monkeypatch.setattr(sign_in_attempts, "time", clock_ahead(-lag_s))

    response = browser.follow_callback(callback_url)
    assert (response.status_code == 302) is is_accepted


def test_only_one_of_two_concurrent_responses_succeeds(transactional_db: None, provider: HostileProvider):  # A17
    make_active_connection(provider)
    make_ann()
    for _ in range(3):
        browser = Browser(provider)
        callback_url = browser.authorize(browser.start())
        cookie = browser.client.cookies["servicebase_session"].value

        def return_once(_: int, callback_url: str = callback_url, cookie: str = cookie) -> int:
            client = Client()
            client.cookies["servicebase_session"] = cookie
            try:
                while (response := Browser(provider, client).follow_callback(callback_url)).status_code == 503:
                    pass  # no free slot: the browser has to retry
                return int(response.status_code)
            finally:
                connection.close()

        with ThreadPoolExecutor(4) as pool:
            assert sorted(pool.map(return_once, range(4))) == [302, 400, 400, 400]


TOKEN_PARAMETERS = [
    {"id_token": "x"},
    {"access_token": "x"},
    {"id_token": ""},
    {"code": "c", "id_token": "canary-token"},
]


@pytest.mark.parametrize("parameters", TOKEN_PARAMETERS)
def test_a_token_in_the_query_is_refused(browser: Browser, parameters: dict[str, str]):
    valid_parameters = query_parameters(browser.authorize(browser.start()))
    response = return_with(browser, {**valid_parameters, **parameters})

    check_refusal(response, "token_in_query", 400)
    assert b"canary" not in response.content


MALFORMED_PARAMETERS: list[list[tuple[str, str]]] = [
    [("code", "a"), ("code", "b")],
    [("state", "other")],
    [("error", "access_denied")],
    [("iss", "a"), ("iss", "b")],
    [("code", "x" * 5000)],
]


@pytest.mark.parametrize("parameters", MALFORMED_PARAMETERS, ids=str)
def test_repeated_long_or_contradictory_parameters_are_refused(browser: Browser, parameters: list[tuple[str, str]]):
    valid_parameters = query_parameters(browser.authorize(browser.start()))

    check_refusal(return_with(browser, [*valid_parameters.items(), *parameters]), "response_malformed", 400)


def test_an_empty_code_is_refused(browser: Browser):
    parameters = query_parameters(browser.authorize(browser.start()))
    browser.provider.client_secret = ""

    assert return_with(browser, {**parameters, "code": ""}).status_code in (400, 401)


PROVIDER_ERRORS = [
    ("access_denied", "provider_denied", 401),
    ("login_required", "provider_denied", 401),
    ("<script>alert(1)</script>", "provider_denied", 401),
    ("x" * 4000, "provider_denied", 401),
    ("\x00", "provider_denied", 401),
    ("server_error", "provider_unavailable", 503),
    ("temporarily_unavailable", "provider_unavailable", 503),
]


@pytest.mark.parametrize(
    ("error", "code", "status"), PROVIDER_ERRORS, ids=[error[:20] for error, _, _ in PROVIDER_ERRORS]
)
def test_an_error_of_the_provider_is_shown(browser: Browser, error: str, code: str, status: int):
    state = query_parameters(browser.authorize(browser.start()))["state"]
    response = return_with(browser, {"error": error, "error_description": "<b>canary</b>", "state": state})

    entry = check_refusal(response, code, status)
    assert b"canary" not in response.content and b"<script>alert" not in response.content
    assert "canary" not in entry.detail and "<" not in entry.detail
    check_refusal(return_with(browser, {"error": error, "state": state}), "state_unknown", 400)


def test_an_error_with_an_unknown_state_is_refused(browser: Browser):
    browser.start()
    check_refusal(return_with(browser, {"error": "access_denied"}), "state_unknown", 400)


def test_the_response_may_name_its_issuer(browser: Browser):  # A19
    parameters = query_parameters(browser.authorize(browser.start()))

    assert return_with(browser, {**parameters, "iss": browser.provider.issuer}).status_code == 302


@pytest.mark.parametrize("iss", ["https://other.example", "", "ISSUER/", "issuer"])
def test_a_response_of_another_issuer_is_refused(browser: Browser, iss: str):  # A19
    parameters = query_parameters(browser.authorize(browser.start()))
    response = return_with(browser, {**parameters, "iss": iss.replace("ISSUER", browser.provider.issuer)})

    check_refusal(response, "response_issuer", 401)
    assert not browser.provider.requests_to("token"), "the code was sent to no other provider"


def test_a_provider_that_advertises_iss_must_send_it(browser: Browser):  # A19
    OidcSetting.objects.update(iss_in_response=True)
    parameters = query_parameters(browser.authorize(browser.start()))
    check_refusal(return_with(browser, parameters), "response_issuer", 401)

    parameters = query_parameters(browser.authorize(browser.start()))
    assert return_with(browser, {**parameters, "iss": browser.provider.issuer}).status_code == 302


def test_a_code_for_one_connection_is_not_redeemed_at_another(browser: Browser, allow_http: None):  # A19
    callback_url = browser.authorize(browser.start())
    with HostileProvider(realm="other") as other_provider:
        make_active_connection(other_provider, name="Other")
        check_refusal(browser.follow_callback(callback_url), "not_available", 503)

        assert not other_provider.requests and not browser.provider.requests_to("token")


def test_a_head_request_does_not_use_up_the_attempt(browser: Browser):
    callback_url = browser.authorize(browser.start())
    parsed_url = urlsplit(callback_url)
    assert browser.client.head(f"{parsed_url.path}?{parsed_url.query}").status_code == 405

    assert browser.follow_callback(callback_url).status_code == 302


def test_an_empty_response_starts_a_sign_in_three_times_a_minute(browser: Browser, monkeypatch: Any):
    def next_path() -> str:
        return str(browser.client.get(CALLBACK_PATH)["Location"])

    assert [next_path() for _ in range(5)] == ["/sso/start/"] * 3 + ["/login/"] * 2
    monkeypatch.setattr(sign_in_attempts, "time", clock_ahead(61))
    assert next_path() == "/sso/start/"


def test_a_browser_has_at_most_ten_attempts(browser: Browser):
    callback_urls = [browser.authorize(browser.start()) for _ in range(12)]

    assert len(browser.client.session["sso_attempts"]) == 10
    for callback_url in callback_urls[:2]:
        check_refusal(browser.follow_callback(callback_url), "state_unknown", 400)
    assert browser.follow_callback(callback_urls[2]).status_code == 302
    assert browser.follow_callback(callback_urls[11]).status_code == 302, (
        "two windows of one browser keep both attempts"
    )


def test_expired_attempts_are_removed(browser: Browser, monkeypatch: Any):
    for _ in range(5):
        browser.start()
    monkeypatch.setattr(sign_in_attempts, "time", clock_ahead(700))
    browser.start()

    assert len(browser.client.session["sso_attempts"]) == 1


@pytest.mark.parametrize("stored_attempts", ["text", ["list"], {"s": 5}, {"s": {"nonce": "of another version"}}, None])
def test_attempts_in_another_format_are_ignored(browser: Browser, stored_attempts: Any):
    browser.start()
    session = browser.client.session
    session["sso_attempts"] = stored_attempts
    session.save()

    check_refusal(return_with(browser, {"code": "c", "state": "s"}), "state_unknown", 400)
    assert browser.sign_in().status_code == 302


def test_concurrent_starts_keep_all_attempts(transactional_db: None, provider: HostileProvider):
    make_active_connection(provider)
    browser = Browser(provider)
    browser.start()
    cookie = browser.client.cookies["servicebase_session"].value

    def start_sign_in(_: int) -> str:
        client = Client()
        client.cookies["servicebase_session"] = cookie
        try:
            return Browser(provider, client).start()
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        states = {query_parameters(url)["state"] for url in pool.map(start_sign_in, range(6))}

    assert states < set(browser.client.session["sso_attempts"]) and len(states) == 6


def test_log_entries_for_responses_without_an_attempt_are_limited(browser: Browser):
    sign_in_events.STRAY_ENTRY_TIMES.clear()
    for number in range(35):
        response = Client(REMOTE_ADDR=f"192.0.2.{number}").get(CALLBACK_PATH, {"code": "c", "state": "s" * 43})
        assert response.status_code == 400

    assert SignIn.objects.count() == 30
    for _ in range(35):
        assert return_with(browser, {"code": "c", "state": "s"}).status_code == 400
    assert SignIn.objects.count() == 30
    assert browser.sign_in().status_code == 302
    assert SignIn.objects.count() == 31, "responses to a known attempt are always logged"
