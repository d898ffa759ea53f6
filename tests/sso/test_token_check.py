"""The token check, with valid and invalid tokens."""

import json
import socket
from typing import Any

import pytest

from sso.refusals import SignInRefused
from sso.tokens import token_check
from sso.tokens.token_check import ExpectedToken, UnknownKey
from tests.providers.signing import ABSENT, base64url, half_hash, jwk, public_pem, sign_token

NOW = 1_800_000_000
ISSUER = "https://idp.example.com/realms/main"
CLIENT_ID = "servicebase"
NONCE = "nonce-of-this-attempt"
ACCESS_TOKEN = "access-token-of-this-attempt"
ALL_ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA")
LOGOUT_EVENTS: dict[str, Any] = {token_check.LOGOUT_EVENT: {}}


def claims_with(**changes: Any) -> dict[str, Any]:
    defaults = {"iss": ISSUER, "aud": CLIENT_ID, "sub": "sub-ann", "iat": NOW, "exp": NOW + 300, "nonce": NONCE}
    return {**defaults, **changes}


def expectation_with(**changes: Any) -> ExpectedToken:
    defaults = {"issuer": ISSUER, "client_id": CLIENT_ID, "now": NOW, "algorithms": ALL_ALGORITHMS}
    return ExpectedToken(**{**defaults, "nonce_hash": token_check.sha256_hex(NONCE), **changes})


