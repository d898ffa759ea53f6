"""ID tokens beyond the OpenID Foundation's suite, sent by a provider: one for each code that the suite does not cover,
and tests that need HTTP. The table in `test_token_check.py` has every case of an invalid token."""

import base64
import time

import pytest

from sso.refusals import Refusal
from sso.tokens import token_check
from tests.providers.behaviours import responds_with
from tests.providers.hostile import LOGOUT_EVENT, HostileProvider
from tests.providers.signing import jwk, private_key, public_pem
from tests.sso.relying_party import TokenFunction, check_sign_in_refused, serve_token, signed_with, with_changed_claims
from tests.sso.sign_ins import Browser, make_active_connection, make_ann, refusal_code

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(provider: HostileProvider, db: None) -> Browser:
    make_ann()
    return Browser(provider)


FORGED_CERTIFICATE = base64.b64encode(public_pem("rsa-forged")).decode()


@pytest.mark.parametrize("response_type", ["code", "id_token"])
@pytest.mark.parametrize(
    ("make_token", "code"),
    [(signed_with(crit=["exp"]), "token_form"), (with_changed_claims(events={LOGOUT_EVENT: {}}), "token_kind")],
    ids=["form", "kind"],
)
def test_a_wrong_token_is_refused(browser: Browser, make_token: TokenFunction, code: str, response_type: str):
    make_active_connection(browser.provider, response_type=response_type)
    serve_token(browser.provider, make_token)

    check_sign_in_refused(browser, code)


def test_a_key_that_a_header_offers_is_never_fetched(browser: Browser):  # A03
    provider = browser.provider
    key_url = f"{provider.issuer}/forged-keys"
    provider.serve("/realms/main/forged-keys", responds_with({"keys": [jwk("rsa-forged", kid="rsa-1")]}))
    make_active_connection(provider)
    header = {"jwk": jwk("rsa-forged", kid="rsa-1"), "jku": key_url, "x5u": key_url, "x5c": [FORGED_CERTIFICATE]}
    serve_token(provider, signed_with(key="rsa-forged", kid="rsa-1", **header))
    check_sign_in_refused(browser, "token_signature")
    serve_token(provider, signed_with(**header))

    assert browser.sign_in().status_code == 302 and browser.login == "ann", (
        "the header field does not invalidate a token"
    )
    assert [request for request in provider.requests if "forged" in request.path] == []


@pytest.mark.parametrize("key", ["rsa-enc", "small-1", "oct-1"])
def test_a_published_key_that_is_not_stored_verifies_nothing(browser: Browser, key: str):  # A14
    symmetric_key = {"kty": "oct", "kid": "oct-1", "k": "cHVibGlzaGVk"}
    browser.provider.jwks = {"keys": [jwk("rsa-1"), jwk("rsa-enc", use="enc"), jwk("small-1"), symmetric_key]}
    make_active_connection(browser.provider)
    serve_token(browser.provider, signed_with(kid="oct-1") if key == "oct-1" else signed_with(key=key))

    check_sign_in_refused(browser, "token_key")


@pytest.mark.parametrize(
    ("response_type", "token_length", "code"),
    [
        ("code", 1_000_000, "token_answer"),
        ("code", 17_000, "token_form"),
        ("id_token", 1_000_000, "response_malformed"),
        ("id_token", 17_000, "response_malformed"),
    ],
)
def test_a_huge_token_is_refused_without_being_read(
    browser: Browser, response_type: str, token_length: int, code: str
):  # A13
    make_active_connection(browser.provider, response_type=response_type)
    serve_token(browser.provider, lambda provider, _: "x" * token_length)
    response = browser.sign_in()

    assert (response.status_code, refusal_code(response)) == (
        Refusal[code.upper()].status,
        code,
    ) and browser.login is None


def test_an_empty_token_is_refused(browser: Browser):
    make_active_connection(browser.provider)
    serve_token(browser.provider, lambda provider, _: "")

    check_sign_in_refused(browser, "token_form")


@pytest.mark.parametrize(("offset_s", "code"), [(-59, ""), (59, ""), (-600, "token_clock"), (600, "token_clock")])
def test_clocks_may_differ_by_a_minute(browser: Browser, offset_s: int, code: str):  # A11
    make_active_connection(browser.provider)
    provider = browser.provider
    provider.now = lambda: time.time() + offset_s
    provider.claims = {"exp": int(time.time() + offset_s) + 60}
    if code:
        entry = check_sign_in_refused(browser, code)
        assert "clock" in entry.detail
    else:
        assert browser.sign_in().status_code == 302 and browser.login == "ann"


def test_the_forged_key_differs_and_the_real_one_verifies():
    """Otherwise the refusals above would prove nothing."""
    with HostileProvider() as provider:
        claims = provider.valid_claims(nonce="n")
        expected_token = token_check.ExpectedToken(
            issuer=provider.issuer, client_id="servicebase", now=time.time(), nonce_hash=token_check.sha256_hex("n")
        )
        assert token_check.check_id_token(provider.sign(claims), expected_token, [jwk("rsa-1")])["sub"] == "sub-ann"
    assert private_key("rsa-forged") is not private_key("rsa-1")
