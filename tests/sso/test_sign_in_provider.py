"""Requests of a sign-in to the provider, and the handling of late, malformed and wrong responses."""

import base64
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from accounts.models import User
from sso.connections import certificate_updates
from sso.models import IdpCertificate, OidcSetting
from sso.provider import request_slots
from tests.config.stack import eventually
from tests.providers.behaviours import (
    Behaviour,
    hangs_up,
    redirects_to,
    responds_with,
    responds_with_error,
    responds_with_gzip_bomb,
    responds_with_html,
    responds_with_huge_body,
    sends_byte_by_byte,
    sends_endless_chunks,
    stays_silent,
)
from tests.providers.hostile import HostileProvider
from tests.providers.signing import ABSENT
from tests.sso.sign_ins import CALLBACK_PATH, HTML_HEADERS, Browser, check_refusal, make_active_connection, make_ann

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(provider: HostileProvider) -> Browser:
    make_active_connection(provider)
    make_ann()
    return Browser(provider)


@pytest.fixture
def short_deadline(monkeypatch: Any) -> None:
    monkeypatch.setattr(request_slots, "MAX_REQUEST_S", 1.0)


# Client authentication.


def test_the_secret_is_sent_by_http_basic(browser: Browser):
    browser.sign_in()
    (request,) = browser.provider.requests_to("token")

    assert request.headers["authorization"] == "Basic " + base64.b64encode(b"servicebase:client-secret-canary").decode()
    assert set(request.form) == {"grant_type", "code", "redirect_uri", "code_verifier"}
    assert 43 <= len(request.form["code_verifier"]) <= 128


@pytest.mark.parametrize(
    ("auth_methods", "is_posted"),
    [
        (["client_secret_post"], True),
        (["private_key_jwt", "client_secret_post"], True),
        (["client_secret_post", "client_secret_basic"], False),
        (["private_key_jwt"], False),
        ([], False),
    ],
)
def test_the_secret_is_posted_only_if_the_provider_requires_it(
    browser: Browser, auth_methods: list[str], is_posted: bool
):
    OidcSetting.objects.update(token_auth_methods=auth_methods)
    assert browser.sign_in().status_code == 302
    (request,) = browser.provider.requests_to("token")

    assert ("client_secret" in request.form, "authorization" in request.headers) == (is_posted, not is_posted)


def test_special_characters_in_the_credentials_are_encoded(provider: HostileProvider):
    provider.client_id, provider.client_secret = "a client:1", "pä ss:wörd%+&="
    make_active_connection(provider, client_id=provider.client_id)
    make_ann()

    assert Browser(provider).sign_in().status_code == 302


@pytest.mark.parametrize("columns", [{"authorization_type": "pkce"}, {"secret": ""}])
def test_a_public_client_sends_no_secret(provider: HostileProvider, columns: dict[str, str]):
    secret = columns.get("secret", provider.client_secret)
    provider.client_secret = ""
    make_active_connection(provider, **{"secret": secret, **columns})
    make_ann()
    browser = Browser(provider)
    assert browser.sign_in().status_code == 302
    (request,) = provider.requests_to("token")

    assert "authorization" not in request.headers and "client_secret" not in request.form
    assert request.form["client_id"] == "servicebase" and request.form["code_verifier"]


def test_an_undecipherable_secret_is_refused(browser: Browser):
    OidcSetting.objects.update(client_secret="gAAAAA")

    check_refusal(browser.sign_in(), "not_available", 503)


# The token endpoint.

