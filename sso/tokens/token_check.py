"""In charge of believing a token or not: pure, from its text, what is expected and the stored keys to its claims.

    size, form ──▶ header ──▶ key ──▶ signature ──▶ issuer, audience ──▶ times ──▶ nonce, subject, at_hash
    16 KB ASCII    alg, typ   stored  by PyJWT      exact                60 s      of this attempt

Nothing is read from a token to decide how to check it but `alg` and `kid`, and each only chooses among what we allow:
headers `jwk`, `jku`, `x5u` and `x5c` are never looked at.
"""

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from sso.refusals import SignInRefused
from system.outbound.errors import OutboundFailed
from system.outbound.strict_json import parse_json

LONGEST_TOKEN = 16 * 1024
LONGEST_KID = 256
LONGEST_SUB = 255
LEEWAY_S = 60
OLDEST_S = 600
LAST_TIME = 253_402_300_799  # the end of the year 9999; what is later is no time
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"

# Each algorithm with the kind of key it takes, its curve, and the hash of at_hash.
ALGORITHMS: dict[str, tuple[str, str | None, str]] = {
    "RS256": ("RSA", None, "sha256"),
    "PS256": ("RSA", None, "sha256"),
    "ES256": ("EC", "P-256", "sha256"),
    "EdDSA": ("OKP", "Ed25519", "sha512"),
}
SIGNATURES = jwt.PyJWS(algorithms=list(ALGORITHMS), options={"enforce_minimum_key_length": True})
SEGMENT = re.compile(r"[A-Za-z0-9_-]*")

Claims = dict[str, Any]
Key = Mapping[str, Any]


