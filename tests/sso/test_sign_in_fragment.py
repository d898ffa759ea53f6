"""Response in the fragment: the fragment page, what it forwards, and how it is checked."""

import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client

from tests.providers.hostile import HostileProvider
from tests.providers.signing import ABSENT, half_hash
from tests.sso.sign_ins import CALLBACK, PAGE, Browser, active, ann, refused

pytestmark = pytest.mark.django_db


@pytest.fixture(params=["id_token", "id_token token"])
def browser(provider: HostileProvider, request: Any) -> Browser:
    active(provider, response_type=request.param)
    ann()
    return Browser(provider)


@pytest.fixture
def with_access_token(provider: HostileProvider) -> Browser:
    active(provider, response_type="id_token token")
    ann()
    return Browser(provider)


def fields(address: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(address).fragment))


def test_a_user_signs_in_by_the_fragment(browser: Browser):
    response = browser.sign_in(next="/account/")

    assert (response.status_code, response["Location"]) == (302, "/account/"), response.content
    assert browser.login == "ann"
    assert not browser.provider.asked("token"), "no code is exchanged"
    assert not browser.provider.asked("userinfo"), "the access token is dropped"


def test_the_request_has_no_challenge_and_no_secret(browser: Browser):
    values = dict(parse_qsl(urlsplit(browser.start()).query))

    assert set(values) == {"response_type", "client_id", "redirect_uri", "scope", "state", "nonce"}


def test_the_fragment_page_is_shown_while_a_response_is_pending(browser: Browser):  # A60
    assert browser.client.get(CALLBACK).status_code == 302, "none is awaited yet"
    browser.start()
    page = browser.client.get(CALLBACK, headers=PAGE)
    content = page.content.decode()

    assert page.status_code == 200
    names = re.findall(r'<input type="hidden" name="(\w+)" disabled>', content)
    assert set(names) == {
        "state", "session_state", "id_token", "access_token", "token_type", "expires_in", "error", "iss",
    }  # fmt: skip
    assert 'data-start="/sso/start/?again"' in content


def test_the_headers_of_the_fragment_page(browser: Browser):  # A60
    browser.start()
    page = browser.client.get(CALLBACK, headers=PAGE)
    policy = dict(part.strip().partition(" ")[::2] for part in page["Content-Security-Policy"].split(";"))
    script = r'<script nonce="([\w-]+)" src="/static/servicebase/sign-in-response.js">'
    (nonce,) = re.findall(script, page.content.decode())

    assert policy["script-src"] == f"'nonce-{nonce}'"
    assert policy["default-src"] == "'none'" and policy["frame-ancestors"] == "'none'"
    assert policy["form-action"] == "'self'" and policy["base-uri"] == "'none'"
    assert page["Cache-Control"] == "no-store"
    assert page["Referrer-Policy"] == "strict-origin"
    assert page["X-Frame-Options"] == "DENY"
    assert nonce not in browser.client.get(CALLBACK).content.decode(), "each page has its own"


def test_query_parameters_are_not_on_the_page(browser: Browser):  # A60
    browser.start()
    page = browser.client.get(CALLBACK + "?state=%22%3E%3Cscript%3Ealert(1)&x=canary", headers=PAGE)

    assert page.status_code == 200
    assert b"canary" not in page.content and b"alert" not in page.content


def test_an_empty_fragment_starts_again_without_a_loop(browser: Browser):
    places = [urlsplit(browser.client.get("/sso/start/?again")["Location"]).path for _ in range(5)]

    assert places[:3] == [urlsplit(browser.provider.url("auth")).path] * 3
    assert places[3:] == ["/login/"] * 2


def test_a_form_of_another_site_is_refused(browser: Browser):
    back = browser.back(browser.start())
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = browser.client.cookies

    theirs = {**PAGE, "Origin": "https://idp.example.com"}
    entry = refused(strict.post(CALLBACK, fields(back), headers=theirs), "response_malformed", 403)
    assert "form_post" in entry.detail
    ours = strict.post(CALLBACK, fields(back), headers=PAGE)  # a page of ours that is out of date
    assert ours.status_code == 403 and b"out of date" in ours.content
    assert browser.come(back).status_code == 302, "the attempt is still good"


