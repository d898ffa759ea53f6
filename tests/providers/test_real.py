"""The real provider supports what the sign-in tests need."""

import hashlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
import psutil
import pytest

from system.outbound import Policy, get, post_form
from tests.accounts.callers import basic_auth
from tests.providers.hostile import HostileProvider
from tests.providers.real import (
    CLIENT_ID,
    CLIENT_SECRET,
    RealProvider,
    Visitor,
    client_registration,
    fragment_registration,
    public_registration,
)
from tests.providers.signing import base64url

pytestmark = pytest.mark.provider
POLICY = Policy(allow_http=True)
CALLBACK = "http://testserver/sso/callback/"
VERIFIER = "v" * 43


@pytest.fixture(scope="module")
def provider() -> Iterator[RealProvider]:
    with RealProvider() as real_provider:
        real_provider.register(
            client_registration(CALLBACK), public_registration(CALLBACK), fragment_registration(CALLBACK)
        )
        yield real_provider


def fetch_discovery_document(provider: RealProvider, realm: str) -> dict[str, Any]:
    discovery = get(provider.issuer(realm) + "/.well-known/openid-configuration", POLICY).json()
    assert isinstance(discovery, dict)
    return discovery


def authorization_url(discovery: dict[str, Any], **parameters: str) -> str:
    challenge = base64url(hashlib.sha256(VERIFIER.encode()).digest())
    query = {"response_type": "code", "client_id": CLIENT_ID, "redirect_uri": CALLBACK, "scope": "openid", "state": "s",
             "nonce": "n", "code_challenge": challenge, "code_challenge_method": "S256", **parameters}  # fmt: skip
    return f"{discovery['authorization_endpoint']}?{urlencode(query)}"


def redeem_code(discovery: dict[str, Any], callback_url: str, **parameters: str) -> dict[str, Any]:
    code = dict(parse_qsl(urlsplit(callback_url).query))["code"]
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, "code_verifier": VERIFIER}
    headers = {} if parameters else basic_auth(CLIENT_ID, CLIENT_SECRET.replace(" ", "%20"))
    tokens = post_form(discovery["token_endpoint"], {**form, **parameters}, POLICY, headers=headers).json()
    assert isinstance(tokens, dict)
    return tokens


def verified_claims(discovery: dict[str, Any], token: str, client_id: str = CLIENT_ID) -> dict[str, Any]:
    keys = jwt.PyJWKSet.from_dict(get(discovery["jwks_uri"], POLICY).json())  # type: ignore[arg-type]
    key = keys[jwt.get_unverified_header(token)["kid"]]
    return dict(jwt.decode(token, key, ["RS256"], audience=client_id, issuer=discovery["issuer"]))


def test_code_flow_returns_claims_with_roles(provider: RealProvider):
    discovery = fetch_discovery_document(provider, "main")
    callback_url = Visitor(provider).sign_in(authorization_url(discovery), "anna")
    assert callback_url.startswith(CALLBACK + "?code=") and urlsplit(callback_url).query.count("iss=") == 1

    claims = verified_claims(discovery, redeem_code(discovery, callback_url)["id_token"])
    assert (claims["sub"], claims["email"], claims["preferred_username"], claims["nonce"]) == (
        "sub-anna", "anna@example.com", "anna", "n",
    )  # fmt: skip
    assert claims["realm_access"] == {"roles": ["itil", "surveyor"]} and claims["sid"]


def test_public_client_uses_pkce(provider: RealProvider):
    discovery = fetch_discovery_document(provider, "first")
    visitor = Visitor(provider)
    callback_url = visitor.sign_in(authorization_url(discovery, client_id="servicebase-pkce"), "anna")
    assert (
        redeem_code(discovery, callback_url, client_id="servicebase-pkce", code_verifier="w" * 43)["error"]
        == "invalid_grant"
    )

    callback_url = visitor.sign_in(authorization_url(discovery, client_id="servicebase-pkce"), "anna")
    assert "id_token" in redeem_code(discovery, callback_url, client_id="servicebase-pkce")


def test_plain_issuer_follows_the_scope_and_requires_the_secret_in_the_form(provider: RealProvider):
    discovery = fetch_discovery_document(provider, "plain")
    assert discovery["issuer"] == provider.url
    location = authorization_url(discovery, scope="openid email", client_id="servicebase-pkce")
    tokens = redeem_code(discovery, Visitor(provider).sign_in(location, "chris"), client_id="servicebase-pkce")
    assert "email" not in verified_claims(discovery, tokens["id_token"], "servicebase-pkce")

    bearer_headers = {"authorization": f"Bearer {tokens['access_token']}"}
    userinfo = get(discovery["userinfo_endpoint"], POLICY, headers=bearer_headers).json()
    assert userinfo == {"sub": "sub-chris", "email": "chris@example.com", "email_verified": False}


