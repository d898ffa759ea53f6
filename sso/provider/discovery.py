"""Finds a provider's endpoints from provider URL and Realm: discovery first, the specified path pattern last."""

from collections.abc import Mapping
from dataclasses import dataclass
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

WELL_KNOWN_PATH = "/.well-known/openid-configuration"
# The algorithms that we support, and assume for a provider without a discovery document.
SIGNING_ALGORITHMS = tuple(token_check.ALGORITHMS)
MAX_LIST_LENGTH = 32
# "Within 8 s altogether", "tries again at most once in 30 s".
MAX_DISCOVERY_S = 8.0
RETRY_INTERVAL = timedelta(seconds=30)
# After one of these no other path of the same host can succeed: "the first connection failure ends it".
CONNECTION_ERRORS = frozenset({"dns", "connect", "tls", "timeout", "ca_bundle"})
MAX_PRINTED_LENGTH = 200
CONNECTION_REPLACED = "The connection was deleted or changed to another provider in the meantime."


@dataclass(frozen=True, kw_only=True)
class Endpoints:
    """The URLs and capabilities of a provider, named like the columns that store them. A missing URL is empty."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    end_session_endpoint: str = ""
    algorithms: tuple[str, ...] = ()
    token_auth_methods: tuple[str, ...] = ("client_secret_basic",)
    iss_in_response: bool = False

    @property
    def urls(self) -> dict[str, str]:
        """The URLs by the names that administrators see."""
        columns = {name: value for name, value in vars(self).items() if isinstance(value, str)}
        return {name.removesuffix("_endpoint").removesuffix("_uri"): url for name, url in columns.items()}

    def describe_changes(self, previous_endpoints: "Endpoints | None") -> str:
        known_urls = previous_endpoints.urls if previous_endpoints else {}
        changed_urls = {name: url for name, url in self.urls.items() if url != known_urls.get(name)}
        return ", ".join(
            f"{name.replace('_', ' ')} {printable_text(url) or 'none'}" for name, url in changed_urls.items()
        )

    def risky_change_since(self, previous_endpoints: "Endpoints | None") -> str:
        """Describe the change that an administrator must confirm. Return an empty string if there is none, or if there
        are no previous endpoints."""
        if previous_endpoints is None:
            return ""
        if self.issuer != previous_endpoints.issuer:
            return f"The provider's issuer is now {printable_text(self.issuer)}."
        known_hosts = {urlsplit(url).netloc for url in previous_endpoints.urls.values()}
        for name, url in self.urls.items():
            previous_url = previous_endpoints.urls[name]
            host = urlsplit(url).netloc
            if url and host not in ({urlsplit(previous_url).netloc} if previous_url else known_hosts):
                return f"The provider's {name} endpoint is now at {printable_text(host)}."
        return ""


class EndpointsNotFound(Exception):
    """No endpoints were found; carries the reason and the URLs that were requested."""

    def __init__(self, message: str, requested_urls: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.requested_urls = requested_urls


class _WrongCandidate(Exception):
    """This candidate is not the provider; the text describes what was found instead, if anything."""


class _RedirectingCandidate(_WrongCandidate):
    """Reported only if nothing else is found, because some providers redirect every unknown path."""


def printable_text(value: object) -> str:
    """A value chosen by a third party, as one line of printable text.

    >>> printable_text("https://a" + chr(10) + "b")
    'https://a?b'
    """
    text = str(value)[:MAX_PRINTED_LENGTH]
    return "".join(character if character.isprintable() else "?" for character in text)


def issuer_candidates(url_idp: str, realm: str) -> list[str]:
    """The possible issuers for provider URL and Realm, most likely first.

    >>> issuer_candidates("https://idp.example.com/realms/acme", "acme")[0]
    'https://idp.example.com/realms/acme'
    >>> issuer_candidates("https://idp.example.com/", "acme")[:2]
    ['https://idp.example.com/realms/acme', 'https://idp.example.com/auth/realms/acme']
    """
    base = base_url(url_idp)
    if url_idp.endswith(WELL_KNOWN_PATH):
        return [base]
    ends_in_realm = base.rpartition("/")[2] == realm
    patterns = ("realms/{}", "auth/realms/{}", "realm/{}", "{}/v2.0", "application/o/{}/", "oauth2/{}", "{}")
    issuers = [f"{base}/{pattern.format(realm)}" for pattern in patterns]
    return list(dict.fromkeys([*([base] if ends_in_realm else []), *issuers, base]))


def base_url(url_idp: str) -> str:
    return url_idp.removesuffix(WELL_KNOWN_PATH) if url_idp.endswith(WELL_KNOWN_PATH) else url_idp.rstrip("/")


def discover(url_idp: str, realm: str, policy: Policy, deadline: Deadline) -> Endpoints:
    """The provider's endpoints; raises `EndpointsNotFound`."""
    urls: list[str] = []
    mismatch_message = redirect_message = ""
    for issuer in issuer_candidates(url_idp, realm):
        url = issuer.rstrip("/") + WELL_KNOWN_PATH
        urls.append(url)
        try:
            return _parse_document(_fetch_document(url, policy, deadline), issuer, policy)
        except _RedirectingCandidate as error:
            redirect_message = redirect_message or str(error)
        except _WrongCandidate as error:
            mismatch_message = mismatch_message or str(error)
        except EndpointsNotFound as error:
            raise EndpointsNotFound(error.message, tuple(urls)) from None
    if mismatch_message:
        raise EndpointsNotFound(mismatch_message, tuple(urls))
    try:
        return _discover_by_pattern(base_url(url_idp), realm, policy, deadline, urls)
    except EndpointsNotFound as error:
        raise EndpointsNotFound(redirect_message or error.message, error.requested_urls) from None