def check_id_token(encoded_token: str, *keys: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return token_check.check_id_token(encoded_token, expectation_with(**changes), keys or (jwk("rsa-1"),))


def refusal_code(encoded_token: str, *keys: dict[str, Any], **changes: Any) -> str:
    with pytest.raises(SignInRefused) as exc_info:
        check_id_token(encoded_token, *keys, **changes)
    for segment in filter(lambda segment: len(segment) > 8, encoded_token[:2000].split(".")):
        assert segment not in exc_info.value.detail, "a token must not reach the log"
    return exc_info.value.code


def test_a_valid_token_is_accepted():
    assert check_id_token(sign_token(claims_with(email="ann@example.com")))["email"] == "ann@example.com"


@pytest.mark.parametrize(
    ("key_name", "algorithm"), [("rsa-1", "RS256"), ("rsa-1", "PS256"), ("p256-1", "ES256"), ("ed-1", "EdDSA")]
)
def test_each_advertised_algorithm_is_accepted(key_name: str, algorithm: str):
    signed_token = sign_token(claims_with(), key=key_name, alg=algorithm)

    assert check_id_token(signed_token, jwk(key_name, alg=ABSENT))["sub"] == "sub-ann"
    assert (
        refusal_code(
            signed_token, jwk(key_name, alg=ABSENT), algorithms=[name for name in ALL_ALGORITHMS if name != algorithm]
        )
        == "token_alg"
    )


def test_a_provider_that_advertises_nothing_signs_with_rs256():
    assert check_id_token(sign_token(claims_with()), algorithms=())
    assert refusal_code(sign_token(claims_with(), key="ed-1", alg="EdDSA"), jwk("ed-1"), algorithms=()) == "token_alg"


MALFORMED_TOKENS = {
    "": "empty",
    "x": "one part",
    "e30.e30": "two parts",
    "e30.e30.e30.e30": "four parts",
    "e30.e30.e30.e30.e30": "encrypted",
    "e30.e30.e3$": "not base64url",
    "e30=.e30.e30": "padding",
    "e30.e30.e": "not a length of base64",
    "é.e30.e30": "not ASCII",
    "e30 .e30.e30": "space",
    " e30.e30.e30": "space before",
    "e30.e30.e30\n": "line break after",
    base64url(b"[]") + ".e30.": "header is a list",
    base64url(b"{") + ".e30.": "header is not JSON",
    base64url(b'{"alg":"RS256","alg":"RS256"}') + ".e30.e30": "repeated header",
    base64url(b"\xff") + ".e30.": "not UTF-8",
    "a" * (16 * 1024 + 1): "over 16 KB",
    ".".join(["a" * 500_000] * 2 + [""]): "1 MB",
}


@pytest.mark.parametrize("encoded_token", MALFORMED_TOKENS, ids=MALFORMED_TOKENS.values())
def test_a_malformed_token_is_refused(encoded_token: str):  # A13
    assert refusal_code(encoded_token) == "token_form"


def test_a_token_of_16_kb_is_read():
    # One byte above the limit is refused, whatever its content.
    filler = "x" * 11_000
    longest_token = sign_token(claims_with(filler=filler))
    while len(longest_token) <= 16 * 1024 - 2:
        filler += "x"
        longest_token = sign_token(claims_with(filler=filler))

    assert len(longest_token) <= 16 * 1024 and check_id_token(longest_token)
    assert refusal_code(sign_token(claims_with(filler=filler + "xxx"))) == "token_form"


INVALID_HEADERS: list[tuple[dict[str, Any], str]] = [
    ({"alg": "none", "signed_with": "none"}, "token_alg"),
    ({"alg": "nOnE", "signed_with": "none"}, "token_alg"),
    ({"alg": "None", "signed_with": "none"}, "token_alg"),
    ({"alg": "", "signed_with": "none"}, "token_alg"),
    ({"alg": ABSENT, "signed_with": "RS256"}, "token_alg"),
    ({"alg": ["RS256"], "signed_with": "RS256"}, "token_alg"),
    ({"alg": 5, "signed_with": "RS256"}, "token_alg"),
    ({"alg": "rs256", "signed_with": "RS256"}, "token_alg"),
    ({"alg": "RS512"}, "token_alg"),
    ({"alg": "RS256", "signed_with": "none"}, "token_signature"),
    ({"alg": "PS256"}, "token_key"),
    ({"alg": "ES256", "signed_with": "RS256"}, "token_key"),
    ({"alg": "EdDSA", "signed_with": "RS256"}, "token_key"),
    ({"crit": ["exp"]}, "token_form"),
    ({"crit": []}, "token_form"),
    ({"crit": ["b64"], "b64": False}, "token_form"),
    ({"crit": None}, "token_form"),
    ({"b64": False}, "token_signature"),
    ({"typ": "logout+jwt"}, "token_form"),
    ({"typ": "at+jwt"}, "token_form"),
    ({"typ": 1}, "token_form"),
    ({"typ": None}, "token_form"),
]


@pytest.mark.parametrize(("header", "code"), INVALID_HEADERS, ids=[str(header) for header, _ in INVALID_HEADERS])
def test_an_unacceptable_header_is_refused(header: dict[str, Any], code: str):  # A01, A07
    assert refusal_code(sign_token(claims_with(), **header), jwk("rsa-1", alg="RS256")) == code


@pytest.mark.parametrize("typ", ["JWT", "jwt", ABSENT])
def test_the_type_may_be_absent(typ: Any):
    assert check_id_token(sign_token(claims_with(), typ=typ))


@pytest.mark.parametrize(
    "secret",
    [public_pem("rsa-1"), json.dumps(jwk("rsa-1")).encode(), b"the client secret of 32 bytes or more", b""],
    ids=["public key", "key as JSON", "client secret", "empty"],
)
@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_a_shared_secret_is_refused(secret: bytes, algorithm: str):  # A02
    assert (
        refusal_code(sign_token(claims_with(), key=secret, alg=algorithm, kid="rsa-1", signed_with=algorithm))
        == "token_alg"
    )


def test_a_key_in_the_header_is_ignored(monkeypatch: Any):  # A03
    def fail_if_called(*_: Any, **__: Any) -> None:
        raise AssertionError("something was called")

    monkeypatch.setattr(socket, "getaddrinfo", fail_if_called)
    monkeypatch.setattr(socket.socket, "connect", fail_if_called)
    header: dict[str, Any] = {
        "jwk": jwk("rsa-2"),
        "jku": "https://evil.example/certs",
        "x5u": "https://evil.example/x",
        "x5c": ["MII"],
    }

    assert refusal_code(sign_token(claims_with(), key="rsa-2", kid="rsa-1", **header)) == "token_signature"
    assert check_id_token(sign_token(claims_with(), **header)), "the header does not invalidate the token"


INVALID_KIDS: list[Any] = [
    "",
    "../../etc/passwd\x00",
    "x" * 257,
    "x" * 10_000,
    "a\nb",
    "é",
    7,
    1.5,
    None,
    ["rsa-1"],
    {},
]


@pytest.mark.parametrize("kid", INVALID_KIDS, ids=[str(kid)[:20] for kid in INVALID_KIDS])
def test_a_kid_must_be_printable(kid: Any):  # A04
    assert refusal_code(sign_token(claims_with(), kid=kid)) == "token_form"


@pytest.mark.parametrize("kid", ["../rsa-1", "' OR 1=1 --", "RSA-1", "rsa-1 ", "x" * 256])
def test_a_kid_is_looked_up_exactly(kid: str):  # A04
    with pytest.raises(UnknownKey):
        check_id_token(sign_token(claims_with(), kid=kid))


def test_without_kid_the_only_matching_key_is_used():  # A05
    signed_token = sign_token(claims_with(), kid=ABSENT)

    assert check_id_token(signed_token)
    assert check_id_token(signed_token, jwk("rsa-1"), jwk("p256-1"), jwk("rsa-3", use="enc")), (
        "no other key fits the algorithm"
    )
    assert refusal_code(signed_token, jwk("rsa-1"), jwk("rsa-2")) == "token_key"


def test_without_kid_a_mismatch_fetches_certificates():
    for keys in ([jwk("p256-1")], [jwk("rsa-2")]):
        with pytest.raises(UnknownKey):
            check_id_token(sign_token(claims_with(), kid=ABSENT), *keys)


def test_without_stored_keys_certificates_are_fetched():
    with pytest.raises(UnknownKey):
        token_check.check_id_token(sign_token(claims_with()), expectation_with(), ())


WRONG_PURPOSE_KEYS: list[dict[str, Any]] = [
    jwk("rsa-1", use="enc"),
    jwk("rsa-1", key_ops=["sign"]),
    jwk("rsa-1", key_ops="verify"),
    jwk("rsa-1", alg="PS256"),
    jwk("rsa-1", kty="EC"),
    jwk("p256-1", kid="rsa-1"),
    {"kty": "oct", "k": base64url(b"published secret"), "kid": "rsa-1", "alg": "RS256"},
    {"kid": "rsa-1"},
]


@pytest.mark.parametrize(
    "key", WRONG_PURPOSE_KEYS, ids=[json.dumps({**key, "n": 0, "x": 0, "y": 0}) for key in WRONG_PURPOSE_KEYS]
)
def test_a_key_for_another_purpose_verifies_nothing(key: dict[str, Any]):
    assert refusal_code(sign_token(claims_with()), key) == "token_key"


@pytest.mark.parametrize(
    ("key_name", "algorithm", "key"),
    [
        ("small-1", "RS256", jwk("small-1")),
        ("rsa-1", "RS256", jwk("rsa-1", n="AAAA")),
        ("rsa-1", "RS256", jwk("rsa-1", n=5)),
        ("rsa-1", "RS256", jwk("rsa-1", n=ABSENT)),
        ("p256-1", "ES256", jwk("p256-1", x="AAAA")),
        ("ed-1", "EdDSA", jwk("ed-1", x="AAAA")),
    ],
)
def test_a_weak_or_broken_key_verifies_nothing(key_name: str, algorithm: str, key: dict[str, Any]):  # A14
    assert refusal_code(sign_token(claims_with(), key=key_name, alg=algorithm), key) == "token_signature"


def test_es256_requires_its_curve():
    signed_token = sign_token(claims_with(), key="p384-1", alg="ES256", signed_with="ES384")

    assert refusal_code(signed_token, jwk("p384-1")) == "token_key"


@pytest.mark.parametrize("signing_key", ["rsa-2", "rsa-1"])
def test_a_wrong_signature_is_refused(signing_key: str):
    signed_token = sign_token(claims_with(), key=signing_key, kid="rsa-1")
    if signing_key == "rsa-1":  # a valid signature of other claims
        header, _, signature = signed_token.split(".")
        signed_token = f"{header}.{base64url(json.dumps(claims_with(sub='sub-root')).encode())}.{signature}"

    assert refusal_code(signed_token) == "token_signature"


def test_two_stored_keys_with_one_kid_verify_nothing():
    assert refusal_code(sign_token(claims_with()), jwk("rsa-1"), jwk("rsa-2", kid="rsa-1")) == "token_key"


WRONG_ISSUERS: list[Any] = [
    ISSUER + "/", ISSUER[:-1], ISSUER + "2", ISSUER.upper(), "https://idp.example.com/realms/other", "", None,
    [ISSUER], {"iss": ISSUER}, 7, ABSENT, ISSUER + " ", ISSUER.replace("https", "http"),
]  # fmt: skip


@pytest.mark.parametrize("issuer", WRONG_ISSUERS, ids=map(str, WRONG_ISSUERS))
def test_the_issuer_must_match_exactly(issuer: Any):  # A08
    assert refusal_code(sign_token(claims_with(iss=issuer))) == "token_issuer"


WRONG_AUDIENCES: list[dict[str, Any]] = [
    {"aud": "another"},
    {"aud": ABSENT},
    {"aud": None},
    {"aud": []},
    {"aud": {}},
    {"aud": 7},
    {"aud": CLIENT_ID + "2"},
    {"aud": f"x {CLIENT_ID} y"},
    {"aud": [CLIENT_ID + "2"]},
    {"aud": [[CLIENT_ID]]},
    {"aud": [CLIENT_ID, "another"]},
    {"aud": [CLIENT_ID, "another"], "azp": "another"},
    {"aud": [CLIENT_ID, "another"], "azp": [CLIENT_ID]},
    {"aud": [CLIENT_ID, CLIENT_ID]},
    {"aud": CLIENT_ID, "azp": "another"},
    {"aud": CLIENT_ID, "azp": None},
]


@pytest.mark.parametrize("changes", WRONG_AUDIENCES, ids=map(str, WRONG_AUDIENCES))
def test_the_audience_must_be_this_client(changes: dict[str, Any]):  # A09
    assert refusal_code(sign_token(claims_with(**changes))) == "token_audience"


@pytest.mark.parametrize(
    "changes",
    [{"aud": [CLIENT_ID]}, {"aud": CLIENT_ID, "azp": CLIENT_ID}, {"aud": [CLIENT_ID, "another"], "azp": CLIENT_ID}],
)
def test_several_audiences_require_us_as_authorized_party(changes: dict[str, Any]):  # A09
    assert check_id_token(sign_token(claims_with(**changes)))


WRONG_TIMES: list[tuple[dict[str, Any], str]] = [
    *[({"exp": value}, "token_time") for value in (ABSENT, None, "soon", str(NOW), True, [NOW])],
    *[({"iat": value}, "token_time") for value in (ABSENT, None, "soon", str(NOW), True, [NOW])],
    *[({"nbf": value}, "token_time") for value in (None, "now", True, [NOW], -1)],
    ({"exp": 1e308}, "token_time"),
    ({"exp": -1}, "token_time"),
    ({"iat": -1}, "token_time"),
    ({"exp": 10**18}, "token_time"),
    ({"iat": 1e308}, "token_time"),
    ({"exp": NOW - 61}, "token_clock"),
    ({"exp": NOW - 61.5}, "token_clock"),
    ({"exp": 0}, "token_clock"),
    ({"iat": NOW + 61}, "token_clock"),
    ({"iat": NOW + 3600}, "token_clock"),
    ({"iat": NOW - 601}, "token_clock"),
    ({"iat": NOW - 3 * 86_400}, "token_clock"),
    ({"nbf": NOW + 61}, "token_clock"),
    ({"nbf": NOW + 600}, "token_clock"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "code"), WRONG_TIMES, ids=[str(changes) for changes, _ in WRONG_TIMES])
def test_a_token_with_wrong_times_is_refused(changes: dict[str, Any], code: str):  # A10, A11
    assert refusal_code(sign_token(claims_with(**changes))) == code


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_invalid_json_numbers_are_refused(number: str):  # A10
    payload = json.dumps(claims_with()).replace(f'"exp": {NOW + 300}', f'"exp": {number}')

    assert refusal_code(sign_token(payload.encode())) == "token_form"


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": NOW - 60}, {"iat": NOW + 60}, {"iat": NOW - 600}, {"nbf": NOW + 60}, {"nbf": 0},
        {"iat": NOW - 0.5, "exp": NOW + 1.5}, {"exp": NOW + 10 * 365 * 86_400},
    ],
)  # fmt: skip
def test_clocks_may_differ_by_60_seconds(changes: dict[str, Any]):  # A11
    assert check_id_token(sign_token(claims_with(**changes)))


