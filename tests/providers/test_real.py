"""The real provider supports what the sign-in tests need."""

import base64
import hashlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
import psutil
import pytest

from system.outbound import Policy, get, post_form
from tests.providers.hostile import HostileProvider
from tests.providers.real import (
    CLIENT_ID,
    CLIENT_SECRET,
    RealProvider,
    Visitor,
    client,
    fragment_client,
    public_client,
)
from tests.providers.signing import part

pytestmark = pytest.mark.provider
POLICY = Policy(allow_http=True)
CALLBACK = "http://testserver/sso/callback/"
VERIFIER = "v" * 43


@pytest.fixture(scope="module")
def provider() -> Iterator[RealProvider]:
    with RealProvider() as real_provider:
        real_provider.register(client(CALLBACK), public_client(CALLBACK), fragment_client(CALLBACK))
        yield real_provider


def document(provider: RealProvider, realm: str) -> dict[str, Any]:
    body = get(provider.issuer(realm) + "/.well-known/openid-configuration", POLICY).json()
    assert isinstance(body, dict)
    return body


def location(found: dict[str, Any], **more: str) -> str:
    challenge = part(hashlib.sha256(VERIFIER.encode()).digest())
    query = {"response_type": "code", "client_id": CLIENT_ID, "redirect_uri": CALLBACK, "scope": "openid", "state": "s",
             "nonce": "n", "code_challenge": challenge, "code_challenge_method": "S256", **more}  # fmt: skip
    return f"{found['authorization_endpoint']}?{urlencode(query)}"


def redeem(found: dict[str, Any], back: str, **more: str) -> dict[str, Any]:
    code = dict(parse_qsl(urlsplit(back).query))["code"]
    sent = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, "code_verifier": VERIFIER}
    basic = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET.replace(' ', '%20')}".encode()).decode()
    headers = {} if more else {"authorization": f"Basic {basic}"}
    response = post_form(found["token_endpoint"], {**sent, **more}, POLICY, headers=headers).json()
    assert isinstance(response, dict)
    return response


def claims(found: dict[str, Any], token: str, client_id: str = CLIENT_ID) -> dict[str, Any]:
    keys = jwt.PyJWKSet.from_dict(get(found["jwks_uri"], POLICY).json())  # type: ignore[arg-type]
    key = keys[jwt.get_unverified_header(token)["kid"]]
    return dict(jwt.decode(token, key, ["RS256"], audience=client_id, issuer=found["issuer"]))


def test_code_flow_returns_claims_with_roles(provider: RealProvider):
    result = document(provider, "main")
    back = Visitor(provider).sign_in(location(result), "anna")
    assert back.startswith(CALLBACK + "?code=") and urlsplit(back).query.count("iss=") == 1

    message = claims(result, redeem(result, back)["id_token"])
    assert (message["sub"], message["email"], message["preferred_username"], message["nonce"]) == (
        "sub-anna", "anna@example.com", "anna", "n",
    )  # fmt: skip
    assert message["realm_access"] == {"roles": ["itil", "surveyor"]} and message["sid"]


def test_public_client_uses_pkce(provider: RealProvider):
    result = document(provider, "first")
    visitor = Visitor(provider)
    back = visitor.sign_in(location(result, client_id="servicebase-pkce"), "anna")
    assert redeem(result, back, client_id="servicebase-pkce", code_verifier="w" * 43)["error"] == "invalid_grant"

    back = visitor.sign_in(location(result, client_id="servicebase-pkce"), "anna")
    assert "id_token" in redeem(result, back, client_id="servicebase-pkce")


def test_plain_issuer_follows_the_scope_and_requires_the_secret_in_the_form(provider: RealProvider):
    result = document(provider, "plain")
    assert result["issuer"] == provider.url
    request = location(result, scope="openid email", client_id="servicebase-pkce")
    tokens = redeem(result, Visitor(provider).sign_in(request, "chris"), client_id="servicebase-pkce")
    assert "email" not in claims(result, tokens["id_token"], "servicebase-pkce")

    bearer = {"authorization": f"Bearer {tokens['access_token']}"}
    body = get(result["userinfo_endpoint"], POLICY, headers=bearer).json()
    assert body == {"sub": "sub-chris", "email": "chris@example.com", "email_verified": False}


