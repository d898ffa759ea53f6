"""Responses in the fragment: the fragment page, the fields it posts, and their checks."""

import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client

from tests.providers.hostile import HostileProvider
from tests.providers.signing import ABSENT, half_hash
from tests.sso.sign_ins import CALLBACK_PATH, HTML_HEADERS, Browser, check_refusal, make_active_connection, make_ann

pytestmark = pytest.mark.django_db


@pytest.fixture(params=["id_token", "id_token token"])
def browser(provider: HostileProvider, request: Any) -> Browser:
    make_active_connection(provider, response_type=request.param)
    make_ann()
    return Browser(provider)


@pytest.fixture
def access_token_browser(provider: HostileProvider) -> Browser:
    make_active_connection(provider, response_type="id_token token")
    make_ann()
    return Browser(provider)


def fragment_fields(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).fragment))


def test_a_user_signs_in_through_the_fragment(browser: Browser):
    response = browser.sign_in(next="/account/")

    assert (response.status_code, response["Location"]) == (302, "/account/"), response.content
    assert browser.login == "ann"
    assert not browser.provider.requests_to("token"), "no code is exchanged"
    assert not browser.provider.requests_to("userinfo"), "the access token is dropped"


def test_the_request_has_no_challenge_and_no_secret(browser: Browser):
    parameters = dict(parse_qsl(urlsplit(browser.start()).query))

    assert set(parameters) == {"response_type", "client_id", "redirect_uri", "scope", "state", "nonce"}


def test_the_fragment_page_is_shown_while_a_response_is_pending(browser: Browser):  # A60
    assert browser.client.get(CALLBACK_PATH).status_code == 302, "no response is pending yet"
    browser.start()
    page = browser.client.get(CALLBACK_PATH, headers=HTML_HEADERS)
    content = page.content.decode()

    assert page.status_code == 200
    field_names = re.findall(r'<input type="hidden" name="(\w+)" disabled>', content)
    assert set(field_names) == {
        "state", "session_state", "id_token", "access_token", "token_type", "expires_in", "error", "iss",
    }  # fmt: skip
    assert 'data-start-url="/sso/start/?again"' in content


def test_the_fragment_page_has_strict_headers(browser: Browser):  # A60
    browser.start()
    page = browser.client.get(CALLBACK_PATH, headers=HTML_HEADERS)
    directives = dict(directive.strip().partition(" ")[::2] for directive in page["Content-Security-Policy"].split(";"))
    script_pattern = r'<script nonce="([\w-]+)" src="/static/servicebase/sign-in-response.js">'
    (nonce,) = re.findall(script_pattern, page.content.decode())

    assert directives["script-src"] == f"'nonce-{nonce}'"
    assert directives["default-src"] == "'none'" and directives["frame-ancestors"] == "'none'"
    assert directives["form-action"] == "'self'" and directives["base-uri"] == "'none'"
    assert page["Cache-Control"] == "no-store"
    assert page["Referrer-Policy"] == "strict-origin"
    assert page["X-Frame-Options"] == "DENY"
    assert nonce not in browser.client.get(CALLBACK_PATH).content.decode(), "each page has its own nonce"


def test_query_parameters_are_not_on_the_page(browser: Browser):  # A60
    browser.start()
    page = browser.client.get(CALLBACK_PATH + "?state=%22%3E%3Cscript%3Ealert(1)&x=canary", headers=HTML_HEADERS)

    assert page.status_code == 200
    assert b"canary" not in page.content and b"alert" not in page.content


def test_an_empty_fragment_starts_again_without_a_loop(browser: Browser):
    paths = [urlsplit(browser.client.get("/sso/start/?again")["Location"]).path for _ in range(5)]

    assert paths[:3] == [urlsplit(browser.provider.url("auth")).path] * 3
    assert paths[3:] == ["/login/"] * 2


def test_a_form_of_another_site_is_refused(browser: Browser):
    callback_url = browser.authorize(browser.start())
    client = Client(enforce_csrf_checks=True)
    client.cookies = browser.client.cookies

    foreign_headers = {**HTML_HEADERS, "Origin": "https://idp.example.com"}
    entry = check_refusal(
        client.post(CALLBACK_PATH, fragment_fields(callback_url), headers=foreign_headers), "response_malformed", 403
    )
    assert "form_post" in entry.detail
    response = client.post(
        CALLBACK_PATH, fragment_fields(callback_url), headers=HTML_HEADERS
    )  # an outdated fragment page
    assert response.status_code == 403 and b"out of date" in response.content
    assert browser.follow_callback(callback_url).status_code == 302, "the attempt is still valid"


