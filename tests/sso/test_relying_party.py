"""The relying-party tests of the OpenID Foundation's suite (`oidcc-client-test…`).

Each test is named as in the suite: the name describes the behaviour of the provider, and the suite defines the outcome.
"""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from sso.models import IdpCertificate, OidcSetting
from system import encryption
from tests.providers.behaviours import responds_with
from tests.providers.hostile import HostileProvider
from tests.providers.signing import ABSENT, jwk
from tests.sso.relying_party import TokenFunction, check_sign_in_refused, serve_token, signed_with, with_changed_claims
from tests.sso.sign_ins import Browser, check_refusal, make_active_connection, make_ann, refusal_code
from tests.sso.test_logout_backchannel import send_logout_token

pytestmark = pytest.mark.django_db
RESPONSE_TYPES = ("code", "id_token", "id_token token")


@pytest.fixture
def browser(provider: HostileProvider, db: None) -> Browser:
    make_ann()
    return Browser(provider)


def name_of_test(suffix: str) -> str:
    return f"oidcc-client-test{suffix}"


# Sign-in, and the other flows of the suite.


@pytest.mark.parametrize("response_type", RESPONSE_TYPES)
def test_oidcc_client_test(browser: Browser, response_type: str):
    make_active_connection(browser.provider, response_type=response_type)
    response = browser.sign_in(next="/account/")

    assert (response.status_code, response.headers.get("Location")) == (302, "/account/"), response.content
    assert browser.login == "ann"


@pytest.mark.parametrize("key", ["rsa-1", "rsa-2"])
def test_oidcc_client_test_idtoken_sig_rs256(browser: Browser, key: str):
    browser.provider.jwks = {"keys": [jwk("rsa-1"), jwk("rsa-2"), jwk("p256-1")]}
    make_active_connection(browser.provider)
    serve_token(browser.provider, signed_with(key=key))

    assert browser.sign_in().status_code == 302 and browser.login == "ann"


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "EdDSA"])
def test_each_supported_algorithm_signs_in(browser: Browser, algorithm: str):
    key_names = {"ES256": "p256-1", "EdDSA": "ed-1"}
    browser.provider.jwks = {"keys": [jwk("rsa-1"), jwk("p256-1"), jwk("ed-1")]}
    make_active_connection(browser.provider, algorithms=["RS256", "PS256", "ES256", "EdDSA"])
    browser.provider.claims = {"at_hash": ABSENT}  # EdDSA has its own hash
    serve_token(browser.provider, signed_with(key=key_names.get(algorithm, "rsa-1"), alg=algorithm))

    assert browser.sign_in().status_code == 302 and browser.login == "ann"


def test_without_kid_the_key_that_is_still_published_is_used(browser: Browser):
    """The tokens name no key, and the old key is still published after a rotation."""
    browser.provider.jwks = {"keys": [jwk("rsa-1"), jwk("rsa-2")]}
    make_active_connection(browser.provider)
    assert browser.sign_in().status_code == 302
    browser.provider.jwks = {"keys": [jwk("rsa-1")]}
    serve_token(browser.provider, signed_with(kid=ABSENT))
    assert browser.sign_in().status_code == 302
    assert IdpCertificate.objects.get().kid == "rsa-1"


@pytest.mark.parametrize("other_keys", [[], ["p256-1"]])
def test_oidcc_client_test_kid_absent_single_jwks(browser: Browser, other_keys: list[str]):  # A05
    browser.provider.jwks = {"keys": [jwk("rsa-1", kid=ABSENT), *map(jwk, other_keys)]}
    make_active_connection(browser.provider)
    serve_token(browser.provider, signed_with(kid=ABSENT))

    assert browser.sign_in().status_code == 302 and browser.login == "ann"


def test_oidcc_client_test_userinfo_bearer_header(browser: Browser):
    make_active_connection(browser.provider)
    browser.sign_in()
    (request,) = browser.provider.requests_to("userinfo")

    assert request.method == "GET" and request.headers["authorization"].startswith("Bearer access-")
    assert request.query == {} and request.form == {}


def test_oidcc_client_test_scope_userinfo_claims(browser: Browser):
    make_active_connection(
        browser.provider, user_field="email", scope="openid email profile", update_data_when_login=True
    )
    browser.provider.claims = {"email": ABSENT, "preferred_username": ABSENT}
    authorization_url = browser.start()
    browser.follow_callback(browser.authorize(authorization_url))

    assert dict(parse_qsl(urlsplit(authorization_url).query))["scope"] == "openid email profile"
    assert browser.login == "ann"


def test_oidcc_client_test_client_secret_basic(browser: Browser):
    browser.provider.client_id, browser.provider.client_secret = "a:b c", "s:e+c r%e/t&="
    setting = make_active_connection(browser.provider, client_id=browser.provider.client_id)
    setting.client_secret = encryption.encrypt(browser.provider.client_secret)
    setting.save()
    browser.sign_in()
    (request,) = browser.provider.requests_to("token")

    assert browser.login == "ann"
    assert request.headers["authorization"].startswith("Basic ")
    assert "client_secret" not in request.form and len(request.form["code_verifier"]) >= 43  # A18


