"""ID tokens that the OpenID Foundation's suite does not think of, each refused with its code."""

import base64
import json
import time
from typing import Any

import pytest

from sso.refusals import REASONS
from sso.tokens import token_check
from tests.providers.behaviours import answers
from tests.providers.hostile import LOGOUT_EVENT, HostileProvider
from tests.providers.signing import ABSENT, jwk, part, private_key, public_pem
from tests.sso.relying_party import Token, changed, is_refused, serve, signed
from tests.sso.sign_ins import Browser, active, ann, code_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(provider: HostileProvider, db: None) -> Browser:
    ann()
    return Browser(provider)


def with_header(**header: Any) -> Token:
    """A forger's own key, which the header offers."""
    return lambda provider, right: provider.sign(right, key="rsa-forged", kid="rsa-1", **header)


def with_payload(before: str, after: str) -> Token:
    """JSON that no encoder would write."""

    def make(provider: HostileProvider, right: dict[str, Any]) -> str:
        text = json.dumps({name: value for name, value in right.items() if value is not ABSENT})
        assert before in text
        return provider.sign(text.replace(before, after, 1).encode())

    return make


def raw(text: str) -> Token:
    return lambda provider, right: text


def repeated(times: int) -> Token:
    """The header, payload and signature of a right token, so many parts of it."""

    def make(provider: HostileProvider, right: dict[str, Any]) -> str:
        parts = provider.sign(right).split(".")
        return ".".join([*parts, *parts][:times])

    return make