@pytest.mark.parametrize("response_type", ["id_token", "id_token token"])
def test_tokens_are_returned_in_the_fragment(provider: RealProvider, response_type: str):
    result = document(provider, "main")
    request = location(result, client_id="servicebase-fragment", response_type=response_type)
    for name in ("code_challenge", "code_challenge_method"):
        request = request.replace(f"{name}=", f"x_{name}=")
    back = dict(parse_qsl(urlsplit(Visitor(provider).sign_in(request, "anna")).fragment))

    message = claims(result, back["id_token"], "servicebase-fragment")
    assert ("at_hash" in message) == ("access_token" in back) == ("token" in response_type.split())


@pytest.mark.parametrize("overlap", [True, False])
def test_keys_rotate_while_people_stay_signed_in(provider: RealProvider, overlap: bool):
    result = document(provider, "main")
    visitor = Visitor(provider)
    visitor.sign_in(location(result), "anna")
    before = {key["kid"] for key in get(result["jwks_uri"], POLICY).json()["keys"]}  # type: ignore[index]
    kids = provider.rotate("main", overlap=overlap)
    back, page = visitor.follow(location(result))

    assert page == "" and "code=" in back
    assert (before <= set(kids)) is overlap
    token = redeem(result, back)["id_token"]
    assert jwt.get_unverified_header(token)["kid"] in set(kids) - before


def test_realm_without_discovery_still_serves_the_specified_paths(provider: RealProvider):
    issuer = provider.issuer("undiscovered")

    assert get(issuer + "/.well-known/openid-configuration", POLICY).status == 404
    assert get(issuer + "/protocol/openid-connect/certs", POLICY).status == 200


def test_sign_out_calls_the_back_channel(provider: RealProvider):
    with HostileProvider() as product:  # any server that takes a form
        product.serve("/told", lambda visit: visit.answer(200, {}))
        told_at = product.url_idp + "/told"
        provider.register(client(CALLBACK, backchannel_logout_uri=told_at), public_client(CALLBACK))
        result = document(provider, "main")
        visitor = Visitor(provider)
        token = redeem(result, visitor.sign_in(location(result), "ben"))["id_token"]
        query = {
            "id_token_hint": token,
            "post_logout_redirect_uri": "http://testserver/sso/logout/",
            "state": "z",
        }
        back = visitor.sign_out(result["end_session_endpoint"], query)
        assert back == "http://testserver/sso/logout/?state=z"

        visitor.sign_in(location(result), "ben")
        assert provider.end_sessions("main", "ben") == [CLIENT_ID]

        first, second = (claims_of(visit.form["logout_token"]) for visit in product.requests)
        assert first["sid"] == claims_of(token)["sid"] != second["sid"]
        assert first["sub"] == second["sub"] == "sub-ben"
    assert 'name="password"' in visitor.follow(location(result))[1]
    provider.register(client(CALLBACK), public_client(CALLBACK), fragment_client(CALLBACK))


def claims_of(token: str) -> dict[str, Any]:
    return dict(jwt.decode(token, options={"verify_signature": False}))


def test_wrong_password_signs_nobody_in(provider: RealProvider):
    at = Visitor(provider).sign_in(location(document(provider, "main")), "anna", "wrong")

    assert at.startswith(provider.url)


def test_no_process_is_left_after_the_end():
    with RealProvider() as provider:
        process = psutil.Process(provider._process.pid)
        assert process.is_running()
    assert not psutil.pid_exists(process.pid)


def test_it_ends_with_its_parent():
    provider = RealProvider().start()
    assert provider._process.stdin
    provider._process.stdin.close()

    assert provider._process.wait(20) == 0
    provider.stop()