def test_oidcc_client_test_nonce_unless_code_flow(browser: Browser):
    random_values = set()
    for response_type in RESPONSE_TYPES:
        OidcSetting.objects.all().delete()
        make_active_connection(browser.provider, response_type=response_type)
        parameters = dict(parse_qsl(urlsplit(browser.start()).query))
        assert len(parameters["nonce"]) >= 32 and len(parameters["state"]) >= 32
        assert ("code_challenge" in parameters) == (response_type == "code")
        random_values |= {parameters["nonce"], parameters["state"]}

    assert len(random_values) == 6


def test_oidcc_client_test_discovery_openid_config(browser: Browser):
    make_active_connection(browser.provider, **UNRESOLVED_COLUMNS)
    browser.sign_in()

    assert OidcSetting.objects.get().issuer == browser.provider.issuer
    assert browser.provider.requests_to("discovery") and browser.login == "ann"


def test_oidcc_client_test_discovery_jwks_uri_keys(browser: Browser):
    browser.provider.discovery = {"jwks_uri": browser.provider.url_idp + "/keys/elsewhere"}
    browser.provider.serve("/keys/elsewhere", responds_with({"keys": [jwk("rsa-1")]}))
    make_active_connection(browser.provider, **UNRESOLVED_COLUMNS)
    browser.sign_in()

    assert browser.login == "ann" and browser.provider.requests_to("certs") == []
    assert IdpCertificate.objects.get().kid == "rsa-1"


def test_oidcc_client_test_signing_key_rotation(browser: Browser):
    make_active_connection(browser.provider)
    browser.sign_in()
    browser.provider.jwks = {"keys": [jwk("rsa-2")]}
    serve_token(browser.provider, signed_with(key="rsa-2"))
    other_browser = Browser(browser.provider)
    response = other_browser.sign_in()

    assert response.status_code == 302 and other_browser.login == "ann"
    assert [certificate.kid for certificate in IdpCertificate.objects.all()] == ["rsa-2"]


def test_oidcc_client_test_signing_key_rotation_just_before_signing(browser: Browser):
    make_active_connection(browser.provider)
    browser.sign_in()
    other_browser = Browser(browser.provider)
    callback_url = other_browser.authorize(other_browser.start())
    browser.provider.jwks = {"keys": [jwk("rsa-2"), jwk("rsa-1")]}
    serve_token(browser.provider, signed_with(key="rsa-2"))

    assert other_browser.follow_callback(callback_url).status_code == 302 and other_browser.login == "ann"


def test_oidcc_client_test_3rd_party_init_login(browser: Browser):
    make_active_connection(browser.provider)
    target_uri = "http://testserver/account/?tab=keys#keys"
    authorization_url = browser.start(
        iss=browser.provider.issuer, login_hint="ann@example.com", target_link_uri=target_uri
    )
    parameters = dict(parse_qsl(urlsplit(authorization_url).query))
    response = browser.follow_callback(browser.authorize(authorization_url))

    assert parameters["login_hint"] == "ann@example.com"
    assert (response.status_code, response["Location"]) == (302, "/account/?tab=keys#keys")
    assert browser.login == "ann"


def test_oidcc_client_test_rp_init_logout(browser: Browser):  # A64
    fields = sign_out(browser)

    assert fields["post_logout_redirect_uri"] == "http://testserver/sso/logout/"
    assert fields["client_id"] == "servicebase" and fields["id_token_hint"].count(".") == 2
    response = browser.client.get("/sso/logout/", {"state": fields["state"]})
    assert response["Location"] == "/login/?signed_out=1" and browser.login is None


def test_oidcc_client_test_rp_init_logout_other_state(browser: Browser):
    sign_out(browser)
    response = browser.client.get("/sso/logout/", {"state": "another"})

    assert (response.status_code, refusal_code(response)) == (400, "logout_state") and browser.login is None


def test_oidcc_client_test_rp_init_logout_no_state(browser: Browser):
    sign_out(browser)
    response = browser.client.get("/sso/logout/")

    assert response["Location"] == "/login/?signed_out=1" and browser.login is None


def test_oidcc_client_test_rp_backchannel_rpinitlogout(browser: Browser):
    provider = browser.provider
    other_browser = Browser(provider)
    provider.person["sid"] = "sid-1"
    make_active_connection(provider)
    other_browser.sign_in()
    sign_out(browser, has_connection=True)
    response = send_logout_token(provider.logout_token(sid="sid-1"))

    assert (response.status_code, response["Cache-Control"]) == (200, "no-store")
    assert other_browser.login is None


def sign_out(browser: Browser, *, has_connection: bool = False) -> dict[str, str]:
    """Signs in and out; returns the form fields that the browser sends to the provider."""
    if not has_connection:
        make_active_connection(browser.provider)
    browser.sign_in()
    assert browser.login == "ann"
    page = browser.client.post("/logout/")
    assert page.status_code == 200 and browser.login is None, page.content
    assert page.context["url"] == browser.provider.url("logout")
    return dict(page.context["fields"])


# Refusals.

