"""Creates keys and compact tokens, valid or with any header, payload and signature."""

import base64
import hashlib
import json
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm, get_default_algorithms

ABSENT: Any = ...
"""The value of a claim, header or key member that is left out."""


@cache
def private_key(name: str) -> Any:
    """A key for this name, the same within one run: "rsa…", "small…" (RSA 1024), "p256…", "p384…" or "ed…"."""
    if name.startswith("rsa"):
        return rsa.generate_private_key(65537, 2048)
    if name.startswith("small"):
        return rsa.generate_private_key(65537, 1024)
    if name.startswith("p"):
        return ec.generate_private_key(ec.SECP384R1() if name.startswith("p384") else ec.SECP256R1())
    assert name.startswith("ed"), name
    return ed25519.Ed25519PrivateKey.generate()


def public_pem(name: str) -> bytes:
    return bytes(private_key(name).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


def jwk(name: str, **members: Any) -> dict[str, Any]:
    """The public JWK of a named key, with the name as kid; `members` replace its members."""
    public_key = private_key(name).public_key()
    algorithms: dict[str, Any] = {"r": RSAAlgorithm, "s": RSAAlgorithm, "p": ECAlgorithm, "e": OKPAlgorithm}
    key_members = algorithms[name[0]].to_jwk(public_key, as_dict=True)
    key_members.pop("key_ops", None)
    return without_absent({**key_members, "kid": name, "use": "sig", **members})


def without_absent(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not ABSENT}


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sign_token(
    claims: dict[str, Any] | bytes,
    *,
    key: str | bytes = "rsa-1",
    signed_with: str = "",
    signature: bytes | None = None,
    **header: Any,
) -> str:
    """A compact token. Only the algorithms of PyJWT are used, because its `encode` refuses most invalid tokens.

    `claims` may be bytes, for JSON that no encoder writes. `signed_with` is the algorithm of the signature if the
    header names another one; "none" leaves the signature empty. A key of type bytes is a shared secret.
    """
    header_members = without_absent(
        {"alg": "RS256", "kid": key if isinstance(key, str) else ABSENT, "typ": "JWT", **header}
    )
    payload = claims if isinstance(claims, bytes) else json.dumps(without_absent(claims)).encode()
    signed_part = f"{base64url(json.dumps(header_members).encode())}.{base64url(payload)}"
    if signature is None:
        algorithm = get_default_algorithms()[signed_with or header_members["alg"]]
        signing_key = private_key(key) if isinstance(key, str) else key
        signature = b"" if signed_with == "none" else algorithm.sign(signed_part.encode(), signing_key)
    return f"{signed_part}.{base64url(signature)}"


def half_hash(text: str) -> str:
    """The `at_hash` of an access token for an algorithm with SHA-256."""
    return base64url(hashlib.sha256(text.encode()).digest()[:16])
