"""The relying-party tests of the OpenID Foundation's suite (`oidcc-client-test…`).

Each stands here under its name: the provider does what that name says, the outcome is the suite's.
"""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client

from sso.models import IdpCertificate, OidcSetting
from tests.providers.behaviours import answers
from tests.providers.hostile import HostileProvider
from tests.providers.signing import ABSENT, jwk
from tests.sso.relying_party import Token, changed, is_refused, serve, signed
from tests.sso.sign_ins import Browser, active, ann, code_of, refused

pytestmark = pytest.mark.django_db
FLOWS = ("code", "id_token", "id_token token")
BACKCHANNEL = "/sso/backchannel-logout/"


@pytest.fixture
def browser(provider: HostileProvider, db: None) -> Browser:
    ann()
    return Browser(provider)


def name(suffix: str) -> str:
    return f"oidcc-client-test{suffix}"


# Sign in, or do what the name says.


@pytest.mark.parametrize("response_type", FLOWS)
def test_oidcc_client_test(browser: Browser, response_type: str):
    active(browser.provider, response_type=response_type)
    response = browser.sign_in(next="/account/")

    assert (response.status_code, response.headers.get("Location")) == (302, "/account/"), response.content
    assert browser.login == "ann"


@pytest.mark.parametrize("key", ["rsa-1", "rsa-2"])
def test_oidcc_client_test_idtoken_sig_rs256(browser: Browser, key: str):
    browser.provider.jwks = {"keys": [jwk("rsa-1"), jwk("rsa-2"), jwk("p256-1")]}
    active(browser.provider)
    serve(browser.provider, signed(key=key))

    assert browser.sign_in().status_code == 302 and browser.login == "ann"


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "EdDSA"])
def test_each_supported_algorithm_signs_in(browser: Browser, algorithm: str):
    keys = {"ES256": "p256-1", "EdDSA": "ed-1"}
    browser.provider.jwks = {"keys": [jwk("rsa-1"), jwk("p256-1"), jwk("ed-1")]}
    active(browser.provider, algorithms=["RS256", "PS256", "ES256", "EdDSA"])
    browser.provider.claims = {"at_hash": ABSENT}  # EdDSA has its own hash
    serve(browser.provider, signed(key=keys.get(algorithm, "rsa-1"), alg=algorithm))

    assert browser.sign_in().status_code == 302 and browser.login == "ann"


def test_without_kid_the_key_that_is_still_published_is_used(browser: Browser):
    """Of a provider whose tokens name no key, after a change of keys with an overlap."""
    browser.provider.jwks = {"keys": [jwk("rsa-1"), jwk("rsa-2")]}
    active(browser.provider)
    assert browser.sign_in().status_code == 302
    browser.provider.jwks = {"keys": [jwk("rsa-1")]}
    serve(browser.provider, signed(kid=ABSENT))
    assert browser.sign_in().status_code == 302
    assert IdpCertificate.objects.get().kid == "rsa-1"


@pytest.mark.parametrize("others", [[], ["p256-1"]])
def test_oidcc_client_test_kid_absent_single_jwks(browser: Browser, others: list[str]):  # A05
    browser.provider.jwks = {"keys": [jwk("rsa-1", kid=ABSENT), *map(jwk, others)]}
    active(browser.provider)
    serve(browser.provider, signed(kid=ABSENT))

    assert browser.sign_in().status_code == 302 and browser.login == "ann"


def test_oidcc_client_test_userinfo_bearer_header(browser: Browser):
    active(browser.provider)
    browser.sign_in()
    (request,) = browser.provider.asked("userinfo")

    assert request.method == "GET" and request.headers["authorization"].startswith("Bearer access-")
    assert request.query == {} and request.form == {}


def test_oidcc_client_test_scope_userinfo_claims(browser: Browser):
    active(browser.provider, user_field="email", scope="openid email profile", update_data_when_login=True)
    browser.provider.claims = {"email": ABSENT, "preferred_username": ABSENT}
    location = browser.start()
    browser.come(browser.back(location))

    assert dict(parse_qsl(urlsplit(location).query))["scope"] == "openid email profile"
    assert browser.login == "ann"


def test_oidcc_client_test_client_secret_basic(browser: Browser):
    browser.provider.client_id, browser.provider.client_secret = "a:b c", "s:e+c r%e/t&="
    setting = active(browser.provider, client_id=browser.provider.client_id)
    setting.set_secret(browser.provider.client_secret)
    setting.save()
    browser.sign_in()
    (request,) = browser.provider.asked("token")

    assert browser.login == "ann"
    assert request.headers["authorization"].startswith("Basic ")
    assert "client_secret" not in request.form and len(request.form["code_verifier"]) >= 43  # A18