def _fetch_document(url: str, policy: Policy, deadline: Deadline) -> Mapping[str, Any]:
    try:
        outbound.check_url(url, policy)  # an entered URL must not have a query
        response = outbound.get(url, policy.limited_to(deadline.remaining_s()))
        if response.status != 200:
            raise _WrongCandidate
        document = response.json()
    except TimeoutError:
        raise EndpointsNotFound(f"The provider was not found within {deadline.seconds:g} s.") from None
    except OutboundError as error:
        if isinstance(error, OutboundRefused) or error.code in CONNECTION_ERRORS:
            raise EndpointsNotFound(error.message) from None
        # HTML pages that say "not found" with status 200 are common; a redirect is reported.
        if error.code == "redirected":
            raise _RedirectingCandidate(f"{error.message} Enter the final URL.") from None
        raise _WrongCandidate from None
    if not isinstance(document, dict) or "issuer" not in document:
        raise _WrongCandidate
    return document


def _parse_document(document: Mapping[str, Any], candidate: str, policy: Policy) -> Endpoints:
    """ "Accept a document only if its `issuer` is the candidate itself (one trailing slash apart)." """
    issuer = document["issuer"]
    if not isinstance(issuer, str) or issuer not in (candidate, f"{candidate}/", candidate.removesuffix("/")):
        raise _WrongCandidate(
            f"The provider's issuer is {printable_text(issuer)}. If it is correct, enter it as Provider URL."
        )
    return Endpoints(
        issuer=issuer,
        authorization_endpoint=_read_url(document, "authorization_endpoint", policy, is_required=True),
        token_endpoint=_read_url(document, "token_endpoint", policy),
        jwks_uri=_read_url(document, "jwks_uri", policy, is_required=True),
        userinfo_endpoint=_read_url(document, "userinfo_endpoint", policy),
        end_session_endpoint=_read_url(document, "end_session_endpoint", policy),
        algorithms=_read_strings(document, "id_token_signing_alg_values_supported", ()),
        token_auth_methods=_read_strings(document, "token_endpoint_auth_methods_supported", ("client_secret_basic",)),
        iss_in_response=document.get("authorization_response_iss_parameter_supported") is True,
    )


