"""ID tokens beyond the OpenID Foundation's suite, sent by a provider. Every case of a wrong token is in the table of
`test_token_check.py`; here stands one for each code that the suite does not cover, and what needs HTTP."""

import base64
import time

import pytest

from sso.refusals import Refusal
from sso.tokens import token_check
from tests.providers.behaviours import answers
from tests.providers.hostile import LOGOUT_EVENT, HostileProvider
from tests.providers.signing import jwk, private_key, public_pem
from tests.sso.relying_party import Token, changed, is_refused, serve, signed
from tests.sso.sign_ins import Browser, active, ann, code_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(provider: HostileProvider, db: None) -> Browser:
    ann()
    return Browser(provider)


FORGED = base64.b64encode(public_pem("rsa-forged")).decode()


@pytest.mark.parametrize("response_type", ["code", "id_token"])
@pytest.mark.parametrize(
    ("token", "code"),
    [(signed(crit=["exp"]), "token_form"), (changed(events={LOGOUT_EVENT: {}}), "token_kind")],
    ids=["form", "kind"],
)
def test_a_wrong_token_is_refused(browser: Browser, token: Token, code: str, response_type: str):
    active(browser.provider, response_type=response_type)
    serve(browser.provider, token)

    is_refused(browser, code)


def test_a_key_that_a_header_offers_is_never_fetched(browser: Browser):  # A03
    provider = browser.provider
    url = f"{provider.issuer}/forged-keys"
    provider.serve("/realms/main/forged-keys", answers({"keys": [jwk("rsa-forged", kid="rsa-1")]}))
    active(provider)
    offer = {"jwk": jwk("rsa-forged", kid="rsa-1"), "jku": url, "x5u": url, "x5c": [FORGED]}
    serve(provider, signed(key="rsa-forged", kid="rsa-1", **offer))
    is_refused(browser, "token_signature")
    serve(provider, signed(**offer))

    assert browser.sign_in().status_code == 302 and browser.login == "ann", "an offer does not invalidate a token"
    assert [visit for visit in provider.requests if "forged" in visit.path] == []


@pytest.mark.parametrize("key", ["rsa-enc", "small-1", "oct-1"])
def test_a_published_key_that_is_not_stored_verifies_nothing(browser: Browser, key: str):  # A14
    secret = {"kty": "oct", "kid": "oct-1", "k": "cHVibGlzaGVk"}
    browser.provider.jwks = {"keys": [jwk("rsa-1"), jwk("rsa-enc", use="enc"), jwk("small-1"), secret]}
    active(browser.provider)
    serve(browser.provider, signed(kid="oct-1") if key == "oct-1" else signed(key=key))

    is_refused(browser, "token_key")


@pytest.mark.parametrize(
    ("response_type", "size", "code"),
    [
        ("code", 1_000_000, "token_answer"),
        ("code", 17_000, "token_form"),
        ("id_token", 1_000_000, "response_malformed"),
        ("id_token", 17_000, "response_malformed"),
    ],
)
def test_a_huge_token_is_refused_unread(browser: Browser, response_type: str, size: int, code: str):  # A13
    active(browser.provider, response_type=response_type)
    serve(browser.provider, lambda provider, right: "x" * size)
    response = browser.sign_in()

    assert (response.status_code, code_of(response)) == (Refusal[code.upper()].status, code) and browser.login is None


def test_an_empty_token_is_refused(browser: Browser):
    active(browser.provider)
    serve(browser.provider, lambda provider, right: "")

    is_refused(browser, "token_form")


@pytest.mark.parametrize(("off_by", "code"), [(-59, ""), (59, ""), (-600, "token_clock"), (600, "token_clock")])
def test_clocks_may_differ_by_a_minute(browser: Browser, off_by: int, code: str):  # A11
    active(browser.provider)
    provider = browser.provider
    provider.now = lambda: time.time() + off_by
    provider.claims = {"exp": int(time.time() + off_by) + 60}
    if code:
        entry = is_refused(browser, code)
        assert "clock" in entry.detail
    else:
        assert browser.sign_in().status_code == 302 and browser.login == "ann"


def test_the_forged_key_differs_and_the_real_one_verifies():
    """Otherwise the refusals above would prove nothing."""
    with HostileProvider() as provider:
        claims = provider.right_claims(nonce="n")
        expected = token_check.ExpectedToken(
            issuer=provider.issuer, client_id="servicebase", now=time.time(), nonce_hash=token_check.sha256_hex("n")
        )
        assert token_check.check_id_token(provider.sign(claims), expected, [jwk("rsa-1")])["sub"] == "sub-ann"
    assert private_key("rsa-forged") is not private_key("rsa-1")
