"""Stores the sign-in attempts of a browser in its session, and removes them when the provider responds.

A response is accepted once, for ten minutes, and only from the browser that started the sign-in. Every change locks the
row of the session, so that only one of two callbacks with the same state finds the attempt.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from accounts.authentication.login_attempts import enforce_rate_limit
from accounts.models import Session
from accounts.models.sessions import anonymous_expiry, stored_session_key
from sso.models import OidcSetting
from sso.provider import token_client
from sso.refusals import Refusal, SignInRefused
from sso.tokens.token_check import LEEWAY_S

ATTEMPTS_KEY = "sso_attempts"
AUTOMATIC_STARTS_KEY = "sso_started_by_itself"
MAX_ATTEMPTS = 10
ATTEMPT_LIFETIME_S = 600
MAX_AUTOMATIC_STARTS = 3
AUTOMATIC_START_WINDOW_S = 60
# New sessions per address, each of them a row, in the window of `accounts.authentication.login_attempts`.
MAX_NEW_BROWSERS = 1000

CODE_FLOW, FRAGMENT_FLOW = "code", "fragment"


@dataclass(frozen=True)
class Attempt:
    """The data needed to check the provider's response. The nonce is stored as a hash."""

    nonce_hash: str
    verifier: str
    setting: str
    issuer: str
    redirect_uri: str
    next: str
    kind: str
    time: float

    @property
    def is_expired(self) -> bool:
        # The clock of the host that created the attempt may be ahead of ours.
        return not -LEEWAY_S <= time.time() - self.time <= ATTEMPT_LIFETIME_S


def store_attempt(request: HttpRequest, state: str, attempt: Attempt) -> None:
    """Store a new attempt and keep only the ten newest."""
    with lock_session(request) as data:
        attempts = {name: entry for name, entry in read_attempts(data).items() if not entry.is_expired}
        newest_states = sorted(attempts, key=lambda name: attempts[name].time)[-(MAX_ATTEMPTS - 1) :]
        data[ATTEMPTS_KEY] = {name: asdict(attempts[name]) for name in newest_states} | {state: asdict(attempt)}


def find_attempt(data: Any, state: str) -> Attempt:
    """Return the attempt with this state from the data of a session, without removing it."""
    attempt = read_attempts(data).get(state)
    if attempt is None:
        raise SignInRefused(Refusal.STATE_UNKNOWN, "This browser has no sign-in attempt with this state.")
    return attempt


def take_attempt(request: HttpRequest, state: str) -> Attempt:
    """Remove and return the attempt with this state; the removal is saved before the provider is called."""
    with lock_session(request, may_create=False) as data:
        attempt = find_attempt(data, state)
        del data[ATTEMPTS_KEY][state]
    if attempt.is_expired:
        raise SignInRefused(Refusal.STATE_EXPIRED)
    return attempt


def awaits_fragment(request: HttpRequest) -> bool:
    """Whether the response may be in the fragment, which only the browser sees."""
    attempts = read_attempts(request.session).values()
    return any(attempt.kind == FRAGMENT_FLOW and not attempt.is_expired for attempt in attempts)


def reserve_automatic_start(request: HttpRequest) -> bool:
    """Count an automatic start and return whether it is allowed: three per minute, to prevent redirect loops."""
    now = time.time()
    with lock_session(request) as data:
        starts = data.get(AUTOMATIC_STARTS_KEY, [])
        recent_starts = [start for start in starts if -LEEWAY_S <= now - start < AUTOMATIC_START_WINDOW_S]
        is_allowed = len(recent_starts) < MAX_AUTOMATIC_STARTS
        data[AUTOMATIC_STARTS_KEY] = [*recent_starts, now] if is_allowed else recent_starts
    return is_allowed


def read_attempts(data: Any) -> dict[str, Attempt]:
    """Return the attempts by state. Entries in the format of another product version are ignored."""
    entries = data.get(ATTEMPTS_KEY)
    if not isinstance(entries, Mapping):
        return {}
    names = set(Attempt.__dataclass_fields__)
    return {
        state: Attempt(**entry) for state, entry in entries.items() if isinstance(entry, dict) and set(entry) == names
    }


def check_authorization_response(
    attempt: Attempt, kind: str, parameters: Mapping[str, str], setting: OidcSetting | None
) -> OidcSetting:
    """Check that the response belongs to the attempt and comes from its provider (A19, RFC 9207)."""
    if attempt.kind != kind and "error" not in parameters:  # some providers always put an error into the query
        raise SignInRefused(Refusal.RESPONSE_MALFORMED, f"This sign-in expects a response of type {attempt.kind}.")
    if setting is None or not setting.active:
        raise SignInRefused(Refusal.NOT_AVAILABLE, "The connection was deactivated or deleted during the sign-in.")
    if parameters.get("iss", attempt.issuer) != attempt.issuer:
        raise SignInRefused(Refusal.RESPONSE_ISSUER, "The issuer (iss) in the response is not the connection's issuer.")
    # An ID token names the issuer too, so a provider need not repeat it.
    if kind == CODE_FLOW and setting.iss_in_response and "iss" not in parameters:
        raise SignInRefused(Refusal.RESPONSE_ISSUER, "The response lacks iss, which this provider always sends.")
    if "error" in parameters:
        is_error_code = token_client.ERROR_CODE_PATTERN.fullmatch(parameters["error"])
        error = parameters["error"] if is_error_code else "an unreadable error"
        is_temporary = error in token_client.TEMPORARY_ERRORS
        refusal = Refusal.PROVIDER_UNAVAILABLE if is_temporary else Refusal.PROVIDER_DENIED
        raise SignInRefused(refusal, f"The provider returned {error}.")
    return setting


@contextmanager
def lock_session(request: HttpRequest, *, may_create: bool = True) -> Iterator[dict[str, Any]]:
    """Lock the browser's session, created if necessary; yield its data and save it afterwards."""
    store = request.session
    has_session = bool(store.session_key) and session_queryset(store).exists()
    if may_create and not has_session:
        enforce_rate_limit("begun sign-in", request.META.get("REMOTE_ADDR", ""), MAX_NEW_BROWSERS)
        store.create()  # marks the session as modified, so that the middleware sets its cookie
    with transaction.atomic():
        row = session_queryset(store).select_for_update().first()
        if row is None:
            raise SignInRefused(Refusal.STATE_UNKNOWN, "This browser has no session, or its session has ended.")
        data = store.decode(row.session_data)
        yield data
        expires_at = row.expire_date if row.user_id else anonymous_expiry()
        Session.objects.filter(pk=row.pk).update(session_data=store.encode(data), expire_date=expires_at)
    # Reload on next use: data that this request read earlier must not overwrite the saved data.
    reloaded_session = type(store)(store.session_key)
    reloaded_session.modified = store.modified
    request.session = reloaded_session


def session_queryset(store: Any) -> Any:
    return Session.objects.filter(session_key=stored_session_key(store), expire_date__gt=timezone.now())
