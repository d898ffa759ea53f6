"""In charge of the attempts to sign in of one browser: made before it goes to the provider, taken when it comes back.

They stand in its session, so that what comes back counts only in the browser that left, each once, for ten minutes.
Every change is made under a lock of the session's row: of two callbacks with one state exactly one finds the attempt.
"""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from mozilla_django_oidc.utils import generate_code_challenge

from accounts.authentication.login_attempts import count_one
from accounts.models import Session
from accounts.models.sessions import end_without_user, own_row
from sso.refusals import SignInRefused
from sso.tokens.token_check import LEEWAY_S, hashed

ATTEMPTS = "sso_attempts"
STARTED = "sso_started_by_itself"
MOST_ATTEMPTS = 10
ATTEMPT_FOR_S = 600
MOST_BY_ITSELF = 3
BY_ITSELF_WITHIN_S = 60
# Browsers without a session, from one address in the window of `accounts.authentication.login_attempts`.
# Each leaves a row.
MOST_NEW_BROWSERS = 1000

CODE, FRAGMENT = "code", "fragment"


@dataclass(frozen=True)
class Attempt:
    """What must be known again when the browser comes back. The nonce is kept as a hash only."""

    nonce_hash: str
    verifier: str
    setting: str
    issuer: str
    redirect_uri: str
    next: str
    kind: str
    time: float

    @property
    def is_over(self) -> bool:
        # Made by a host whose clock may be ahead of this one's.
        return not -LEEWAY_S <= time.time() - self.time <= ATTEMPT_FOR_S


@dataclass(frozen=True)
class Left:
    """What the browser takes along to the provider."""

    state: str
    nonce: str
    challenge: str


def make(request: HttpRequest, *, setting: str, issuer: str, redirect_uri: str, next: str, kind: str) -> Left:
    """Keep a new attempt; the oldest beyond ten go."""
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    attempt = Attempt(hashed(nonce), verifier, setting, issuer, redirect_uri, next, kind, time.time())
    with locked(request) as data:
        kept = {name: found for name, found in stored(data).items() if not found.is_over}
        newest = sorted(kept, key=lambda name: kept[name].time)[-(MOST_ATTEMPTS - 1) :]
        data[ATTEMPTS] = {name: asdict(kept[name]) for name in newest} | {state: asdict(attempt)}
    return Left(state, nonce, generate_code_challenge(verifier, "S256"))


def look(request: HttpRequest, state: str) -> Attempt:
    """The attempt of this state, left where it is."""
    found = stored(request.session).get(state)
    if found is None:
        raise SignInRefused("state_unknown", "No attempt of this browser has this state.")
    return found


def take(request: HttpRequest, state: str) -> Attempt:
    """The attempt of this state, which from here on nobody else gets; saved before anybody is called."""
    with locked(request, makes=False) as data:
        found = stored(data).get(state)
        if found is not None:
            del data[ATTEMPTS][state]
    if found is None:
        raise SignInRefused("state_unknown", "No attempt of this browser has this state.")
    if found.is_over:
        raise SignInRefused("state_expired")
    return found


def awaits_fragment(request: HttpRequest) -> bool:
    """Whether what comes back may stand behind the #, which only the browser sees."""
    return any(found.kind == FRAGMENT and not found.is_over for found in stored(request.session).values())


def may_start_by_itself(request: HttpRequest) -> bool:
    """Three times in a minute: a provider that sends back nothing must not send the browser in circles."""
    now = time.time()
    with locked(request) as data:
        times = [at for at in data.get(STARTED, []) if -LEEWAY_S <= now - at < BY_ITSELF_WITHIN_S]
        is_allowed = len(times) < MOST_BY_ITSELF
        data[STARTED] = [*times, now] if is_allowed else times
    return is_allowed


def stored(data: Any) -> dict[str, Attempt]:
    """What another version of the product left in a session is no attempt."""
    found = data.get(ATTEMPTS)
    names = set(Attempt.__dataclass_fields__)
    if not isinstance(found, dict):
        return {}
    return {state: Attempt(**kept) for state, kept in found.items() if isinstance(kept, dict) and set(kept) == names}


@contextmanager
def locked(request: HttpRequest, *, makes: bool = True) -> Iterator[dict[str, Any]]:
    """The data of this browser's session, nobody else's until it is saved again; a new session if there is none."""
    store = request.session
    is_there = bool(store.session_key) and own_session(store).exists()
    if makes and not is_there:
        count_one("begun sign-in", request.META.get("REMOTE_ADDR", ""), MOST_NEW_BROWSERS)
        store.create()  # marks itself as modified, so that the middleware gives the browser its cookie
    with transaction.atomic():
        row = own_session(store).select_for_update().first()
        if row is None:
            raise SignInRefused("state_unknown", "This browser has no session, or it ended meanwhile.")
        data = store.decode(row.session_data)
        yield data
        end = row.expire_date if row.user_id else end_without_user()
        Session.objects.filter(pk=row.pk).update(session_data=store.encode(data), expire_date=end)
    # Read anew when it is asked for: what this request had read must not be written over what was just saved.
    fresh = type(store)(store.session_key)
    fresh.modified = store.modified
    request.session = fresh


def own_session(store: Any) -> Any:
    return Session.objects.filter(session_key=own_row(store), expire_date__gt=timezone.now())
