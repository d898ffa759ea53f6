"""Which keys of a published key set are used, and which responses are refused."""

from typing import Any

import pytest

from sso.tokens.key_sets import KeySet, UnusableKeySet, parse_key_set, thumbprint
from tests.providers.signing import ABSENT, jwk


def parse_keys(*keys: Any) -> KeySet:
    return parse_key_set({"keys": list(keys)})


def key_set_error(document: Any) -> str:
    with pytest.raises(UnusableKeySet) as exc_info:
        parse_key_set(document)
    return str(exc_info.value)


@pytest.mark.parametrize("name", ["rsa-1", "p256-1", "ed-1"])
def test_keys_of_supported_algorithms_are_used_unchanged(name: str):
    key = jwk(name, x5c=["MII"], alg=ABSENT)

    assert parse_keys(key).keys == {name: key}


@pytest.mark.parametrize("algorithm", ["RS256", "PS256"])
def test_an_rsa_key_may_name_its_algorithm(algorithm: str):
    assert list(parse_keys(jwk("rsa-1", alg=algorithm)).keys) == ["rsa-1"]


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (jwk("small-1"), "an RSA key under 2048 bits"),  # A14
        ({"kty": "oct", "kid": "s", "k": "c2VjcmV0"}, "a symmetric key"),
        (jwk("rsa-2", d="AQAB"), "a private key"),
        (jwk("rsa-2", use="enc"), "a key that is not for signatures"),
        (jwk("rsa-2", use=["sig"]), "a key that is not for signatures"),
        (jwk("rsa-2", key_ops=["encrypt"]), "a key that is not for signatures"),
        (jwk("rsa-2", key_ops="verify"), "a key that is not for signatures"),
        (jwk("rsa-2", alg="RSA-OAEP"), "a key for another algorithm"),
        (jwk("rsa-2", alg="RS512"), "a key for another algorithm"),
        (jwk("rsa-2", alg="ES256"), "a key for another algorithm"),
        (jwk("rsa-2", alg="HS256"), "a key for another algorithm"),
        (jwk("rsa-2", alg="none"), "a key for another algorithm"),
        (jwk("rsa-2", alg=["RS256"]), "a key for another algorithm"),
        (jwk("p384-1"), "a key for another algorithm"),
        (jwk("p256-1", crv={}), "a key for another algorithm"),
        (jwk("p256-1", crv="secp256k1"), "a key for another algorithm"),
        (jwk("p256-1", x=jwk("p256-2")["x"]), "a malformed key"),
        (jwk("rsa-2", n=ABSENT), "a malformed key"),
        (jwk("rsa-2", n=5), "a malformed key"),
        (jwk("rsa-2", n="ä"), "a malformed key"),
        (jwk("rsa-2", e="AQ"), "an RSA key with an unsupported size or exponent"),
        (jwk("rsa-2", e=jwk("rsa-2")["n"]), "an RSA key with an unsupported size or exponent"),
        (jwk("rsa-2", n=jwk("rsa-2")["n"] * 5), "an RSA key with an unsupported size or exponent"),
        (jwk("ed-1", x="AA"), "a malformed key"),
        (jwk("rsa-2", kty="rsa"), "a key of an unknown type"),
        (jwk("rsa-2", kty=["RSA"]), "a key of an unknown type"),
        (jwk("rsa-2", kty=ABSENT), "a key of an unknown type"),
        (jwk("rsa-2", kid=7), "a key whose kid cannot be stored"),
        (jwk("rsa-2", kid=""), "a key whose kid cannot be stored"),
        (jwk("rsa-2", kid="a\x00b"), "a key whose kid cannot be stored"),
        (jwk("rsa-2", kid="a\n"), "a key whose kid cannot be stored"),
        (jwk("rsa-2", kid="x" * 257), "a key whose kid cannot be stored"),
        ("rsa-2", "an entry that is not a key"),
        (None, "an entry that is not a key"),
    ],
)  # fmt: skip
def test_other_keys_are_ignored_and_counted(key: Any, reason: str):
    key_set = parse_keys(key, jwk("rsa-1"))

    assert (list(key_set.keys), key_set.ignored_keys) == (["rsa-1"], (reason,))
    assert "no usable key" in key_set_error({"keys": [key]}) and reason in key_set_error({"keys": [key]})


@pytest.mark.parametrize(
    "document",
    [None, [], "keys", 7, {}, {"keys": None}, {"keys": {}}, {"keys": "x"}, {"keys": []}, {"keys": [{}]}],
)
def test_an_invalid_key_set_is_refused(document: Any):  # A29 A30
    assert key_set_error(document)


@pytest.mark.parametrize(
    "second_key",
    [jwk("rsa-2", kid="rsa-1"), {"kty": "oct", "kid": "rsa-1", "k": "AA"}, jwk("rsa-2", kid="rsa-1", use="enc")],
)
def test_two_keys_with_one_kid_refuse_the_whole_set(second_key: Any):  # A06
    assert "two keys with the same kid" in key_set_error({"keys": [jwk("rsa-1"), jwk("p256-1"), second_key]})


def test_more_than_64_keys_are_refused():  # A28
    keys = [jwk("ed-1", kid=str(number)) for number in range(65)]

    assert len(parse_key_set({"keys": keys[:64]}).keys) == 64
    assert "more than 64" in key_set_error({"keys": keys})


def test_a_key_without_kid_is_identified_by_its_thumbprint():
    key = jwk("rsa-1", kid=ABSENT)

    assert parse_keys(key).keys == {thumbprint(key): key}
    assert thumbprint(key) == thumbprint(jwk("rsa-1", alg="RS256")) != thumbprint(jwk("rsa-2"))
    assert "two keys with the same kid" in key_set_error({"keys": [key, dict(key)]})


def test_the_thumbprint_equals_the_example_of_the_rfc():
    modulus = (
        "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3ok"
        "njhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu"
        "6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8a"
        "wapJzKnqDKgw"
    )

    assert thumbprint({"kty": "RSA", "n": modulus, "e": "AQAB"}) == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
