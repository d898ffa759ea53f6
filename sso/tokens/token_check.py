"""Verifies a token with the expected values and the stored keys, and returns its claims. Pure.

    size, form ──▶ header ──▶ key ──▶ signature ──▶ issuer, audience ──▶ times ──▶ nonce, subject, at_hash
    16 KB ASCII    alg, typ   stored  by PyJWT      exact                60 s      of this attempt

Only `alg` and `kid` of a token affect how it is checked, and they only select from what we allow. The
headers `jwk`, `jku`, `x5u` and `x5c` are never read.
"""

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from sso.refusals import Refusal, SignInRefused
from system.strict_json import InvalidJson, parse_json

MAX_TOKEN_LENGTH = 16 * 1024
MAX_KID_LENGTH = 256
MAX_SUB_LENGTH = 255
LEEWAY_S = 60
MAX_TOKEN_AGE_S = 600
MAX_TIME = 253_402_300_799  # the end of the year 9999; later values are invalid
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"

# For each algorithm: the type of its key, the curve, and the hash of at_hash.
ALGORITHMS: dict[str, tuple[str, str | None, str]] = {
    "RS256": ("RSA", None, "sha256"),
    "PS256": ("RSA", None, "sha256"),
    "ES256": ("EC", "P-256", "sha256"),
    "EdDSA": ("OKP", "Ed25519", "sha512"),
}
JWS = jwt.PyJWS(algorithms=list(ALGORITHMS), options={"enforce_minimum_key_length": True})
SEGMENT_PATTERN = re.compile(r"[A-Za-z0-9_-]*")

Claims = dict[str, Any]
Key = Mapping[str, Any]


class UnknownKey(SignInRefused):
    """No stored key matches the token. The caller should fetch the certificates and check again."""


@dataclass(frozen=True, kw_only=True)
class ExpectedToken:
    """The values that a token must match. `nonce_hash` and `access_token` are those of the sign-in attempt."""

    issuer: str
    client_id: str
    now: float
    algorithms: Collection[str] = ()
    """The algorithms that the provider advertises. If there are none, RS256 is used, the default of OpenID Connect."""
    nonce_hash: str = ""
    access_token: str | None = None
    needs_at_hash: bool = False


def sha256_hex(text: str) -> str:
    """The stored form of a nonce or state."""
    return hashlib.sha256(text.encode()).hexdigest()


def check_id_token(token: str, expected: ExpectedToken, keys: Iterable[Key]) -> Claims:
    """The claims of a valid ID token; raises `SignInRefused`."""
    claims, algorithm = verify_token(token, expected, keys, types=("jwt",))
    if "events" in claims:
        raise SignInRefused(Refusal.TOKEN_KIND, "This is a logout token.")
    check_origin(claims, expected)
    check_times(claims, expected.now)
    nonce = claims.get("nonce")
    if not isinstance(nonce, str) or sha256_hex(nonce) != expected.nonce_hash:
        raise SignInRefused(Refusal.TOKEN_NONCE, "The nonce does not match this sign-in attempt.")
    sub = claims.get("sub")
    if not isinstance(sub, str) or not 1 <= len(sub) <= MAX_SUB_LENGTH:
        raise SignInRefused(
            Refusal.TOKEN_SUBJECT, f"The subject is missing, empty or longer than {MAX_SUB_LENGTH} characters."
        )
    check_at_hash(claims, expected, algorithm)
    return claims


def check_logout_token(token: str, expected: ExpectedToken, keys: Iterable[Key]) -> Claims:
    """The claims of a valid logout token (OpenID Connect Back-Channel Logout, section 2.6); raises `SignInRefused`."""
    claims, _ = verify_token(token, expected, keys, types=("jwt", "logout+jwt"))
    check_origin(claims, expected)
    check_times(claims, expected.now)
    events = claims.get("events")
    if not isinstance(events, dict) or not isinstance(events.get(LOGOUT_EVENT), dict):
        raise SignInRefused(Refusal.TOKEN_KIND, "This is not a logout token. It lacks the back-channel logout event.")
    if "nonce" in claims:
        raise SignInRefused(Refusal.TOKEN_NONCE, "A logout token must not have a nonce.")
    identifiers = [claims[name] for name in ("sub", "sid") if name in claims]
    if not identifiers or not all(isinstance(item, str) and 1 <= len(item) <= MAX_SUB_LENGTH for item in identifiers):
        raise SignInRefused(Refusal.TOKEN_SUBJECT, "The token must have a valid sub or sid.")
    if not isinstance(claims.get("jti"), str):
        raise SignInRefused(Refusal.TOKEN_FORM, "The token has no ID (jti).")
    return claims


