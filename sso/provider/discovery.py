"""Finds a provider's endpoints from URL IdP and Realm: discovery first, the specified path pattern last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils import timezone

from sso.refusals import Refusal, SignInRefused
from sso.tokens import key_sets, token_check
from system import outbound
from system.outbound import OutboundError, OutboundRefused, Policy
from system.outbound.deadline import Deadline

if TYPE_CHECKING:
    from sso.models import OidcSetting

WELL_KNOWN = "/.well-known/openid-configuration"
# Those that we can check; for a provider without a discovery document.
SIGNING_ALGORITHMS = tuple(token_check.ALGORITHMS)
MAX_LIST_LENGTH = 32
# "Within 8 s altogether", "tries again at most once in 30 s".
ALTOGETHER_S = 8.0
AGAIN_AFTER = timedelta(seconds=30)
# After one of these no other path of the same host can succeed: "the first connection failure ends it".
NO_CONNECTION = frozenset({"dns", "connect", "tls", "timeout", "ca_bundle"})
MAX_NAME_LENGTH = 200
GONE = "The connection was deleted or changed to another provider in the meantime."


@dataclass(frozen=True, kw_only=True)
class Endpoints:
    """What a sign-in needs to know about a provider; an address that it does not have is empty."""

    issuer: str
    authorization: str
    token: str
    jwks: str
    userinfo: str = ""
    end_session: str = ""
    algorithms: tuple[str, ...] = ()
    token_auth_methods: tuple[str, ...] = ("client_secret_basic",)
    iss_in_response: bool = False

    @property
    def addresses(self) -> dict[str, str]:
        plain = ("algorithms", "token_auth_methods", "iss_in_response")
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in plain}

    def changes_since(self, before: Endpoints | None) -> str:
        known = before.addresses if before else {}
        changed = {name: address for name, address in self.addresses.items() if address != known.get(name)}
        return ", ".join(
            f"{name.replace('_', ' ')} {printable(address) or 'none'}" for name, address in changed.items()
        )

    def moved_from(self, before: Endpoints) -> str:
        """The change that an administrator must confirm, or an empty string if it is harmless."""
        if self.issuer != before.issuer:
            return f"The provider's issuer is now {printable(self.issuer)}."
        known = {urlsplit(address).netloc for address in before.addresses.values()}
        for name, address in self.addresses.items():
            previous = before.addresses[name]
            host = urlsplit(address).netloc
            if address and host not in ({urlsplit(previous).netloc} if previous else known):
                return f"The provider's {name} endpoint is now at {printable(host)}."
        return ""


class EndpointsNotFound(Exception):
    """No endpoints were found; `sentence` says why, `tried` lists the requested documents."""

    def __init__(self, sentence: str, tried: tuple[str, ...] = ()) -> None:
        super().__init__(sentence, tried)
        self.sentence = sentence
        self.tried = tried

    def __str__(self) -> str:
        return self.sentence


class _NotHere(Exception):
    """This candidate is not the provider; the text says what was found instead, if anything."""


class _Redirected(_NotHere):
    """Some providers redirect every unknown path: reported only if nothing else is found."""


def printable(name: object) -> str:
    """A name chosen by a third party, as one line of printable text.

    >>> printable("https://a" + chr(10) + "b")
    'https://a?b'
    """
    text = str(name)[:MAX_NAME_LENGTH]
    return "".join(character if character.isprintable() else "?" for character in text)


def candidates(url_idp: str, realm: str) -> list[str]:
    """The issuers that URL IdP and Realm may mean, the most likely first.

    >>> candidates("https://idp.example.com/realms/acme", "acme")[0]
    'https://idp.example.com/realms/acme'
    >>> candidates("https://idp.example.com/", "acme")[:2]
    ['https://idp.example.com/realms/acme', 'https://idp.example.com/auth/realms/acme']
    """
    base = base_of(url_idp)
    if url_idp.endswith(WELL_KNOWN):
        return [base]
    ends_in_realm = base.rpartition("/")[2] == realm
    patterns = ("realms/{}", "auth/realms/{}", "realm/{}", "{}/v2.0", "application/o/{}/", "oauth2/{}", "{}")
    issuers = [f"{base}/{pattern.format(realm)}" for pattern in patterns]
    return list(dict.fromkeys([*([base] if ends_in_realm else []), *issuers, base]))


def base_of(url_idp: str) -> str:
    return url_idp.removesuffix(WELL_KNOWN) if url_idp.endswith(WELL_KNOWN) else url_idp.rstrip("/")


def resolve(url_idp: str, realm: str, policy: Policy, deadline: Deadline) -> Endpoints:
    """The provider's endpoints; raises `EndpointsNotFound`."""
    tried: list[str] = []
    mismatch = redirected = ""
    for issuer in candidates(url_idp, realm):
        address = issuer.rstrip("/") + WELL_KNOWN
        tried.append(address)
        try:
            return _read(_document(address, policy, deadline), issuer, policy)
        except _Redirected as error:
            redirected = redirected or str(error)
        except _NotHere as error:
            mismatch = mismatch or str(error)
        except EndpointsNotFound as error:
            raise EndpointsNotFound(error.sentence, tuple(tried)) from None
    if mismatch:
        raise EndpointsNotFound(mismatch, tuple(tried))
    try:
        return _by_pattern(base_of(url_idp), realm, policy, deadline, tried)
    except EndpointsNotFound as error:
        raise EndpointsNotFound(redirected or error.sentence, error.tried) from None