@pytest.mark.parametrize("response_type", ["id_token", "id_token token"])
def test_tokens_are_returned_in_the_fragment(provider: RealProvider, response_type: str):
    discovery = fetch_discovery_document(provider, "main")
    location = authorization_url(discovery, client_id="servicebase-fragment", response_type=response_type)
    for name in ("code_challenge", "code_challenge_method"):
        location = location.replace(f"{name}=", f"x_{name}=")
    parameters = dict(parse_qsl(urlsplit(Visitor(provider).sign_in(location, "anna")).fragment))

    claims = verified_claims(discovery, parameters["id_token"], "servicebase-fragment")
    assert ("at_hash" in claims) == ("access_token" in parameters) == ("token" in response_type.split())


@pytest.mark.parametrize("overlap", [True, False])
def test_users_stay_signed_in_while_keys_rotate(provider: RealProvider, overlap: bool):
    discovery = fetch_discovery_document(provider, "main")
    visitor = Visitor(provider)
    visitor.sign_in(authorization_url(discovery), "anna")
    old_kids = {key["kid"] for key in get(discovery["jwks_uri"], POLICY).json()["keys"]}  # type: ignore[index]
    current_kids = provider.rotate("main", overlap=overlap)
    callback_url, page_html = visitor.follow(authorization_url(discovery))

    assert page_html == "" and "code=" in callback_url
    assert (old_kids <= set(current_kids)) is overlap
    token = redeem_code(discovery, callback_url)["id_token"]
    assert jwt.get_unverified_header(token)["kid"] in set(current_kids) - old_kids


def test_realm_without_discovery_still_serves_the_specified_paths(provider: RealProvider):
    issuer = provider.issuer("undiscovered")

    assert get(issuer + "/.well-known/openid-configuration", POLICY).status == 404
    assert get(issuer + "/protocol/openid-connect/certs", POLICY).status == 200


def test_sign_out_calls_the_back_channel(provider: RealProvider):
    with HostileProvider() as receiver:  # any server that takes a form
        receiver.serve("/backchannel-logout", lambda request: request.respond(200, {}))
        url = receiver.url_idp + "/backchannel-logout"
        provider.register(client_registration(CALLBACK, backchannel_logout_uri=url), public_registration(CALLBACK))
        discovery = fetch_discovery_document(provider, "main")
        visitor = Visitor(provider)
        token = redeem_code(discovery, visitor.sign_in(authorization_url(discovery), "ben"))["id_token"]
        form = {
            "id_token_hint": token,
            "post_logout_redirect_uri": "http://testserver/sso/logout/",
            "state": "z",
        }
        callback_url = visitor.sign_out(discovery["end_session_endpoint"], form)
        assert callback_url == "http://testserver/sso/logout/?state=z"

        visitor.sign_in(authorization_url(discovery), "ben")
        assert provider.end_sessions("main", "ben") == [CLIENT_ID]

        first_claims, second_claims = (decode_claims(request.form["logout_token"]) for request in receiver.requests)
        assert first_claims["sid"] == decode_claims(token)["sid"] != second_claims["sid"]
        assert first_claims["sub"] == second_claims["sub"] == "sub-ben"
    assert 'name="password"' in visitor.follow(authorization_url(discovery))[1]
    provider.register(client_registration(CALLBACK), public_registration(CALLBACK), fragment_registration(CALLBACK))


def decode_claims(token: str) -> dict[str, Any]:
    return dict(jwt.decode(token, options={"verify_signature": False}))


def test_wrong_password_does_not_sign_in(provider: RealProvider):
    url = Visitor(provider).sign_in(authorization_url(fetch_discovery_document(provider, "main")), "anna", "wrong")

    assert url.startswith(provider.url)


def test_provider_process_ends_with_the_context():
    with RealProvider() as provider:
        process = psutil.Process(provider._process.pid)
        assert process.is_running()
    assert not psutil.pid_exists(process.pid)


def test_provider_process_ends_with_its_parent():
    provider = RealProvider().start()
    assert provider._process.stdin
    provider._process.stdin.close()

    assert provider._process.wait(20) == 0
    provider.stop()