def unverified_issuer(token: str) -> str:
    """The issuer that a token claims, used only to choose the keys that must then verify it."""
    _, payload, _ = split_token(token)
    issuer = parse_json_object(payload).get("iss")
    return issuer if isinstance(issuer, str) else ""


def verify_token(
    token: str, expected: ExpectedToken, keys: Iterable[Key], types: Collection[str]
) -> tuple[Claims, str]:
    """The claims and the algorithm of a token with a valid signature."""
    header = parse_json_object(split_token(token)[0])
    algorithm = check_header(header, expected.algorithms, types)
    kid = header.get("kid")
    key = select_key(kid, algorithm, keys)
    try:
        payload = JWS.decode(token, jwt.PyJWK(dict(key), algorithm), algorithms=[algorithm])
    except jwt.InvalidSignatureError:
        if kid is None:  # a provider without kids may have replaced its only key
            raise UnknownKey(Refusal.TOKEN_KEY, "The signature does not match the only stored key.") from None
        raise SignInRefused(Refusal.TOKEN_SIGNATURE, "The signature is invalid.") from None
    except (jwt.PyJWTError, ValueError, TypeError, KeyError) as error:
        raise SignInRefused(
            Refusal.TOKEN_SIGNATURE, f"The signature cannot be verified ({type(error).__name__})."
        ) from None
    return parse_json_object(payload), algorithm


def split_token(token: str) -> tuple[bytes, bytes, bytes]:
    """Header, payload and signature of a compact token, decoded."""
    if len(token) > MAX_TOKEN_LENGTH:
        raise SignInRefused(Refusal.TOKEN_FORM, f"The token is longer than {MAX_TOKEN_LENGTH // 1024} KB.")
    parts = token.split(".")
    if len(parts) != 3:
        raise SignInRefused(Refusal.TOKEN_FORM, f"The token must have three parts, but has {len(parts)}.")
    return decode_segment(parts[0]), decode_segment(parts[1]), decode_segment(parts[2])


def decode_segment(segment: str) -> bytes:
    """
    >>> decode_segment("e30")
    b'{}'
    """
    if not SEGMENT_PATTERN.fullmatch(segment) or len(segment) % 4 == 1:
        raise SignInRefused(Refusal.TOKEN_FORM, "A part of the token is not base64url-encoded.")
    return base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))


def parse_json_object(content: bytes) -> Claims:
    """Refuses repeated claims. PyJWT would use the last one."""
    try:
        document = parse_json(content, keeps_digits=False)
    except InvalidJson:
        raise SignInRefused(Refusal.TOKEN_FORM, "A part of the token is not valid JSON.") from None
    if not isinstance(document, dict):
        raise SignInRefused(Refusal.TOKEN_FORM, "A part of the token is not a JSON object.")
    return document


def check_header(header: Claims, advertised_algorithms: Collection[str], types: Collection[str]) -> str:
    """Check the header and return its algorithm."""
    if "crit" in header:
        raise SignInRefused(Refusal.TOKEN_FORM, "The header requires an extension (crit).")
    token_type = header.get("typ", "JWT")
    if not isinstance(token_type, str) or token_type.lower() not in types:
        raise SignInRefused(Refusal.TOKEN_FORM, "The header has the wrong type (typ).")
    kid = header.get("kid")
    is_valid = isinstance(kid, str) and 1 <= len(kid) <= MAX_KID_LENGTH and kid.isascii() and kid.isprintable()
    if "kid" in header and not is_valid:
        raise SignInRefused(Refusal.TOKEN_FORM, f"The kid must have 1 to {MAX_KID_LENGTH} printable ASCII characters.")
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise SignInRefused(Refusal.TOKEN_ALG, f"The algorithm must be one of {', '.join(ALGORITHMS)}.")
    if algorithm not in (advertised_algorithms or ("RS256",)):
        raise SignInRefused(Refusal.TOKEN_ALG, f"The provider does not advertise {algorithm}.")
    return algorithm