def test_the_detail_shows_the_difference_of_the_clocks():  # A11
    with pytest.raises(SignInRefused, match="600 s ahead"):
        check_id_token(sign_token(claims_with(iat=NOW + 600)))


@pytest.mark.parametrize("name", ["sub", "iss", "nonce", "email"])
def test_a_repeated_claim_is_refused(name: str):  # A12
    payload = json.dumps(claims_with(email="ann@example.com"))[:-1] + f', "{name}": "other"}}'

    assert refusal_code(sign_token(payload.encode())) == "token_form"


@pytest.mark.parametrize("payload", [b"[]", b'"text"', b"null", b"{", b"", b"\xff", b'{"a":' * 100 + b"1" + b"}" * 100])
def test_claims_must_be_an_object(payload: bytes):
    assert refusal_code(sign_token(payload)) == "token_form"


@pytest.mark.parametrize("nonce", [ABSENT, None, "", "another", NONCE + " ", [NONCE], 7, token_check.sha256_hex(NONCE)])
def test_the_nonce_must_be_that_of_the_attempt(nonce: Any):  # A15
    assert refusal_code(sign_token(claims_with(nonce=nonce))) == "token_nonce"


@pytest.mark.parametrize("sub", [ABSENT, None, "", "x" * 256, 7, ["sub"], {}, True])
def test_the_subject_has_1_to_255_characters(sub: Any):
    assert refusal_code(sign_token(claims_with(sub=sub))) == "token_subject"