def test_oidcc_client_test_nonce_unless_code_flow(browser: Browser):
    result = set()
    for response_type in FLOWS:
        OidcSetting.objects.all().delete()
        active(browser.provider, response_type=response_type)
        values = dict(parse_qsl(urlsplit(browser.start()).query))
        assert len(values["nonce"]) >= 32 and len(values["state"]) >= 32
        assert ("code_challenge" in values) == (response_type == "code")
        result |= {values["nonce"], values["state"]}

    assert len(result) == 6


def test_oidcc_client_test_discovery_openid_config(browser: Browser):
    active(browser.provider, **NOT_FOUND)
    browser.sign_in()

    assert OidcSetting.objects.get().issuer == browser.provider.issuer
    assert browser.provider.asked("discovery") and browser.login == "ann"


def test_oidcc_client_test_discovery_jwks_uri_keys(browser: Browser):
    browser.provider.discovery = {"jwks_uri": browser.provider.url_idp + "/keys/elsewhere"}
    browser.provider.serve("/keys/elsewhere", answers({"keys": [jwk("rsa-1")]}))
    active(browser.provider, **NOT_FOUND)
    browser.sign_in()

    assert browser.login == "ann" and browser.provider.asked("certs") == []
    assert IdpCertificate.objects.get().kid == "rsa-1"


def test_oidcc_client_test_signing_key_rotation(browser: Browser):
    active(browser.provider)
    browser.sign_in()
    browser.provider.jwks = {"keys": [jwk("rsa-2")]}
    serve(browser.provider, signed(key="rsa-2"))
    other = Browser(browser.provider)
    response = other.sign_in()

    assert response.status_code == 302 and other.login == "ann"
    assert [row.kid for row in IdpCertificate.objects.all()] == ["rsa-2"]


def test_oidcc_client_test_signing_key_rotation_just_before_signing(browser: Browser):
    active(browser.provider)
    browser.sign_in()
    other = Browser(browser.provider)
    address = other.back(other.start())
    browser.provider.jwks = {"keys": [jwk("rsa-2"), jwk("rsa-1")]}
    serve(browser.provider, signed(key="rsa-2"))

    assert other.come(address).status_code == 302 and other.login == "ann"


def test_oidcc_client_test_3rd_party_init_login(browser: Browser):
    active(browser.provider)
    target = "http://testserver/account/?tab=keys#keys"
    location = browser.start(iss=browser.provider.issuer, login_hint="ann@example.com", target_link_uri=target)
    values = dict(parse_qsl(urlsplit(location).query))
    response = browser.come(browser.back(location))

    assert values["login_hint"] == "ann@example.com"
    assert (response.status_code, response["Location"]) == (302, "/account/?tab=keys#keys")
    assert browser.login == "ann"


def test_oidcc_client_test_rp_init_logout(browser: Browser):  # A64
    request = sign_out(browser)

    assert request["post_logout_redirect_uri"] == "http://testserver/sso/logout/"
    assert request["client_id"] == "servicebase" and request["id_token_hint"].count(".") == 2
    back = browser.client.get("/sso/logout/", {"state": request["state"]})
    assert back["Location"] == "/login/?signed_out=1" and browser.login is None


def test_oidcc_client_test_rp_init_logout_other_state(browser: Browser):
    sign_out(browser)
    response = browser.client.get("/sso/logout/", {"state": "another"})

    assert (response.status_code, code_of(response)) == (400, "logout_state") and browser.login is None


def test_oidcc_client_test_rp_init_logout_no_state(browser: Browser):
    sign_out(browser)
    response = browser.client.get("/sso/logout/")

    assert response["Location"] == "/login/?signed_out=1" and browser.login is None


def test_oidcc_client_test_rp_backchannel_rpinitlogout(browser: Browser):
    provider = browser.provider
    other = Browser(provider)
    provider.person["sid"] = "sid-1"
    active(provider)
    other.sign_in()
    sign_out(browser, is_set_up=True)
    response = tell(provider.logout_token(sid="sid-1"))

    assert (response.status_code, response["Cache-Control"]) == (200, "no-store")
    assert other.login is None


def sign_out(browser: Browser, *, is_set_up: bool = False) -> dict[str, str]:
    """What the browser takes along to the provider."""
    if not is_set_up:
        active(browser.provider)
    browser.sign_in()
    assert browser.login == "ann"
    page = browser.client.post("/logout/")
    assert page.status_code == 200 and browser.login is None, page.content
    assert page.context["url"] == browser.provider.url("logout")
    return dict(page.context["fields"])


def tell(*tokens: str) -> Any:
    """The provider's own call, which has no cookie."""
    return Client(enforce_csrf_checks=True).post(BACKCHANNEL, {"logout_token": list(tokens)})