def select_key(kid: str | None, algorithm: str, keys: Iterable[Key]) -> Key:
    """Return the stored key with this kid or, if there is no kid, the only key for this algorithm."""
    stored_keys = list(keys)
    if kid is None:
        candidates = [key for key in stored_keys if may_verify(key, algorithm)]
        # The provider may have stopped publishing all but one of several keys.
        if len(candidates) != 1:
            detail = f"The token has no kid. Exactly one stored key must match, but {len(candidates)} do."
            raise UnknownKey(Refusal.TOKEN_KEY, detail)
        return candidates[0]
    matching_keys = [key for key in stored_keys if key.get("kid") == kid]
    if not matching_keys:
        raise UnknownKey(Refusal.TOKEN_KEY, "No certificate with this kid is stored.")
    if len(matching_keys) > 1 or not may_verify(matching_keys[0], algorithm):
        raise SignInRefused(Refusal.TOKEN_KEY, f"The kid must identify one stored key for {algorithm} signatures.")
    return matching_keys[0]


def may_verify(key: Key, algorithm: str) -> bool:
    """
    >>> may_verify({"kty": "RSA", "alg": "RS256"}, "PS256")
    False
    """
    key_type, curve, _ = ALGORITHMS[algorithm]
    return (
        key.get("kty") == key_type
        and (curve is None or key.get("crv") == curve)
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
        and allows_verifying(key)
    )


def allows_verifying(key: Key) -> bool:
    operations = key.get("key_ops")
    return operations is None or (isinstance(operations, list) and "verify" in operations)


def check_origin(claims: Claims, expected: ExpectedToken) -> None:
    """Issuer, audience and authorized party."""
    if claims.get("iss") != expected.issuer:  # exact match, even of a trailing slash; no list
        raise SignInRefused(Refusal.TOKEN_ISSUER, "The issuer does not match the connection's issuer.")
    audience = claims.get("aud")
    audiences = [audience] if isinstance(audience, str) else audience
    if not isinstance(audiences, list) or expected.client_id not in audiences:
        raise SignInRefused(Refusal.TOKEN_AUDIENCE, "The audience does not include the connection's Client ID.")
    authorized_party = claims.get("azp")
    if len(audiences) > 1 and authorized_party is None:
        raise SignInRefused(Refusal.TOKEN_AUDIENCE, "The token has several audiences but no authorized party (azp).")
    if "azp" in claims and authorized_party != expected.client_id:
        raise SignInRefused(Refusal.TOKEN_AUDIENCE, "The authorized party (azp) is a different client.")


def check_times(claims: Claims, now: float) -> None:
    """A10, A11: times that a clock difference may explain have their own code; the detail shows the difference."""
    expires_at, issued_at = time_claim(claims, "exp"), time_claim(claims, "iat")
    not_before = time_claim(claims, "nbf") if "nbf" in claims else issued_at
    for name, value in (("iat", issued_at), ("nbf", not_before)):
        if value > now + LEEWAY_S:
            raise SignInRefused(Refusal.TOKEN_CLOCK, f"{name} is {value - now:.0f} s ahead of this server's clock.")
    if expires_at < now - LEEWAY_S:
        raise SignInRefused(Refusal.TOKEN_CLOCK, f"exp is {now - expires_at:.0f} s behind this server's clock.")
    if now - issued_at > MAX_TOKEN_AGE_S:
        detail = f"The token is {now - issued_at:.0f} s old by this server's clock. At most {MAX_TOKEN_AGE_S} s"
        raise SignInRefused(Refusal.TOKEN_CLOCK, f"{detail} is allowed.")


def time_claim(claims: Claims, name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_TIME:
        raise SignInRefused(Refusal.TOKEN_TIME, f"{name} is missing or not a valid time.")
    return float(value)


def check_at_hash(claims: Claims, expected: ExpectedToken, algorithm: str) -> None:
    """Checks at_hash where it is required and whenever it is present."""
    if expected.access_token is None:
        if expected.needs_at_hash:
            raise SignInRefused(Refusal.TOKEN_ACCESS_HASH, "The access token is missing.")
        return
    if "at_hash" not in claims and not expected.needs_at_hash:
        return
    digest = hashlib.new(ALGORITHMS[algorithm][2], expected.access_token.encode()).digest()
    expected_hash = base64.urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=").decode()
    if claims.get("at_hash") != expected_hash:
        raise SignInRefused(Refusal.TOKEN_ACCESS_HASH, "The hash of the access token (at_hash) is missing or wrong.")