def test_the_form_of_the_fragment_page_is_accepted(browser: Browser):
    client = Client(enforce_csrf_checks=True)
    other_browser = Browser(browser.provider, client)
    callback_url = other_browser.authorize(other_browser.start())
    page = client.get(CALLBACK_PATH, headers=HTML_HEADERS).content.decode()
    token = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[0]
    response = client.post(
        CALLBACK_PATH, {**fragment_fields(callback_url), "csrfmiddlewaretoken": token}, headers=HTML_HEADERS
    )

    assert response.status_code == 302 and other_browser.login == "ann"


def test_a_fragment_state_is_accepted_once(browser: Browser):  # A16
    callback_url = browser.authorize(browser.start())
    assert browser.follow_callback(callback_url).status_code == 302

    check_refusal(browser.follow_callback(callback_url), "state_unknown", 400)


def test_a_response_for_another_browser_is_refused(browser: Browser):  # A16
    callback_url = browser.authorize(browser.start())
    victim = Browser(browser.provider)
    victim.start()

    check_refusal(victim.follow_callback(callback_url), "state_unknown", 400)
    assert victim.login is None


def test_a_token_of_another_attempt_is_refused(browser: Browser):  # A15
    first_fields = fragment_fields(browser.authorize(browser.start()))
    second_fields = fragment_fields(browser.authorize(browser.start()))
    response = browser.client.post(
        CALLBACK_PATH, {**second_fields, "id_token": first_fields["id_token"]}, headers=HTML_HEADERS
    )

    check_refusal(response, "token_nonce", 401)


def test_a_code_cannot_complete_a_fragment_attempt(browser: Browser):
    state = fragment_fields(browser.authorize(browser.start()))["state"]
    response = browser.client.get(CALLBACK_PATH, {"code": "c", "state": state}, headers=HTML_HEADERS)

    check_refusal(response, "response_malformed", 400)
    assert not browser.provider.requests_to("token")


def test_a_fragment_cannot_complete_a_code_attempt(provider: HostileProvider):
    make_active_connection(provider)
    make_ann()
    browser = Browser(provider)
    state = dict(parse_qsl(urlsplit(browser.start()).query))["state"]
    token = provider.sign(provider.valid_claims())

    check_refusal(
        browser.client.post(CALLBACK_PATH, {"state": state, "id_token": token}, headers=HTML_HEADERS),
        "response_malformed",
        400,
    )


def test_an_error_in_the_fragment_is_shown(browser: Browser):
    state = fragment_fields(browser.authorize(browser.start()))["state"]
    response = browser.client.post(CALLBACK_PATH, {"state": state, "error": "access_denied"}, headers=HTML_HEADERS)

    check_refusal(response, "provider_denied", 401)


@pytest.mark.parametrize(
    "changed_fields",
    [{"id_token": "x" * 20_000}, {"id_token": ""}, {"id_token": ["a", "b"]}, {"state": ["a", "b"]},
     {"error": "access_denied"}],
)  # fmt: skip
def test_a_malformed_response_is_refused(browser: Browser, changed_fields: dict[str, Any]):  # A13
    parameters = fragment_fields(browser.authorize(browser.start()))
    response = browser.client.post(CALLBACK_PATH, {**parameters, **changed_fields}, headers=HTML_HEADERS)

    assert response.status_code in (400, 401)
    assert browser.login is None


@pytest.mark.parametrize("at_hash", [ABSENT, half_hash("another"), None, 7])
def test_the_access_token_must_match_at_hash(access_token_browser: Browser, at_hash: Any):
    browser = access_token_browser
    browser.provider.claims = {"at_hash": at_hash}

    check_refusal(browser.sign_in(), "token_access_hash", 401)


def test_a_missing_or_other_access_token_is_refused(access_token_browser: Browser):
    browser = access_token_browser
    for changed_fields in ({"access_token": "another"}, {"access_token": ""}):
        parameters = fragment_fields(browser.authorize(browser.start()))
        check_refusal(
            browser.client.post(CALLBACK_PATH, {**parameters, **changed_fields}, headers=HTML_HEADERS),
            "token_access_hash",
            401,
        )
    parameters = fragment_fields(browser.authorize(browser.start()))
    del parameters["access_token"]
    check_refusal(browser.client.post(CALLBACK_PATH, parameters, headers=HTML_HEADERS), "token_access_hash", 401)
