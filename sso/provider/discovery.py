"""Finds a provider's endpoints from URL IdP and Realm: discovery first, the specified path pattern last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils import timezone

from sso.provider import request_slots
from sso.refusals import SignInRefused
from sso.tokens import key_sets, token_check
from system import outbound
from system.outbound import OutboundError, OutboundRefused, Policy
from system.outbound.deadline import Deadline

if TYPE_CHECKING:
    from sso.models import OidcSetting

WELL_KNOWN = "/.well-known/openid-configuration"
# Those that we can check; for a provider that has no document to advertise them in.
SIGNING_ALGORITHMS = tuple(token_check.ALGORITHMS)
LONGEST_LIST = 32
# "Within 8 s altogether", "tries again at most once in 30 s".
ALTOGETHER_S = 8.0
AGAIN_AFTER = timedelta(seconds=30)
# After one of these no other path of the same host will do better: "the first connection failure ends it".
NO_CONNECTION = frozenset({"dns", "connect", "tls", "timeout", "ca_bundle"})
LONGEST_NAME_SHOWN = 200
GONE = "The connection was deleted, or changed to another provider, meanwhile."


@dataclass(frozen=True, kw_only=True)
class Endpoints:
    """What a sign-in needs to know of a provider; an empty text for what it does not have."""

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
        """Every address by its name."""
        plain = ("algorithms", "token_auth_methods", "iss_in_response")
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in plain}

    def told_since(self, before: Endpoints | None) -> str:
        """The addresses that differ from those, in words."""
        known = before.addresses if before else {}
        changed = {name: address for name, address in self.addresses.items() if address != known.get(name)}
        return ", ".join(f"{name.replace('_', ' ')} {shown(address) or 'none'}" for name, address in changed.items())

    def moved_from(self, before: Endpoints) -> str:
        """What an administrator must look at before these take the place of those; nothing for a harmless change."""
        if self.issuer != before.issuer:
            return f"The provider calls itself {shown(self.issuer)} now."
        known = {urlsplit(address).netloc for address in before.addresses.values()}
        for name, address in self.addresses.items():
            was = before.addresses[name]
            host = urlsplit(address).netloc
            if address and host not in ({urlsplit(was).netloc} if was else known):
                return f"The provider's {name} endpoint is at {shown(host)} now."
        return ""


class EndpointsNotFound(Exception):
    """No endpoints were found; `sentence` says why, `tried` which documents were asked for."""

    def __init__(self, sentence: str, tried: tuple[str, ...] = ()) -> None:
        super().__init__(sentence, tried)
        self.sentence = sentence
        self.tried = tried

    def __str__(self) -> str:
        return self.sentence


class _NotHere(Exception):
    """This candidate is none; the text says what stood there, if something did."""


class _Redirected(_NotHere):
    """Some providers send every path that they do not know somewhere else: worth telling, if nothing else is found."""


def shown(name: object) -> str:
    """A name that a stranger chose, as one line of visible text.

    >>> shown("https://a" + chr(10) + "b")
    'https://a?b'
    """
    text = str(name)[:LONGEST_NAME_SHOWN]
    return "".join(character if character.isprintable() else "?" for character in text)


def candidates(url_idp: str, realm: str) -> list[str]:
    """The issuers that the two may mean, the likeliest first.

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
    found = [f"{base}/{pattern.format(realm)}" for pattern in patterns]
    return list(dict.fromkeys([*([base] if ends_in_realm else []), *found, base]))


def base_of(url_idp: str) -> str:
    return url_idp.removesuffix(WELL_KNOWN) if url_idp.endswith(WELL_KNOWN) else url_idp.rstrip("/")


def resolve(url_idp: str, realm: str, policy: Policy, deadline: Deadline) -> Endpoints:
    """The provider's endpoints, or `Unresolved`."""
    tried: list[str] = []
    found_instead = redirected = ""
    for issuer in candidates(url_idp, realm):
        address = issuer.rstrip("/") + WELL_KNOWN
        tried.append(address)
        try:
            return _read(_document(address, policy, deadline), issuer, policy)
        except _Redirected as error:
            redirected = redirected or str(error)
        except _NotHere as error:
            found_instead = found_instead or str(error)
        except EndpointsNotFound as error:
            raise EndpointsNotFound(error.sentence, tuple(tried)) from None
    if found_instead:
        raise EndpointsNotFound(found_instead, tuple(tried))
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
        # A page that says "not found" in HTML with status 200 is common; a redirect is worth telling.
        raise (_Redirected(error.message) if error.code == "redirected" else _NotHere()) from None
    if not isinstance(document, dict) or "issuer" not in document:
        raise _NotHere
    return document