INVALID_RESPONSES: list[tuple[Behaviour, str, int]] = [
    (responds_with({"error": "invalid_grant", "error_description": "code canary"}, 400), "code_rejected", 401),
    (responds_with({"error": "invalid_client"}, 401), "client_rejected", 401),
    (responds_with({"error": "unauthorized_client"}, 400), "client_rejected", 401),
    (responds_with({"error": "<canary>"}, 400), "code_rejected", 401),
    (responds_with({"error": ["x"]}, 400), "code_rejected", 401),
    (responds_with(b"not json", 400), "code_rejected", 401),
    (responds_with(b"", 404), "code_rejected", 401),
    (responds_with_html(200), "token_answer", 401),
    (responds_with([], 200), "token_answer", 401),
    (responds_with({}, 200), "token_answer", 401),
    (responds_with({"id_token": 5}, 200), "token_answer", 401),
    (responds_with({"id_token": "x.y.z", "access_token": ["a"]}, 200), "token_answer", 401),
    (responds_with({"id_token": "x.y.z", "access_token": "a\nb"}, 200), "token_answer", 401),
    (responds_with({"id_token": "x.y.z", "access_token": "a", "token_type": "mac"}, 200), "token_answer", 401),
    (responds_with({"id_token": "x.y.z", "access_token": "a", "token_type": 7}, 200), "token_answer", 401),
    (responds_with({"id_token": "garbage", "access_token": "a"}, 200), "token_form", 401),
    (responds_with({"id_token": "", "access_token": "a"}, 200), "token_form", 401),
    (responds_with_error(500), "provider_unavailable", 503),
    (responds_with_error(503), "provider_unavailable", 503),
    (responds_with_error(429), "provider_unavailable", 503),
    (redirects_to("http://169.254.169.254/latest"), "provider_unavailable", 503),
    (responds_with_huge_body(), "token_answer", 401),
    (responds_with_gzip_bomb(), "provider_unavailable", 503),
    (hangs_up(), "provider_unavailable", 503),
]


@pytest.mark.parametrize(
    ("behaviour", "code", "status"),
    INVALID_RESPONSES,
    ids=[f"{number}-{invalid_response[1]}" for number, invalid_response in enumerate(INVALID_RESPONSES)],
)
def test_a_response_without_valid_tokens_is_refused(browser: Browser, behaviour: Behaviour, code: str, status: int):
    browser.provider.serve("token", behaviour)
    response = browser.sign_in()

    entry = check_refusal(response, code, status)  # A61
    assert b"canary" not in response.content and "canary" not in entry.detail
    assert browser.login is None


@pytest.mark.parametrize("behaviour", [stays_silent(), sends_byte_by_byte(0.05)], ids=["silent", "drip"])
@pytest.mark.parametrize("endpoint", ["token", "userinfo"])
def test_a_slow_provider_is_abandoned(
    browser: Browser, behaviour: Behaviour, endpoint: str, short_deadline: None
):  # A61
    browser.provider.serve(endpoint, behaviour)
    started_at = time.monotonic()

    check_refusal(browser.sign_in(), "provider_unavailable", 503)
    assert time.monotonic() - started_at < 5


@pytest.mark.parametrize("endpoint", ["token", "userinfo"])
def test_an_endless_response_is_too_large(browser: Browser, endpoint: str):  # A61
    browser.provider.serve(endpoint, sends_endless_chunks())
    check_refusal(browser.sign_in(), f"{endpoint}_answer", 401)


def test_an_unreachable_provider_is_reported(allow_http: None):  # A61
    with HostileProvider() as provider:
        make_active_connection(provider)
        browser = Browser(provider)
        callback_url = browser.authorize(browser.start())

    check_refusal(browser.follow_callback(callback_url), "provider_unavailable", 503)


# Userinfo.


def test_userinfo_is_added_and_the_id_token_takes_precedence(browser: Browser):  # A46
    OidcSetting.objects.update(
        script="function map(c) { return {login: c.preferred_username, email: c.email, phone: c.phone_number} }",
        update_data_when_login=True,
    )
    browser.provider.userinfo = {"email": "other@example.com", "phone_number": "+1", "iss": "x", "aud": "x"}
    assert browser.sign_in().status_code == 302

    setting = OidcSetting.objects.get()
    assert setting.last_sign_in_claims and setting.last_sign_in_claims["iss"] == browser.provider.issuer
    user = User.objects.get(login="ann")
    assert (user.email, user.phone) == ("ann@example.com", "+1")
    (request,) = browser.provider.requests_to("userinfo")
    assert request.headers["authorization"].startswith("Bearer access-") and not request.query