class UnknownKey(SignInRefused):
    """No stored key can have signed it: fetch the certificates, then check once more."""

    def __init__(self, detail: str) -> None:
        super().__init__("token_key", detail)


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a token must say. `nonce_hash` and `access_token` are those of the attempt that it answers."""

    issuer: str
    client_id: str
    now: float
    algorithms: Collection[str] = ()
    """What the provider advertises; nothing advertised means RS256, as OpenID Connect has it."""
    nonce_hash: str = ""
    access_token: str | None = None
    needs_at_hash: bool = False


def hashed(nonce: str) -> str:
    """What is kept of a nonce."""
    return hashlib.sha256(nonce.encode()).hexdigest()


def check(token: str, expected: Expected, keys: Iterable[Key]) -> Claims:
    """The claims of an ID token that says all that is expected, or `Refused`."""
    claims, algorithm = signed_claims(token, expected, keys, types=("jwt",))
    if "events" in claims:
        raise SignInRefused("token_kind", "It is a logout token.")
    check_origin(claims, expected)
    check_times(claims, expected.now)
    nonce = claims.get("nonce")
    if not isinstance(nonce, str) or hashed(nonce) != expected.nonce_hash:
        raise SignInRefused("token_nonce", "The nonce is not the one of this attempt.")
    sub = claims.get("sub")
    if not isinstance(sub, str) or not 1 <= len(sub) <= LONGEST_SUB:
        raise SignInRefused("token_subject", f"The subject is missing, empty or longer than {LONGEST_SUB} characters.")
    check_at_hash(claims, expected, algorithm)
    return claims


def check_logout(token: str, expected: Expected, keys: Iterable[Key]) -> Claims:
    """The claims of a logout token (OpenID Connect Back-Channel Logout, 2.6), or `Refused`."""
    claims, _ = signed_claims(token, expected, keys, types=("jwt", "logout+jwt"))
    check_origin(claims, expected)
    check_times(claims, expected.now)
    events = claims.get("events")
    if not isinstance(events, dict) or not isinstance(events.get(LOGOUT_EVENT), dict):
        raise SignInRefused("token_kind", "It is no logout token: its events lack the one of back-channel logout.")
    if "nonce" in claims:
        raise SignInRefused("token_nonce", "A logout token has no nonce.")
    names = [claims[name] for name in ("sub", "sid") if name in claims]
    if not names or not all(isinstance(name, str) and 1 <= len(name) <= LONGEST_SUB for name in names):
        raise SignInRefused("token_subject", "Neither subject nor session is named properly.")
    if not isinstance(claims.get("jti"), str):
        raise SignInRefused("token_form", "The token has no id (jti).")
    return claims


def unverified_issuer(token: str) -> str:
    """Whom a token claims to come from: only to choose whose keys must then prove it."""
    _, payload, _ = segments(token)
    issuer = strict_object(payload).get("iss")
    return issuer if isinstance(issuer, str) else ""


def signed_claims(token: str, expected: Expected, keys: Iterable[Key], types: Collection[str]) -> tuple[Claims, str]:
    """The claims and the algorithm of a token whose signature is right."""
    header = strict_object(segments(token)[0])
    algorithm = check_header(header, expected.algorithms, types)
    kid = header.get("kid")
    key = key_for(kid, algorithm, keys)
    try:
        payload = SIGNATURES.decode(token, jwt.PyJWK(dict(key), algorithm), algorithms=[algorithm])
    except jwt.InvalidSignatureError:
        if kid is None:  # a provider that names no keys may have changed its only one
            raise UnknownKey("The signature is not that of the only stored key.") from None
        raise SignInRefused("token_signature", "The signature is wrong.") from None
    except (jwt.PyJWTError, ValueError, TypeError, KeyError) as error:
        raise SignInRefused("token_signature", f"The signature cannot be checked ({type(error).__name__}).") from None
    return strict_object(payload), algorithm


def segments(token: str) -> tuple[bytes, bytes, bytes]:
    """Header, payload and signature of a compact token, decoded; without signature the algorithm tells why."""
    if len(token) > LONGEST_TOKEN:
        raise SignInRefused("token_form", f"The token is longer than {LONGEST_TOKEN // 1024} KB.")
    parts = token.split(".")
    if len(parts) != 3:
        raise SignInRefused("token_form", f"The token has {len(parts)} parts, not three.")
    return decoded(parts[0]), decoded(parts[1]), decoded(parts[2])


def decoded(segment: str) -> bytes:
    """
    >>> decoded("e30")
    b'{}'
    """
    if not SEGMENT.fullmatch(segment) or len(segment) % 4 == 1:
        raise SignInRefused("token_form", "A part of the token is not base64url.")
    return base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))


def strict_object(raw: bytes) -> Claims:
    """A claim that stands twice is refused here; PyJWT would keep the last."""
    try:
        found = parse_json(raw)
    except OutboundFailed:
        raise SignInRefused("token_form", "A part of the token is not strict JSON.") from None
    if not isinstance(found, dict):
        raise SignInRefused("token_form", "A part of the token is no JSON object.")
    return found


def check_header(header: Claims, advertised: Collection[str], types: Collection[str]) -> str:
    """The algorithm, if the header asks for nothing that we would not do."""
    if "crit" in header:
        raise SignInRefused("token_form", "The header demands an extension (crit).")
    kind = header.get("typ", "JWT")
    if not isinstance(kind, str) or kind.lower() not in types:
        raise SignInRefused("token_form", "The header's type is not that of this token.")
    kid = header.get("kid")
    if "kid" in header and not (isinstance(kid, str) and 1 <= len(kid) <= LONGEST_KID and is_printable(kid)):
        raise SignInRefused("token_form", f"The key's id is no printable text of 1 to {LONGEST_KID} characters.")
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise SignInRefused("token_alg", f"The algorithm is none of {', '.join(ALGORITHMS)}.")
    if algorithm not in (advertised or ("RS256",)):
        raise SignInRefused("token_alg", f"The provider does not advertise {algorithm}.")
    return algorithm


def is_printable(text: str) -> bool:
    return text.isascii() and text.isprintable()


def key_for(kid: str | None, algorithm: str, keys: Iterable[Key]) -> Key:
    """The stored key of this id that may verify this algorithm; without an id, the only one that may."""
    stored = list(keys)
    if kid is None:
        fitting = [key for key in stored if may_verify(key, algorithm)]
        # Of several the provider may publish one only by now.
        if len(fitting) != 1:
            raise UnknownKey(f"The token names no key, and {len(fitting) or 'no'} stored ones fit.")
        return fitting[0]
    named = [key for key in stored if key.get("kid") == kid]
    if not named:
        raise UnknownKey("No certificate of the key's id is stored.")
    if len(named) > 1 or not may_verify(named[0], algorithm):
        raise SignInRefused("token_key", f"The stored key of this id is not one for {algorithm} signatures.")
    return named[0]


def may_verify(key: Key, algorithm: str) -> bool:
    """
    >>> may_verify({"kty": "RSA", "alg": "RS256"}, "PS256")
    False
    """
    kind, curve, _ = ALGORITHMS[algorithm]
    return (
        key.get("kty") == kind
        and (curve is None or key.get("crv") == curve)
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
        and allows_verifying(key)
    )


def allows_verifying(key: Key) -> bool:
    operations = key.get("key_ops")
    return operations is None or (isinstance(operations, list) and "verify" in operations)


def check_origin(claims: Claims, expected: Expected) -> None:
    """Who made it, and for whom."""
    if claims.get("iss") != expected.issuer:  # exact: no slash more, no list
        raise SignInRefused("token_issuer", "The issuer is not that of the connection.")
    audience = claims.get("aud")
    audiences = [audience] if isinstance(audience, str) else audience
    if not isinstance(audiences, list) or expected.client_id not in audiences:
        raise SignInRefused("token_audience", "The audience is not our client id.")
    party = claims.get("azp")
    if len(audiences) > 1 and party is None:
        raise SignInRefused("token_audience", "It has several audiences and no authorized party (azp).")
    if "azp" in claims and party != expected.client_id:
        raise SignInRefused("token_audience", "The authorized party (azp) is another client.")


def check_times(claims: Claims, now: float) -> None:
    """A10, A11: what lies outside by clocks alone gets a code of its own, with the difference."""
    expires, issued = moment(claims, "exp"), moment(claims, "iat")
    begins = moment(claims, "nbf") if "nbf" in claims else issued
    for name, value in (("iat", issued), ("nbf", begins)):
        if value > now + LEEWAY_S:
            raise SignInRefused("token_clock", f"{name} lies {value - now:.0f} s ahead of this server's clock.")
    if expires < now - LEEWAY_S:
        raise SignInRefused("token_clock", f"The token expired {now - expires:.0f} s ago by this server's clock.")
    if now - issued > OLDEST_S:
        raise SignInRefused("token_clock", f"The token was issued {now - issued:.0f} s ago by this server's clock.")


def moment(claims: Claims, name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LAST_TIME:
        raise SignInRefused("token_time", f"{name} is missing or no time.")
    return float(value)


def check_at_hash(claims: Claims, expected: Expected, algorithm: str) -> None:
    """Binds the access token, where it must be bound and wherever there is a hash to hold it against."""
    if expected.access_token is None:
        if expected.needs_at_hash:
            raise SignInRefused("token_access_hash", "The access token is missing.")
        return
    if "at_hash" not in claims and not expected.needs_at_hash:
        return
    digest = hashlib.new(ALGORITHMS[algorithm][2], expected.access_token.encode()).digest()
    half = base64.urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=").decode()
    if claims.get("at_hash") != half:
        raise SignInRefused("token_access_hash", "The hash of the access token is missing or another one's.")