def _read_url(document: Mapping[str, Any], name: str, policy: Policy, *, is_required: bool = False) -> str:
    url = document.get(name)
    if url is None and not is_required:
        return ""
    if not isinstance(url, str):
        raise EndpointsNotFound(f"The provider's discovery document has no valid {name}.")
    try:
        outbound.check_url(url, policy, allow_query=True)
        return url
    except OutboundRefused as error:
        raise EndpointsNotFound(f"The provider's {name} cannot be used. {error.message}") from None


def _read_strings(document: Mapping[str, Any], name: str, default: tuple[str, ...]) -> tuple[str, ...]:
    values = document.get(name)
    if not isinstance(values, list):
        return default
    return tuple(value[:50] for value in values[:MAX_LIST_LENGTH] if isinstance(value, str))


def _discover_by_pattern(base: str, realm: str, policy: Policy, deadline: Deadline, urls: list[str]) -> Endpoints:
    """ "{idp_url}/realm/{realm}/protocol/{protocol}/auth": only if there is a key set."""
    issuer = f"{base}/realm/{realm}"
    prefix = f"{issuer}/protocol/openid-connect"
    urls.append(f"{prefix}/certs")
    try:
        key_sets.fetch_key_set(f"{prefix}/certs", policy.limited_to(deadline.remaining_s()))
    except TimeoutError:
        raise EndpointsNotFound(f"The provider was not found within {deadline.seconds:g} s.", tuple(urls)) from None
    except key_sets.UnusableKeySet:
        message = f"No discovery document was found for realm “{realm}” at Provider URL. Both are case-sensitive."
        raise EndpointsNotFound(message, tuple(urls)) from None
    return Endpoints(
        issuer=issuer,
        authorization_endpoint=f"{prefix}/auth",
        token_endpoint=f"{prefix}/token",
        jwks_uri=f"{prefix}/certs",
        userinfo_endpoint=f"{prefix}/userinfo",
        end_session_endpoint=f"{prefix}/logout",
        algorithms=SIGNING_ALGORITHMS,
    )


def provider_policy() -> Policy:
    """The operator's policy for calls to providers."""
    options: dict[str, Any] = settings.OUTBOUND_POLICY
    return Policy(**options)


def rediscover(
    setting: "OidcSetting",
    *,
    accepts_risky_change: bool = False,
    amends_last_entry: bool = False,
    deadline: Deadline | None = None,
) -> str:
    """Find the provider and store its endpoints. Return a problem for the administrator, or an empty string.

    Makes network calls, so never call it in a transaction. "A changed issuer or host never applies by itself", only
    with `accepts_risky_change`.
    """
    setting.update_unversioned(resolve_tried_at=timezone.now())
    try:
        endpoints = discover(*setting.pair, provider_policy(), deadline or Deadline.after(MAX_DISCOVERY_S))
    except EndpointsNotFound as error:
        setting.update_unversioned(resolve_error=error.message)
        return error.message
    if not accepts_risky_change and (risky_change := endpoints.risky_change_since(setting.endpoints)):
        setting.update_unversioned(resolve_error=risky_change)
        return risky_change
    return "" if setting.store_endpoints(endpoints, amends_last_entry=amends_last_entry) else CONNECTION_REPLACED


def ensure_endpoints(setting: "OidcSetting", deadline: Deadline | None = None) -> Endpoints:
    """Return the endpoints for a sign-in. If they are unknown, one caller per 30 s runs discovery."""
    if setting.endpoints is None and setting.reserve_discovery():
        rediscover(setting, deadline=deadline)
    if setting.endpoints is None:
        raise SignInRefused(Refusal.PROVIDER_UNRESOLVED, setting.resolve_error)
    return setting.endpoints