def _read(document: Mapping[str, Any], candidate: str, policy: Policy) -> Endpoints:
    """ "Accept a document only if its `issuer` is the candidate itself (one trailing slash apart)." """
    issuer = document["issuer"]
    if not isinstance(issuer, str) or issuer not in (candidate, f"{candidate}/", candidate.removesuffix("/")):
        raise _NotHere(
            f"The provider calls itself {shown(issuer)}. If it is the right one, enter its address that way."
        )
    return Endpoints(
        issuer=issuer,
        authorization=_address(document, "authorization_endpoint", policy, is_needed=True),
        token=_address(document, "token_endpoint", policy),
        jwks=_address(document, "jwks_uri", policy, is_needed=True),
        userinfo=_address(document, "userinfo_endpoint", policy),
        end_session=_address(document, "end_session_endpoint", policy),
        algorithms=_words(document, "id_token_signing_alg_values_supported", ()),
        token_auth_methods=_words(document, "token_endpoint_auth_methods_supported", ("client_secret_basic",)),
        iss_in_response=document.get("authorization_response_iss_parameter_supported") is True,
    )


def _address(document: Mapping[str, Any], name: str, policy: Policy, *, is_needed: bool = False) -> str:
    given = document.get(name)
    if given is None and not is_needed:
        return ""
    if not isinstance(given, str):
        raise EndpointsNotFound(f"The provider's document names no {name}.")
    try:
        return str(outbound.check_url(given, policy, allow_query=True)) and given
    except OutboundRefused as error:
        raise EndpointsNotFound(f"The provider's {name} cannot be used. {error.message}") from None


def _words(document: Mapping[str, Any], name: str, otherwise: tuple[str, ...]) -> tuple[str, ...]:
    given = document.get(name)
    if not isinstance(given, list):
        return otherwise
    return tuple(word[:50] for word in given[:LONGEST_LIST] if isinstance(word, str))


def _by_pattern(base: str, realm: str, policy: Policy, deadline: Deadline, tried: list[str]) -> Endpoints:
    """ "{idp_url}/realm/{realm}/protocol/{protocol}/auth": only if a key set is where it says."""
    issuer = f"{base}/realm/{realm}"
    places = f"{issuer}/protocol/openid-connect"
    tried.append(f"{places}/certs")
    try:
        key_sets.fetch(f"{places}/certs", policy.within(deadline.left()))
    except TimeoutError:
        raise EndpointsNotFound(f"The provider was not found within {deadline.seconds:g} s.", tuple(tried)) from None
    except key_sets.Unusable:
        sentence = (
            f"No provider was found at this URL with the realm “{realm}”: nowhere was there a document that describes "
            "one. Compare both, upper and lower case too."
        )
        raise EndpointsNotFound(sentence, tuple(tried)) from None
    return Endpoints(
        issuer=issuer,
        authorization=f"{places}/auth",
        token=f"{places}/token",
        jwks=f"{places}/certs",
        userinfo=f"{places}/userinfo",
        end_session=f"{places}/logout",
        algorithms=SIGNING_ALGORITHMS,
    )


def policy() -> Policy:
    """What the operator allows calls to providers."""
    allowed: dict[str, Any] = settings.OUTBOUND_POLICY
    return Policy(**allowed)


def look_again(
    setting: OidcSetting, *, may_move: bool = False, completes_entry: bool = False, deadline: Deadline | None = None
) -> str:
    """Find the provider and keep what was found; what an administrator should know, or nothing when all is well.

    Calls out, so never in a transaction. "A changed issuer or host never applies by itself": only with `may_move`.
    """
    setting.note(resolve_tried_at=timezone.now())
    try:
        found = resolve(*setting.pair, policy(), deadline or Deadline.after(ALTOGETHER_S))
    except EndpointsNotFound as error:
        setting.note_of_pair(resolve_error=error.sentence)
        return error.sentence
    known = setting.endpoints
    if known is not None and not may_move and (moved := found.moved_from(known)):
        setting.note_of_pair(resolve_error=moved)
        return moved
    return "" if setting.store_endpoints(found, completes_entry=completes_entry) else GONE


def look_after_save(setting: OidcSetting, *, completes_entry: bool) -> None:
    try:
        with request_slots.request_slot():
            look_again(setting, completes_entry=completes_entry)
    except request_slots.NoSlotFree:  # the first who wants to sign in looks for it, or the form's button
        setting.note(resolve_error="It was not looked for at the save: two others were asking a provider.")


def ensure(setting: OidcSetting, deadline: Deadline | None = None) -> Endpoints:
    """The endpoints for a sign-in, looked for now if need be, by one caller in 30 s; else a refusal."""
    if setting.endpoints is None and setting.claim_look():
        look_again(setting, deadline=deadline)
    if setting.endpoints is None:
        raise SignInRefused("provider_unresolved", setting.resolve_error)
    return setting.endpoints
