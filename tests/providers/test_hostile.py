"""The hostile provider behaves correctly unless a test configures it otherwise, and ends with the test."""

import hashlib
import time
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
import pytest

from system.outbound import OutboundFailed, Policy, get, post_form
from tests.accounts.callers import basic_auth
from tests.providers.behaviours import (
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
from tests.providers.signing import base64url, private_key

POLICY = Policy(allow_http=True, connect_s=0.4, total_s=0.5)
VERIFIER = "v" * 43


@pytest.fixture
def provider() -> Iterator[HostileProvider]:
    with HostileProvider() as provider:
        yield provider


def authorization_url(provider: HostileProvider, response_type: str = "code") -> str:
    parameters = {
        "response_type": response_type,
        "client_id": "servicebase",
        "redirect_uri": "http://testserver/sso/callback/",
        "state": "s",
        "nonce": "n",
        "code_challenge": base64url(hashlib.sha256(VERIFIER.encode()).digest()),
        "code_challenge_method": "S256",
    }
    return provider.url("auth") + "?" + urlencode(parameters)


def test_correct_client_signs_in(provider: HostileProvider):
    discovery = get(provider.url("discovery"), POLICY).json()
    assert isinstance(discovery, dict) and discovery["issuer"] == provider.issuer
    parameters = dict(parse_qsl(urlsplit(provider.authorize(authorization_url(provider))).query))
    basic_headers = basic_auth("servicebase", provider.client_secret)
    form = {"code": parameters["code"], "redirect_uri": "http://testserver/sso/callback/", "code_verifier": VERIFIER}
    response = post_form(discovery["token_endpoint"], form, POLICY, headers=basic_headers)
    tokens = response.json()
    assert response.status == 200 and isinstance(tokens, dict)

    public_key = private_key("rsa-1").public_key()
    claims = jwt.decode(
        tokens["id_token"],
        public_key,
        ["RS256"],
        audience="servicebase",
        options={"verify_iat": True},
        issuer=discovery["issuer"],
    )
    assert (claims["sub"], claims["nonce"]) == ("sub-ann", "n")
    bearer_headers = {"authorization": f"Bearer {tokens['access_token']}"}
    assert get(discovery["userinfo_endpoint"], POLICY, headers=bearer_headers).json() == provider.person
    assert post_form(discovery["token_endpoint"], form, POLICY, headers=basic_headers).status == 400


@pytest.mark.parametrize("wrong_value", ["secret", "verifier", "redirect"])
def test_incorrect_client_is_refused(provider: HostileProvider, wrong_value: str):
    parameters = dict(parse_qsl(urlsplit(provider.authorize(authorization_url(provider))).query))
    form = {
        "code": parameters["code"],
        "redirect_uri": "http://testserver/" if wrong_value == "redirect" else "http://testserver/sso/callback/",
        "code_verifier": "w" * 43 if wrong_value == "verifier" else VERIFIER,
        "client_id": "servicebase",
        "client_secret": "another" if wrong_value == "secret" else provider.client_secret,
    }

    assert post_form(provider.url("token"), form, POLICY).status == (401 if wrong_value == "secret" else 400)


def test_tokens_are_returned_in_the_fragment(provider: HostileProvider):
    callback_url = urlsplit(provider.authorize(authorization_url(provider, "id_token token")))

    assert callback_url.query == ""
    assert set(dict(parse_qsl(callback_url.fragment))) == {
        "state", "session_state", "id_token", "access_token", "token_type", "expires_in",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        (redirects_to("http://169.254.169.254/"), "redirected"),
        (responds_with_huge_body(), "too_large"),
        (responds_with_gzip_bomb(), "encoded"),
        (sends_endless_chunks(), "too_large"),
        (sends_byte_by_byte(0.01), "timeout"),
        (stays_silent(), "timeout"),
        (hangs_up(), "protocol"),
    ],
    ids=["redirects", "huge", "gzip bomb", "endless chunks", "byte by byte", "silent", "hangs up"],
)  # fmt: skip
def test_configured_misbehaviour_applies_immediately(provider: HostileProvider, behaviour, code: str):
    provider.serve("certs", behaviour)
    started_at = time.monotonic()
    with pytest.raises(OutboundFailed) as exc_info:
        get(provider.url("certs"), POLICY)

    assert exc_info.value.code == code
    assert time.monotonic() - started_at < 5


def test_misbehaviour_can_be_limited_to_some_requests(provider: HostileProvider):
    provider.serve("certs", responds_with_error(429), times=1)
    provider.serve("certs", responds_with_html(), times=1)
    provider.serve("/elsewhere", responds_with({"here": True}))

    assert [get(provider.url("certs"), POLICY).status for _ in range(3)] == [429, 200, 200]
    assert get(provider.url("certs"), POLICY).json() == provider.jwks
    assert get(provider.url_idp + "/elsewhere", POLICY).json() == {"here": True}
    assert len(provider.requests_to("certs")) == 4