def _document(address: str, policy: Policy, deadline: Deadline) -> Mapping[str, Any]:
    try:
        answer = outbound.get(address, policy.within(deadline.left()))
        if answer.status != 200:
            raise _NotHere
        document = answer.json()
    except TimeoutError:
        raise EndpointsNotFound(f"The provider was not found within {deadline.seconds:g} s.") from None
    except OutboundError as error:
        if isinstance(error, OutboundRefused) or error.code in NO_CONNECTION:
            raise EndpointsNotFound(error.message) from None
        # HTML pages that say "not found" with status 200 are common; a redirect is reported.
        raise (_Redirected(error.message) if error.code == "redirected" else _NotHere()) from None
    if not isinstance(document, dict) or "issuer" not in document:
        raise _NotHere
    return document


def _read(document: Mapping[str, Any], candidate: str, policy: Policy) -> Endpoints:
    """ "Accept a document only if its `issuer` is the candidate itself (one trailing slash apart)." """
    issuer = document["issuer"]
    if not isinstance(issuer, str) or issuer not in (candidate, f"{candidate}/", candidate.removesuffix("/")):
        raise _NotHere(
            f"The provider's issuer is {printable(issuer)}. If this is the right provider, enter this address."
        )
    return Endpoints(
        issuer=issuer,
        authorization=_address(document, "authorization_endpoint", policy, is_required=True),
        token=_address(document, "token_endpoint", policy),
        jwks=_address(document, "jwks_uri", policy, is_required=True),
        userinfo=_address(document, "userinfo_endpoint", policy),
        end_session=_address(document, "end_session_endpoint", policy),
        algorithms=_strings(document, "id_token_signing_alg_values_supported", ()),
        token_auth_methods=_strings(document, "token_endpoint_auth_methods_supported", ("client_secret_basic",)),
        iss_in_response=document.get("authorization_response_iss_parameter_supported") is True,
    )


def _address(document: Mapping[str, Any], name: str, policy: Policy, *, is_required: bool = False) -> str:
    address = document.get(name)
    if address is None and not is_required:
        return ""
    if not isinstance(address, str):
        raise EndpointsNotFound(f"The provider's document has no {name}.")
    try:
        outbound.check_url(address, policy, allow_query=True)
        return address
    except OutboundRefused as error:
        raise EndpointsNotFound(f"The provider's {name} cannot be used. {error.message}") from None


def _strings(document: Mapping[str, Any], name: str, default: tuple[str, ...]) -> tuple[str, ...]:
    values = document.get(name)
    if not isinstance(values, list):
        return default
    return tuple(value[:50] for value in values[:MAX_LIST_LENGTH] if isinstance(value, str))


def _by_pattern(base: str, realm: str, policy: Policy, deadline: Deadline, tried: list[str]) -> Endpoints:
    """ "{idp_url}/realm/{realm}/protocol/{protocol}/auth": only if there is a key set."""
    issuer = f"{base}/realm/{realm}"
    prefix = f"{issuer}/protocol/openid-connect"
    tried.append(f"{prefix}/certs")
    try:
        key_sets.fetch(f"{prefix}/certs", policy.within(deadline.left()))
    except TimeoutError:
        raise EndpointsNotFound(f"The provider was not found within {deadline.seconds:g} s.", tuple(tried)) from None
    except key_sets.Unusable:
        sentence = f"No discovery document found for realm “{realm}” at this URL. Check both; they are case-sensitive."
        raise EndpointsNotFound(sentence, tuple(tried)) from None
    return Endpoints(
        issuer=issuer,
        authorization=f"{prefix}/auth",
        token=f"{prefix}/token",
        jwks=f"{prefix}/certs",
        userinfo=f"{prefix}/userinfo",
        end_session=f"{prefix}/logout",
        algorithms=SIGNING_ALGORITHMS,
    )


def policy() -> Policy:
    """The operator's policy for calls to providers."""
    allowed: dict[str, Any] = settings.OUTBOUND_POLICY
    return Policy(**allowed)


def rediscover(
    setting: OidcSetting, *, may_move: bool = False, completes_entry: bool = False, deadline: Deadline | None = None
) -> str:
    """Find the provider and store its endpoints. Return what an administrator should know, or an empty string.

    Makes network calls, so never call it in a transaction. "A changed issuer or host never applies by itself", only
    with `may_move`.
    """
    setting.note(resolve_tried_at=timezone.now())
    try:
        endpoints = resolve(*setting.pair, policy(), deadline or Deadline.after(ALTOGETHER_S))
    except EndpointsNotFound as error:
        setting.note_of_pair(resolve_error=error.sentence)
        return error.sentence
    known = setting.endpoints
    if known is not None and not may_move and (moved := endpoints.moved_from(known)):
        setting.note_of_pair(resolve_error=moved)
        return moved
    return "" if setting.store_endpoints(endpoints, completes_entry=completes_entry) else GONE


def ensure(setting: OidcSetting, deadline: Deadline | None = None) -> Endpoints:
    """The endpoints for a sign-in. Unknown ones are looked up by one caller in 30 s."""
    if setting.endpoints is None and setting.claim_lookup():
        rediscover(setting, deadline=deadline)
    if setting.endpoints is None:
        raise SignInRefused(Refusal.PROVIDER_UNRESOLVED, setting.resolve_error)
    return setting.endpoints