UNRESOLVED_COLUMNS = {
    "issuer": "", "authorization_endpoint": "", "token_endpoint": "", "jwks_uri": "", "userinfo_endpoint": "",
    "end_session_endpoint": "", "algorithms": [],
}  # fmt: skip
REFUSED_TOKENS: dict[str, tuple[TokenFunction, str]] = {
    "-invalid-iss": (with_changed_claims(iss="https://another.example"), "token_issuer"),
    "-missing-sub": (with_changed_claims(sub=ABSENT), "token_subject"),
    "-invalid-aud": (with_changed_claims(aud="another"), "token_audience"),
    "-missing-aud": (with_changed_claims(aud=ABSENT), "token_audience"),
    "-missing-iat": (with_changed_claims(iat=ABSENT), "token_time"),
    "-nonce-invalid": (with_changed_claims(nonce="another"), "token_nonce"),
    "-invalid-sig-rs256": (signed_with(signature=b"\0" * 256), "token_signature"),
    "-invalid-sig-hs256": (
        signed_with(alg="HS256", kid="rsa-1", key=b"client-secret-canary", signature=b"0"),
        "token_alg",
    ),
    "-invalid-sig-es256": (signed_with(alg="ES256", key="p256-1", signature=b"\0" * 64), "token_signature"),
    "-idtoken-sig-none": (signed_with(alg="none", signed_with="none", kid=ABSENT), "token_alg"),  # A01
    "-kid-absent-multiple-jwks": (signed_with(kid=ABSENT), "token_key"),
    "-invalid-athash": (with_changed_claims(at_hash="AAAAAAAAAAAAAAAAAAAAAA"), "token_access_hash"),
}


@pytest.mark.parametrize(
    ("suffix", "response_type"),
    [
        (suffix, response_type)
        for suffix in REFUSED_TOKENS
        for response_type in RESPONSE_TYPES
        if (suffix, response_type) != ("-invalid-athash", "id_token")
    ],
    ids=lambda suffix: name_of_test(suffix) if suffix in REFUSED_TOKENS else suffix,
)
def test_invalid_token_of_the_suite_is_refused(browser: Browser, suffix: str, response_type: str):
    make_token, code = REFUSED_TOKENS[suffix]
    browser.provider.jwks = {"keys": [jwk("rsa-1"), jwk("rsa-2"), jwk("p256-1")]}
    make_active_connection(browser.provider, response_type=response_type, algorithms=["RS256", "ES256"])
    serve_token(browser.provider, make_token)

    check_sign_in_refused(browser, code)


def test_oidcc_client_test_missing_athash(browser: Browser):
    make_active_connection(browser.provider, response_type="id_token token")
    serve_token(browser.provider, with_changed_claims(at_hash=ABSENT))

    check_sign_in_refused(browser, "token_access_hash")


def test_oidcc_client_test_userinfo_invalid_sub(browser: Browser):  # A46
    make_active_connection(browser.provider)
    browser.provider.userinfo = {"sub": "another"}

    check_sign_in_refused(browser, "userinfo_subject")


@pytest.mark.parametrize("announced_issuer", ["https://another.example", "{}/", "{}/x"])
def test_oidcc_client_test_discovery_issuer_mismatch(browser: Browser, announced_issuer: str):
    browser.provider.discovery = {"issuer": announced_issuer.format(browser.provider.issuer)}
    setting = make_active_connection(browser.provider, **UNRESOLVED_COLUMNS)
    response = browser.client.get("/sso/start/")
    setting.refresh_from_db()
    if announced_issuer == "{}/":  # a trailing slash is the only permitted difference
        assert (response.status_code, setting.issuer) == (302, browser.provider.issuer + "/")
        return

    check_refusal(response, "provider_unresolved", 503)
    assert setting.issuer == "" and "issuer is" in setting.resolve_error


REFUSED_LOGOUTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "-alg-none": ({"alg": "none", "signed_with": "none"}, {}),
    "-no-event": ({}, {"events": ABSENT}),
    "-with-nonce": ({}, {"nonce": "n"}),
    "-wrong-alg": ({"alg": "HS256", "key": b"client-secret-canary", "kid": "rsa-1"}, {}),
    "-wrong-aud": ({}, {"aud": "another"}),
    "-wrong-event": ({}, {"events": {"http://schemas.openid.net/event/another": {}}}),
    "-wrong-iss": ({}, {"iss": "https://another.example"}),
}


@pytest.mark.parametrize(
    "suffix", REFUSED_LOGOUTS, ids=lambda suffix: name_of_test(f"-rp-backchannel-rpinitlogout{suffix}")
)
def test_invalid_logout_token_of_the_suite_is_refused(browser: Browser, suffix: str):
    options, claims = REFUSED_LOGOUTS[suffix]
    browser.provider.jwks = {"keys": [jwk("rsa-1"), jwk("rsa-2")]}
    make_active_connection(browser.provider)
    browser.sign_in()
    response = send_logout_token(browser.provider.logout_token(options, **claims))

    assert response.status_code == 400 and browser.login == "ann", response.content
    assert send_logout_token(browser.provider.logout_token()).status_code == 200
    assert browser.login is None