def test_a_subject_may_have_255_characters():
    assert check_id_token(sign_token(claims_with(sub="x" * 255)))


@pytest.mark.parametrize("changes", [{"events": LOGOUT_EVENTS}, {"events": {}}, {"events": None}])
def test_a_logout_token_does_not_sign_in(changes: dict[str, Any]):
    assert refusal_code(sign_token(claims_with(**changes))) == "token_kind"


def test_at_hash_binds_the_access_token():
    valid_token = sign_token(claims_with(at_hash=half_hash(ACCESS_TOKEN)))

    assert check_id_token(valid_token, access_token=ACCESS_TOKEN, needs_at_hash=True)
    assert check_id_token(valid_token, access_token=ACCESS_TOKEN)
    assert check_id_token(sign_token(claims_with()), access_token=ACCESS_TOKEN), "at_hash is optional in the code flow"


@pytest.mark.parametrize("at_hash", [half_hash("another"), "", None, 7, half_hash(ACCESS_TOKEN) + "=", ["x"]])
@pytest.mark.parametrize("needs_at_hash", [True, False])
def test_a_wrong_at_hash_is_always_refused(at_hash: Any, needs_at_hash: bool):
    signed_token = sign_token(claims_with(at_hash=at_hash))

    assert refusal_code(signed_token, access_token=ACCESS_TOKEN, needs_at_hash=needs_at_hash) == "token_access_hash"