def test_claims_only_in_userinfo_are_used(browser: Browser):
    browser.provider.claims = {"preferred_username": ABSENT, "email": ABSENT}

    assert browser.sign_in().status_code == 302 and browser.login == "ann"


@pytest.mark.parametrize("sub", ["sub-bob", ABSENT, None, "", ["sub-ann"], "SUB-ANN"])
def test_userinfo_of_another_subject_is_refused(browser: Browser, sub: Any):  # A46
    browser.provider.userinfo = {"sub": sub}

    check_refusal(browser.sign_in(), "userinfo_subject", 401)


@pytest.mark.parametrize(
    ("behaviour", "code", "status"),
    [
        (responds_with([]), "userinfo_answer", 401),
        (responds_with(b"text"), "userinfo_answer", 401),
        (responds_with(b"e30.e30.e30", content_type="application/jwt"), "userinfo_answer", 401),
        (responds_with(b'{"sub": "sub-ann", "sub": "sub-bob"}'), "userinfo_answer", 401),
        (responds_with({}, 401), "userinfo_answer", 401),
        (responds_with_error(403), "userinfo_answer", 401),
        (responds_with_error(500), "provider_unavailable", 503),
        (responds_with_error(429), "provider_unavailable", 503),
        (redirects_to("http://127.0.0.1/"), "provider_unavailable", 503),
    ],
)
def test_invalid_userinfo_is_refused(browser: Browser, behaviour: Behaviour, code: str, status: int):
    browser.provider.serve("userinfo", behaviour)

    check_refusal(browser.sign_in(), code, status)


def test_without_a_userinfo_endpoint_no_request_is_made(browser: Browser):
    OidcSetting.objects.update(userinfo_endpoint="")

    assert browser.sign_in().status_code == 302
    assert not browser.provider.requests_to("userinfo")


# Certificates.


def test_certificates_of_a_pair_without_keys_are_fetched(browser: Browser):
    assert not IdpCertificate.objects.exists()
    assert browser.sign_in().status_code == 302

    assert [certificate.kid for certificate in IdpCertificate.objects.all()] == ["rsa-1"]
    assert browser.sign_in().status_code == 302
    assert len(browser.provider.requests_to("certs")) == 1


def test_unknown_kids_cause_one_request(browser: Browser):  # A32
    browser.sign_in()
    count_before = len(browser.provider.requests_to("certs"))
    browser.provider.id_token = lambda claims: browser.provider.sign(
        claims, key="rsa-2", kid=f"unknown-{time.time_ns()}"
    )
    for _ in range(4):
        check_refusal(browser.sign_in(), "token_key", 401)

    assert len(browser.provider.requests_to("certs")) == count_before + 1


@pytest.mark.parametrize(
    "behaviour", [responds_with_error(500), responds_with_html(), responds_with({"keys": []}), hangs_up()]
)
def test_without_any_key_sign_in_is_refused(browser: Browser, behaviour: Behaviour):
    browser.provider.serve("certs", behaviour)

    check_refusal(browser.sign_in(), "certificates_unavailable", 503)
    browser.provider.behave_correctly("certs")
    assert browser.sign_in().status_code == 302


def test_a_failing_key_set_leaves_the_stored_keys_in_use(browser: Browser):
    browser.sign_in()
    browser.provider.serve("certs", responds_with_error(500))

    assert browser.sign_in().status_code == 302


# An unresolved provider.


def test_an_unresolved_provider_is_looked_up_at_a_sign_in(provider: HostileProvider):
    setting = make_active_connection(provider)
    OidcSetting.objects.filter(pk=setting.pk).update(issuer="", resolve_tried_at=None)
    make_ann()

    assert Browser(provider).sign_in().status_code == 302
    assert len(provider.requests_to("discovery")) == 1