def test_the_form_of_the_fragment_page_is_accepted(browser: Browser):
    strict = Client(enforce_csrf_checks=True)
    theirs = Browser(browser.provider, strict)
    back = theirs.back(theirs.start())
    page = strict.get(CALLBACK, headers=PAGE).content.decode()
    token = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[0]
    response = strict.post(CALLBACK, {**fields(back), "csrfmiddlewaretoken": token}, headers=PAGE)

    assert response.status_code == 302 and theirs.login == "ann"


def test_a_state_of_a_fragment_counts_once(browser: Browser):  # A16
    back = browser.back(browser.start())
    assert browser.come(back).status_code == 302

    refused(browser.come(back), "state_unknown", 400)


def test_a_response_for_another_browser_is_refused(browser: Browser):  # A16
    back = browser.back(browser.start())
    victim = Browser(browser.provider)
    victim.start()

    refused(victim.come(back), "state_unknown", 400)
    assert victim.login is None


def test_a_token_of_another_attempt_is_refused(browser: Browser):  # A15
    first = fields(browser.back(browser.start()))
    second = fields(browser.back(browser.start()))
    response = browser.client.post(CALLBACK, {**second, "id_token": first["id_token"]}, headers=PAGE)

    refused(response, "token_nonce", 401)


def test_a_code_does_not_answer_a_fragment_attempt(browser: Browser):
    state = fields(browser.back(browser.start()))["state"]
    response = browser.client.get(CALLBACK, {"code": "c", "state": state}, headers=PAGE)

    refused(response, "response_malformed", 400)
    assert not browser.provider.asked("token")


def test_a_fragment_does_not_answer_a_code_attempt(provider: HostileProvider):
    active(provider)
    ann()
    browser = Browser(provider)
    state = dict(parse_qsl(urlsplit(browser.start()).query))["state"]
    token = provider.sign(provider.right_claims())

    refused(browser.client.post(CALLBACK, {"state": state, "id_token": token}, headers=PAGE), "response_malformed", 400)


def test_an_error_in_the_fragment_is_shown(browser: Browser):
    state = fields(browser.back(browser.start()))["state"]
    response = browser.client.post(CALLBACK, {"state": state, "error": "access_denied"}, headers=PAGE)

    refused(response, "provider_denied", 401)


@pytest.mark.parametrize(
    "changed",
    [{"id_token": "x" * 20_000}, {"id_token": ""}, {"id_token": ["a", "b"]}, {"state": ["a", "b"]},
     {"error": "access_denied"}],
)  # fmt: skip
def test_a_malformed_response_is_refused(browser: Browser, changed: dict[str, Any]):  # A13
    right = fields(browser.back(browser.start()))
    response = browser.client.post(CALLBACK, {**right, **changed}, headers=PAGE)

    assert response.status_code in (400, 401)
    assert browser.login is None


@pytest.mark.parametrize("at_hash", [ABSENT, half_hash("another"), None, 7])
def test_the_access_token_must_match_at_hash(with_access_token: Browser, at_hash: Any):
    browser = with_access_token
    browser.provider.claims = {"at_hash": at_hash}

    refused(browser.sign_in(), "token_access_hash", 401)


def test_a_missing_or_other_access_token_is_refused(with_access_token: Browser):
    browser = with_access_token
    for changed in ({"access_token": "another"}, {"access_token": ""}):
        right = fields(browser.back(browser.start()))
        refused(browser.client.post(CALLBACK, {**right, **changed}, headers=PAGE), "token_access_hash", 401)
    right = fields(browser.back(browser.start()))
    del right["access_token"]
    refused(browser.client.post(CALLBACK, right, headers=PAGE), "token_access_hash", 401)
