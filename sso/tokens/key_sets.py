"""Reads a provider's key set: which keys are usable, and why others are not. Pure except for `fetch_key_set`."""

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
MIN_RSA_BITS = 2048
# With larger keys verification becomes slow; no provider uses them.
MAX_RSA_BITS = 8192
MAX_EXPONENT = 2**32
KID_PATTERN = re.compile(r"[\x20-\x7e]{1,256}")
# The members that identify a key of each type (RFC 7638).
THUMBPRINT_MEMBERS: Mapping[str, tuple[str, ...]] = {
    "RSA": ("e", "kty", "n"),
    "EC": ("crv", "kty", "x", "y"),
    "OKP": ("crv", "kty", "x"),
}


class UnusableKeySet(Exception):
    """The response is not a usable key set; the text is a sentence for the administrator."""


@dataclass(frozen=True)
class KeySet:
    """The keys to store, by kid, and a description of each ignored key."""

    keys: Mapping[str, Mapping[str, Any]]
    ignored_keys: tuple[str, ...] = ()
    # All kids in the response, including those of ignored keys, which do not count as absent.
    kids: frozenset[str] = frozenset()


class _IgnoredKey(Exception):
    """A key that is ignored; the text describes it."""


def fetch_key_set(jwks_uri: str, policy: Policy, deadline: Deadline | None = None) -> KeySet:
    try:
        limited_policy = policy if deadline is None else policy.limited_to(deadline.remaining_s())
        response = outbound.get(jwks_uri, limited_policy)
        if response.status != 200:
            raise UnusableKeySet(f"The provider returned HTTP {response.status} for its key set.")
        return parse_key_set(response.json())
    except TimeoutError:
        raise UnusableKeySet("There was no time left to fetch the provider's keys.") from None
    except OutboundError as error:
        raise UnusableKeySet(error.message) from None


def parse_key_set(document: object) -> KeySet:
    """Return the usable keys of a JWKS document.

    >>> parse_key_set({"keys": []})
    Traceback (most recent call last):
    sso.tokens.key_sets.UnusableKeySet: The provider's key set contains no usable key.
    """
    published_keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(published_keys, list):
        raise UnusableKeySet("The provider's response is not a key set.")
    if len(published_keys) > MAX_KEYS:
        raise UnusableKeySet(f"The provider's key set contains more than {MAX_KEYS} keys.")
    keys: dict[str, Mapping[str, Any]] = {}
    ignored_keys: list[str] = []
    kids: set[str] = set()
    for jwk in published_keys:
        kid = jwk.get("kid") if isinstance(jwk, dict) else None
        try:
            _check_jwk(jwk)
            kid = thumbprint(jwk) if kid is None else kid
            keys[kid] = jwk
        except _IgnoredKey as reason:
            ignored_keys.append(str(reason))
        if isinstance(kid, str):
            if kid in kids:
                raise UnusableKeySet("The provider's key set contains two keys with the same kid.")
            kids.add(kid)
    if not keys:
        ignored_text = f" Ignored: {', '.join(ignored_keys)}." if ignored_keys else ""
        raise UnusableKeySet(f"The provider's key set contains no usable key.{ignored_text}")
    return KeySet(keys, tuple(ignored_keys), frozenset(kids))


def thumbprint(jwk: Mapping[str, Any]) -> str:
    """The thumbprint of RFC 7638, which is the same for all spellings of a key.

    >>> thumbprint({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})
    'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'
    """
    members = {name: jwk[name] for name in THUMBPRINT_MEMBERS[jwk["kty"]]}
    digest = hashlib.sha256(json.dumps(members, sort_keys=True, separators=(",", ":")).encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _check_jwk(jwk: Any) -> None:
    if not isinstance(jwk, dict):
        raise _IgnoredKey("an entry that is not a key")
    key_type = str(jwk.get("kty"))
    if key_type == "oct":
        raise _IgnoredKey("a symmetric key")
    if key_type not in THUMBPRINT_MEMBERS:
        raise _IgnoredKey("a key of an unknown type")
    if "d" in jwk:
        raise _IgnoredKey("a private key")
    if jwk.get("use", "sig") != "sig" or not allows_verifying(jwk):
        raise _IgnoredKey("a key that is not for signatures")
    if jwk.get("kid") is not None and not (isinstance(jwk["kid"], str) and KID_PATTERN.fullmatch(jwk["kid"])):
        raise _IgnoredKey("a key whose kid cannot be stored")
    algorithms = [name for name in ALGORITHMS if may_verify(jwk, name)]
    if not algorithms:
        raise _IgnoredKey("a key for another algorithm")
    if not all(isinstance(jwk.get(name), str) for name in THUMBPRINT_MEMBERS[key_type]):
        raise _IgnoredKey("a malformed key")
    if key_type == "RSA":
        _check_rsa_size(jwk)
    _check_key_material(jwk, algorithms[0])


def _check_rsa_size(jwk: Mapping[str, Any]) -> None:
    modulus, exponent = _decode_number(jwk["n"]), _decode_number(jwk["e"])
    if modulus.bit_length() < MIN_RSA_BITS:
        raise _IgnoredKey(f"an RSA key under {MIN_RSA_BITS} bits")
    if modulus.bit_length() > MAX_RSA_BITS or not 3 <= exponent <= MAX_EXPONENT:
        raise _IgnoredKey("an RSA key with an unsupported size or exponent")


def _decode_number(encoded: str) -> int:
    try:
        return int.from_bytes(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)), "big")
    except ValueError:
        raise _IgnoredKey("a malformed key") from None


def _check_key_material(jwk: Mapping[str, Any], algorithm: str) -> None:
    """Check that the key is valid, for example that a point is on its curve."""
    try:
        PyJWK({name: jwk[name] for name in THUMBPRINT_MEMBERS[jwk["kty"]]}, algorithm)
    except (PyJWKError, PyJWTError, ValueError, TypeError):
        raise _IgnoredKey("a malformed key") from None