FORGED = base64.b64encode(public_pem("rsa-forged")).decode()
EXTRA: dict[str, tuple[Token, str]] = {
    "alg nOnE": (signed(alg="nOnE", signed_with="none"), "token_alg"),
    "alg NONE without a kid": (signed(alg="NONE", signed_with="none", kid=ABSENT), "token_alg"),
    "alg empty": (signed(alg="", signed_with="none"), "token_alg"),
    "alg absent": (signed(alg=ABSENT, signed_with="RS256"), "token_alg"),
    "alg a list": (signed(alg=["RS256"], signed_with="RS256"), "token_alg"),
    "HS256 with the public key": (signed(alg="HS256", key=public_pem("rsa-1"), kid="rsa-1"), "token_alg"),  # A02
    "HS256 with the client secret": (signed(alg="HS256", key=b"client-secret-canary", kid="rsa-1"), "token_alg"),
    "HS256 with the key as JSON": (
        signed(alg="HS256", key=json.dumps(jwk("rsa-1")).encode(), kid="rsa-1"),
        "token_alg",
    ),
    "RS512": (signed(alg="RS512"), "token_alg"),
    "PS256 under a key for RS256": (signed(alg="PS256"), "token_key"),
    "ES256 under the kid of an RSA key": (signed(alg="ES256", key="p256-1", kid="rsa-1"), "token_key"),
    "RS256 under the kid of an EC key": (signed(kid="p256-1"), "token_key"),
    "header jwk": (with_header(jwk=jwk("rsa-forged", kid="rsa-1")), "token_signature"),  # A03
    "header jku": (with_header(jku="{issuer}/forged-keys"), "token_signature"),
    "header x5u": (with_header(x5u="{issuer}/forged-keys"), "token_signature"),
    "header x5c": (with_header(x5c=[FORGED]), "token_signature"),
    "header crit": (signed(crit=["exp"]), "token_form"),  # A07
    "header crit with b64": (signed(crit=["b64"], b64=False), "token_form"),
    "kid a path": (signed(kid="../../../../dev/null"), "token_key"),  # A04
    "kid SQL": (signed(kid="rsa-1' OR '1'='1"), "token_key"),
    "kid a number": (signed(kid=1), "token_form"),
    "kid null": (signed(kid=None), "token_form"),
    "kid empty": (signed(kid=""), "token_form"),
    "kid with NUL": (signed(kid="rsa-1\0"), "token_form"),
    "kid of 10 KB": (signed(kid="k" * 10_000), "token_form"),
    "kid with a space more": (signed(kid="rsa-1 "), "token_key"),
    "kid in capitals": (signed(kid="RSA-1"), "token_key"),
    "kid of another's key": (signed(key="rsa-forged"), "token_key"),
    "typ logout+jwt": (signed(typ="logout+jwt"), "token_form"),
    "typ at+jwt": (signed(typ="at+jwt"), "token_form"),
    "a key with use enc": (signed(key="rsa-enc"), "token_key"),
    "a key of 1024 bits": (signed(key="small-1"), "token_key"),  # A14
    "a published symmetric key": (signed(alg="HS256", key=b"published" * 4, kid="oct-1"), "token_alg"),
    "a published symmetric key under RS256": (signed(alg="RS256", kid="oct-1"), "token_key"),
    "iss a list": (lambda p, right: p.sign({**right, "iss": [p.issuer]}), "token_issuer"),  # A08
    "iss with a slash more": (lambda p, right: p.sign({**right, "iss": p.issuer + "/"}), "token_issuer"),
    "iss of another realm": (lambda p, right: p.sign({**right, "iss": p.url_idp + "/realms/other"}), "token_issuer"),
    "iss in capitals": (lambda p, right: p.sign({**right, "iss": p.issuer.upper()}), "token_issuer"),
    "iss a part": (lambda p, right: p.sign({**right, "iss": p.url_idp}), "token_issuer"),
    "iss absent": (changed(iss=ABSENT), "token_issuer"),
    "aud a superstring": (changed(aud="servicebase-2"), "token_audience"),  # A09
    "aud a part": (changed(aud="service"), "token_audience"),
    "aud empty list": (changed(aud=[]), "token_audience"),
    "aud several without azp": (changed(aud=["servicebase", "another"]), "token_audience"),
    "aud several with another's azp": (changed(aud=["servicebase", "another"], azp="another"), "token_audience"),
    "aud ours with another's azp": (changed(azp="another"), "token_audience"),
    "aud a list in a list": (changed(aud=[["servicebase"]]), "token_audience"),
    "aud an object": (changed(aud={"servicebase": 1}), "token_audience"),
    "exp 1e308": (changed(exp=1e308), "token_time"),  # A10
    "exp 1e999": (with_payload('"exp": 1', '"exp": 1e999, "x": 1'), "token_form"),
    "exp NaN": (with_payload('"exp": 1', '"exp": NaN, "x": 1'), "token_form"),
    "exp text": (changed(exp="4000000000"), "token_time"),
    "exp true": (changed(exp=True), "token_time"),
    "exp past": (lambda p, right: p.sign({**right, "exp": int(time.time()) - 61}), "token_clock"),
    "exp absent": (changed(exp=ABSENT), "token_time"),
    "iat 3 days old": (lambda p, right: p.sign({**right, "iat": int(time.time()) - 259_200}), "token_clock"),
    "iat an hour ahead": (lambda p, right: p.sign({**right, "iat": int(time.time()) + 3600}), "token_clock"),
    "iat negative": (changed(iat=-1), "token_time"),
    "nbf ahead": (lambda p, right: p.sign({**right, "nbf": int(time.time()) + 3600}), "token_clock"),
    "nbf text": (changed(nbf="now"), "token_time"),
    "nonce absent": (changed(nonce=ABSENT), "token_nonce"),  # A15
    "nonce a list": (lambda p, right: p.sign({**right, "nonce": [right["nonce"]]}), "token_nonce"),
    "events present": (changed(events={LOGOUT_EVENT: {}}), "token_kind"),
    "sub empty": (changed(sub=""), "token_subject"),
    "sub a number": (changed(sub=1), "token_subject"),
    "sub of 256 characters": (changed(sub="s" * 256), "token_subject"),
    "sub twice": (with_payload('"sub": ', '"sub": "victim", "sub": '), "token_form"),  # A12
    "non-ASCII": (lambda p, right: p.sign(right).replace(".", ".é", 1), "token_form"),
    "a JWE": (lambda p, right: ".".join([part(b'{"alg":"RSA-OAEP","enc":"A256GCM"}'), *["YQ"] * 4]), "token_form"),
    "two parts": (repeated(2), "token_form"),
    "four parts": (repeated(4), "token_form"),
    "no JSON": (raw("YQ.YQ.YQ"), "token_form"),
    "a list for claims": (lambda p, right: p.sign(b"[1]"), "token_form"),
    "spaces around": (lambda p, right: f" {p.sign(right)}\n", "token_form"),
    "padding": (lambda p, right: p.sign(right) + "==", "token_form"),
}