def test_at_hash_is_required_for_an_access_token_from_the_browser():
    assert refusal_code(sign_token(claims_with()), access_token=ACCESS_TOKEN, needs_at_hash=True) == "token_access_hash"
    assert (
        refusal_code(sign_token(claims_with(at_hash=half_hash(ACCESS_TOKEN))), needs_at_hash=True)
        == "token_access_hash"
    )


# Logout tokens.


def logout_claims(**changes: Any) -> dict[str, Any]:
    defaults = {
        "iss": ISSUER,
        "aud": CLIENT_ID,
        "iat": NOW,
        "exp": NOW + 120,
        "jti": "1",
        "sid": "sid-1",
        "events": LOGOUT_EVENTS,
    }
    return {**defaults, **changes}


def check_logout(encoded_token: str) -> dict[str, Any]:
    return token_check.check_logout_token(encoded_token, expectation_with(), [jwk("rsa-1", alg="RS256")])


@pytest.mark.parametrize("changes", [{}, {"sub": "sub-ann"}, {"sid": ABSENT, "sub": "sub-ann"}, {"aud": [CLIENT_ID]}])
@pytest.mark.parametrize("typ", ["logout+jwt", "JWT", ABSENT])
def test_a_valid_logout_token_is_accepted(changes: dict[str, Any], typ: Any):
    assert check_logout(sign_token(logout_claims(**changes), typ=typ))["jti"] == "1"