# Refuse.

NOT_FOUND = {
    "issuer": "", "authorization_endpoint": "", "token_endpoint": "", "jwks_uri": "", "userinfo_endpoint": "",
    "end_session_endpoint": "", "algorithms": [],
}  # fmt: skip
SUITE: dict[str, tuple[Token, str]] = {
    "-invalid-iss": (changed(iss="https://another.example"), "token_issuer"),
    "-missing-sub": (changed(sub=ABSENT), "token_subject"),
    "-invalid-aud": (changed(aud="another"), "token_audience"),
    "-missing-aud": (changed(aud=ABSENT), "token_audience"),
    "-missing-iat": (changed(iat=ABSENT), "token_time"),
    "-nonce-invalid": (changed(nonce="another"), "token_nonce"),
    "-invalid-sig-rs256": (signed(signature=b"\0" * 256), "token_signature"),
    "-invalid-sig-hs256": (signed(alg="HS256", kid="rsa-1", key=b"client-secret-canary", signature=b"0"), "token_alg"),
    "-invalid-sig-es256": (signed(alg="ES256", key="p256-1", signature=b"\0" * 64), "token_signature"),
    "-idtoken-sig-none": (signed(alg="none", signed_with="none", kid=ABSENT), "token_alg"),  # A01
    "-kid-absent-multiple-jwks": (signed(kid=ABSENT), "token_key"),
    "-invalid-athash": (changed(at_hash="AAAAAAAAAAAAAAAAAAAAAA"), "token_access_hash"),
}


@pytest.mark.parametrize(
    ("suffix", "response_type"),
    [(suffix, flow) for suffix in SUITE for flow in FLOWS if (suffix, flow) != ("-invalid-athash", "id_token")],
    ids=lambda it: name(it) if it in SUITE else it,
)
def test_the_suite_expects_a_refusal(browser: Browser, suffix: str, response_type: str):
    token, code = SUITE[suffix]
    browser.provider.jwks = {"keys": [jwk("rsa-1"), jwk("rsa-2"), jwk("p256-1")]}
    active(browser.provider, response_type=response_type, algorithms=["RS256", "ES256"])
    serve(browser.provider, token)

    is_refused(browser, code)


def test_oidcc_client_test_missing_athash(browser: Browser):
    active(browser.provider, response_type="id_token token")
    serve(browser.provider, changed(at_hash=ABSENT))

    is_refused(browser, "token_access_hash")


def test_oidcc_client_test_userinfo_invalid_sub(browser: Browser):  # A46
    active(browser.provider)
    browser.provider.userinfo = {"sub": "another"}

    is_refused(browser, "userinfo_subject")


@pytest.mark.parametrize("calls_itself", ["https://another.example", "{}/", "{}/x"])
def test_oidcc_client_test_discovery_issuer_mismatch(browser: Browser, calls_itself: str):
    browser.provider.discovery = {"issuer": calls_itself.format(browser.provider.issuer)}
    setting = active(browser.provider, **NOT_FOUND)
    response = browser.client.get("/sso/start/")
    setting.refresh_from_db()
    if calls_itself == "{}/":  # "one trailing slash apart" is its own name
        assert (response.status_code, setting.issuer) == (302, browser.provider.issuer + "/")
        return

    refused(response, "provider_unresolved", 503)
    assert setting.issuer == "" and "issuer is" in setting.resolve_error


LOGOUT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "-alg-none": ({"alg": "none", "signed_with": "none"}, {}),
    "-no-event": ({}, {"events": ABSENT}),
    "-with-nonce": ({}, {"nonce": "n"}),
    "-wrong-alg": ({"alg": "HS256", "key": b"client-secret-canary", "kid": "rsa-1"}, {}),
    "-wrong-aud": ({}, {"aud": "another"}),
    "-wrong-event": ({}, {"events": {"http://schemas.openid.net/event/another": {}}}),
    "-wrong-iss": ({}, {"iss": "https://another.example"}),
}


@pytest.mark.parametrize("suffix", LOGOUT, ids=lambda suffix: name(f"-rp-backchannel-rpinitlogout{suffix}"))
def test_the_suite_expects_that_the_session_is_kept(browser: Browser, suffix: str):
    how, claims = LOGOUT[suffix]
    browser.provider.jwks = {"keys": [jwk("rsa-1"), jwk("rsa-2")]}
    active(browser.provider)
    browser.sign_in()
    response = tell(browser.provider.logout_token(how, **claims))

    assert response.status_code == 400 and browser.login == "ann", response.content
    assert tell(browser.provider.logout_token()).status_code == 200
    assert browser.login is None
