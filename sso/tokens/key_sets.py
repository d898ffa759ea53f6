"""Reads a provider's key set: which keys are usable, and why others are not. Pure except for `fetch`."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jwt import PyJWK
from jwt.exceptions import PyJWKError, PyJWTError

from sso.tokens.token_check import ALGORITHMS, allows_verifying, may_verify
from system import outbound
from system.outbound import OutboundError, Policy
from system.outbound.deadline import Deadline

MAX_KEYS = 64
SMALLEST_RSA_BITS = 2048
# With larger keys verification becomes slow; no provider uses them.
MAX_RSA_BITS = 8192
MAX_EXPONENT = 2**32
KID = re.compile(r"[\x20-\x7e]{1,256}")
# What identifies a key of each kind (RFC 7638).
IDENTIFYING: Mapping[str, tuple[str, ...]] = {
    "RSA": ("e", "kty", "n"),
    "EC": ("crv", "kty", "x", "y"),
    "OKP": ("crv", "kty", "x"),
}


class Unusable(Exception):
    """The answer is not a usable key set; the text is a sentence for the administrator."""


@dataclass(frozen=True)
class KeySet:
    """The keys to store, by kid, and a description of each ignored key."""

    keys: Mapping[str, Mapping[str, Any]]
    skipped: tuple[str, ...] = ()
    # All kids in the answer, including those of ignored keys, which are not absent.
    named: frozenset[str] = frozenset()


class _Skipped(Exception):
    """Why this key is ignored."""


def fetch(jwks_uri: str, policy: Policy, deadline: Deadline | None = None) -> KeySet:
    try:
        within = policy if deadline is None else policy.within(deadline.left())
    except TimeoutError:
        raise Unusable("There was no time left to fetch the provider's keys.") from None
    try:
        answer = outbound.get(jwks_uri, within, allow_query=True)
        if answer.status != 200:
            raise Unusable(f"The provider answered {answer.status} to the request for its keys.")
        return usable(answer.json())
    except OutboundError as error:
        raise Unusable(error.message) from None


def usable(document: object) -> KeySet:
    """The usable keys of a document.

    >>> usable({"keys": []})
    Traceback (most recent call last):
    sso.tokens.key_sets.Unusable: The provider's key set contains no usable key.
    """
    published = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(published, list):
        raise Unusable("The provider's answer is not a key set.")
    if len(published) > MAX_KEYS:
        raise Unusable(f"The provider's key set contains more than {MAX_KEYS} keys.")
    keys: dict[str, Mapping[str, Any]] = {}
    skipped: list[str] = []
    named: set[str] = set()
    for jwk in published:
        kid = jwk.get("kid") if isinstance(jwk, dict) else None
        try:
            _check(jwk)
            kid = thumbprint(jwk) if kid is None else kid
            keys[kid] = jwk
        except _Skipped as why:
            skipped.append(str(why))
        if isinstance(kid, str):
            if kid in named:
                raise Unusable("The provider's key set contains two keys with the same kid.")
            named.add(kid)
    if not keys:
        ignored = f" Ignored: {', '.join(skipped)}." if skipped else ""
        raise Unusable(f"The provider's key set contains no usable key.{ignored}")
    return KeySet(keys, tuple(skipped), frozenset(named))


def thumbprint(jwk: Mapping[str, Any]) -> str:
    """RFC 7638: identical for the same key, however it is written.

    >>> thumbprint({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})
    'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'
    """
    members = {name: jwk[name] for name in IDENTIFYING[jwk["kty"]]}
    digest = hashlib.sha256(json.dumps(members, sort_keys=True, separators=(",", ":")).encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _check(jwk: Any) -> None:
    if not isinstance(jwk, dict):
        raise _Skipped("an entry that is not a key")
    kind = str(jwk.get("kty"))
    if kind == "oct":
        raise _Skipped("a symmetric key")
    if kind not in IDENTIFYING:
        raise _Skipped("a key of an unknown type")
    if "d" in jwk:
        raise _Skipped("a private key")
    if jwk.get("use", "sig") != "sig" or not allows_verifying(jwk):
        raise _Skipped("a key that is not for signatures")
    if jwk.get("kid") is not None and not (isinstance(jwk["kid"], str) and KID.fullmatch(jwk["kid"])):
        raise _Skipped("a key whose kid cannot be stored")
    algorithms = [name for name in ALGORITHMS if may_verify(jwk, name)]
    if not algorithms:
        raise _Skipped("a key for another algorithm")
    if not all(isinstance(jwk.get(name), str) for name in IDENTIFYING[kind]):
        raise _Skipped("a malformed key")
    if kind == "RSA":
        _check_size(jwk)
    _check_key(jwk, algorithms[0])


def _check_size(jwk: Mapping[str, Any]) -> None:
    modulus, exponent = _number(jwk["n"]), _number(jwk["e"])
    if modulus.bit_length() < SMALLEST_RSA_BITS:
        raise _Skipped(f"an RSA key under {SMALLEST_RSA_BITS} bits")
    if modulus.bit_length() > MAX_RSA_BITS or not 3 <= exponent <= MAX_EXPONENT:
        raise _Skipped("an RSA key that is too large")


def _number(encoded: str) -> int:
    try:
        return int.from_bytes(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)), "big")
    except ValueError:
        raise _Skipped("a malformed key") from None


def _check_key(jwk: Mapping[str, Any], algorithm: str) -> None:
    """Whether it is a valid key: a point must be on its curve."""
    try:
        PyJWK({name: jwk[name] for name in IDENTIFYING[jwk["kty"]]}, algorithm)
    except (PyJWKError, PyJWTError, ValueError, TypeError):
        raise _Skipped("a malformed key") from None