INVALID_LOGOUTS: list[tuple[dict[str, Any], str]] = [
    ({"events": ABSENT}, "token_kind"),
    ({"events": {}}, "token_kind"),
    ({"events": {"http://schemas.openid.net/event/other": {}}}, "token_kind"),
    ({"events": [token_check.LOGOUT_EVENT]}, "token_kind"),
    ({"events": {token_check.LOGOUT_EVENT: "yes"}}, "token_kind"),
    ({"nonce": NONCE}, "token_nonce"),
    ({"nonce": None}, "token_nonce"),
    ({"sid": ABSENT}, "token_subject"),
    ({"sid": 7}, "token_subject"),
    ({"sid": "sid-1", "sub": []}, "token_subject"),
    ({"sid": ""}, "token_subject"),
    ({"jti": ABSENT}, "token_form"),
    ({"iss": ISSUER + "/"}, "token_issuer"),
    ({"aud": "another"}, "token_audience"),
    ({"iat": ABSENT}, "token_time"),
    ({"iat": NOW - 601}, "token_clock"),
    ({"exp": NOW - 61}, "token_clock"),
]


@pytest.mark.parametrize(("changes", "code"), INVALID_LOGOUTS, ids=[str(changes) for changes, _ in INVALID_LOGOUTS])
def test_an_invalid_logout_token_is_refused(changes: dict[str, Any], code: str):
    with pytest.raises(SignInRefused) as exc_info:
        check_logout(sign_token(logout_claims(**changes), typ="logout+jwt"))
    assert exc_info.value.code == code


@pytest.mark.parametrize("header", [{"alg": "none", "signed_with": "none"}, {"alg": "RS512"}, {"alg": "PS256"}])
def test_a_logout_token_with_another_algorithm_is_refused(header: dict[str, Any]):
    with pytest.raises(SignInRefused):
        check_logout(sign_token(logout_claims(), **header))


def test_an_id_token_is_refused_as_a_logout_token():
    with pytest.raises(SignInRefused):
        check_logout(sign_token(claims_with()))


def test_the_unverified_issuer_can_be_read():
    assert token_check.unverified_issuer(sign_token(claims_with())) == ISSUER
    assert token_check.unverified_issuer(sign_token(claims_with(iss=["x"]))) == ""