def test_an_unresolved_provider_is_looked_up_once_in_30_s(provider: HostileProvider):
    setting = make_active_connection(provider)
    OidcSetting.objects.filter(pk=setting.pk).update(issuer="", resolve_tried_at=None)
    for endpoint in ("discovery", "certs"):
        provider.serve(endpoint, responds_with_error(500))
    check_refusal(Client().get("/sso/start/"), "provider_unresolved", 503)
    request_count = len(provider.requests)
    check_refusal(Client().get("/sso/start/"), "provider_unresolved", 503)

    assert request_count and len(provider.requests) == request_count


# Slots: two sign-ins at a time call the provider.


def test_the_third_sign_in_waits_with_its_attempt_unused(browser: Browser):  # A61
    callback_url = browser.authorize(browser.start())
    with request_slots.request_slot(), request_slots.request_slot():
        for _ in range(3):
            page = browser.follow_callback(callback_url)
            assert (page.status_code, page["Retry-After"]) == (503, "1")
            assert b'<meta http-equiv="refresh" content="1">' in page.content
            assert page["Cache-Control"] == "no-store"
    assert not browser.provider.requests_to("token")

    assert browser.follow_callback(callback_url).status_code == 302


def test_the_waiting_page_keeps_the_fields_of_the_fragment(provider: HostileProvider):
    make_active_connection(provider, response_type="id_token")
    make_ann()
    browser = Browser(provider)
    callback_url = browser.authorize(browser.start())
    with request_slots.request_slot(), request_slots.request_slot():
        page = browser.follow_callback(callback_url + "&evil=%22%3E%3Cscript%3E")
    content = page.content.decode()

    assert page.status_code == 503 and 'name="id_token" value="ey' in content
    assert "evil" not in content and 'http-equiv="refresh"' not in content
    assert "script-src 'nonce-" in page["Content-Security-Policy"]
    assert browser.follow_callback(callback_url).status_code == 302


def test_looking_up_a_provider_takes_a_slot(browser: Browser):
    OidcSetting.objects.update(issuer="", resolve_tried_at=None)
    with request_slots.request_slot(), request_slots.request_slot():
        page = browser.client.get("/sso/start/")

    assert page.status_code == 503 and b'http-equiv="refresh"' in page.content
    assert not browser.provider.requests


def test_an_unknown_state_takes_no_slot(browser: Browser):
    with request_slots.request_slot(), request_slots.request_slot():
        check_refusal(
            browser.client.get(CALLBACK_PATH, {"code": "c", "state": "s" * 43}, headers=HTML_HEADERS),
            "state_unknown",
            400,
        )


def test_a_refusal_releases_its_slot(browser: Browser):
    browser.provider.serve("token", responds_with_error(500))
    for _ in range(5):
        check_refusal(browser.sign_in(), "provider_unavailable", 503)
    browser.provider.behave_correctly("token")

    assert browser.sign_in().status_code == 302


def test_a_slow_provider_never_occupies_all_threads(transactional_db: None, provider: HostileProvider):  # A61
    make_active_connection(provider)
    make_ann()
    release = provider.hold("token")
    browsers = [Browser(provider) for _ in range(4)]
    callback_urls = [browser.authorize(browser.start()) for browser in browsers]
    statuses: list[int] = []
    lock = threading.Lock()

    def return_to_callback(number: int) -> None:
        try:
            status = browsers[number].follow_callback(callback_urls[number]).status_code
            with lock:
                statuses.append(status)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(return_to_callback, number) for number in range(4)]
        eventually(lambda: len(statuses) == 2 and len(provider.requests_to("token")) == 2, timeout_s=5)
        assert statuses == [503, 503], "two requests get the waiting page immediately"
        release.set()
        for future in futures:
            future.result()
    assert sorted(statuses) == [302, 302, 503, 503]


def test_all_calls_share_a_deadline_of_six_seconds(browser: Browser):
    assert request_slots.MAX_REQUEST_S == 6.0 and certificate_updates.MAX_WAIT_S <= 7