@pytest.mark.parametrize("response_type", ["code", pytest.param("id_token", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("which", EXTRA)
def test_a_token_that_the_suite_does_not_think_of_is_refused(browser: Browser, which: str, response_type: str):
    token, code = EXTRA[which]
    provider = browser.provider
    provider.jwks = {
        "keys": [
            jwk("rsa-1", alg="RS256"),
            jwk("rsa-enc", use="enc"),
            jwk("small-1"),
            jwk("p256-1"),
            {"kty": "oct", "kid": "oct-1", "k": part(b"published" * 4)},
        ]
    }
    provider.serve("/realms/main/forged-keys", answers({"keys": [jwk("rsa-forged", kid="rsa-1")]}))
    active(provider, response_type=response_type, algorithms=["RS256", "PS256", "ES256", "HS256", "RS512", "none"])
    serve(provider, lambda p, right: token(p, right))

    is_refused(browser, code)
    assert [visit for visit in provider.requests if "forged" in visit.path] == []


@pytest.mark.parametrize(
    ("response_type", "size", "code"),
    [
        ("code", 1_000_000, "token_answer"),
        ("code", 17_000, "token_form"),
        ("id_token", 1_000_000, "response_malformed"),
        ("id_token", 17_000, "response_malformed"),
    ],
)
def test_a_token_of_a_megabyte_is_never_read(browser: Browser, response_type: str, size: int, code: str):  # A13
    active(browser.provider, response_type=response_type)
    serve(browser.provider, raw("x" * size))
    answer = browser.sign_in()

    assert (answer.status_code, code_of(answer)) == (REASONS[code].status, code) and browser.login is None


def test_an_empty_token_is_no_answer(browser: Browser):
    active(browser.provider)
    serve(browser.provider, raw(""))

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


def test_headers_that_offer_keys_do_not_disturb_a_right_signature(browser: Browser):  # A03
    active(browser.provider)
    url = browser.provider.url_idp + "/forged-keys"
    serve(browser.provider, signed(jwk=jwk("rsa-forged"), jku=url, x5u=url, x5c=[FORGED]))

    assert browser.sign_in().status_code == 302 and browser.login == "ann"
    assert [visit for visit in browser.provider.requests if "forged" in visit.path] == []


def test_a_flood_of_unknown_kids_asks_the_provider_once(browser: Browser):  # A32
    provider = browser.provider
    active(provider)
    browser.sign_in()
    provider.requests.clear()
    for number in range(5):
        serve(provider, signed(key="rsa-forged", kid=f"unknown-{number}"))
        answer = Browser(provider).sign_in()
        assert code_of(answer) == "token_key"

    assert len(provider.asked("certs")) == 1


def test_the_checks_of_this_file_are_those_of_the_product():
    """The forged keys really differ, the real one really signs: else every refusal above would be for nothing."""
    with HostileProvider() as provider:
        claims = provider.right_claims(nonce="n")
        expected = token_check.Expected(
            issuer=provider.issuer, client_id="servicebase", now=time.time(), nonce_hash=token_check.hashed("n")
        )
        assert token_check.check(provider.sign(claims), expected, [jwk("rsa-1")])["sub"] == "sub-ann"
    assert private_key("rsa-forged") is not private_key("rsa-1")
