"""Checks a login and password: counted, remembered for a minute, equally slow for users that do not exist."""

import hmac
import secrets
import threading
import time
from hashlib import sha256

from django.contrib.auth.hashers import check_password, make_password
from django.core.exceptions import ValidationError
from django.utils.functional import SimpleLazyObject

from accounts.attempts import Attempt
from accounts.models import User
from accounts.spelling import composed
from system import properties
from system.errors import Unauthenticated

LONGEST = 1024
# Of new ones. Chosen: with any login it still fits into the header of Basic, however many bytes its characters take.
LONGEST_NEW = 512
REMEMBERED_FOR_S = 60.0
MOST_REMEMBERED = 10_000
# Made anew at each start: what is remembered is worth nothing elsewhere.
_START_SECRET = secrets.token_bytes(32)
_remembered: dict[bytes, tuple[float, str]] = {}
_turns = [threading.Lock() for _ in range(64)]
# Checked for users that do not exist, so that they take as long as those that do.
NOBODY = SimpleLazyObject(lambda: make_password(secrets.token_urlsafe(16)))


def verify(login: str, password: str, address: str) -> User:
    """The active user of this login and password; the same refusal for every cause."""
    if not login or not password or len(login) > LONGEST or len(password) > LONGEST or "\x00" in login + password:
        raise Unauthenticated
    user = User.objects.with_login(login)
    memory = hmac.new(_START_SECRET, f"{login}\x00{password}".encode(errors="surrogatepass"), sha256).digest()
    if user is not None and is_remembered(memory, user):
        return user
    # One thread checks, others with the same words wait for its result instead of counting as attempts.
    with _turns[memory[0] % len(_turns)]:
        if user is not None and is_remembered(memory, user):
            return user
        # Where case counts, Bob is not bob, and Bob's success must not clear what was counted against bob.
        login = composed(login)
        counted_as = login if properties.get(properties.CASE_SENSITIVE) else login.lower()
        return check(user, password, memory, Attempt(counted_as, address))


def check(user: User | None, password: str, memory: bytes, attempt: Attempt) -> User:
    attempt.reserve()
    nobody = str(NOBODY)  # made here whoever is asked for: the first stranger must not take longer
    has_password = user is not None and user.has_usable_password()
    is_right = check_password(password, user.password if user is not None and has_password else nobody)
    if user is None or not has_password or not is_right or not user.is_active:
        raise Unauthenticated
    attempt.succeeded()
    if len(_remembered) >= MOST_REMEMBERED:
        _remembered.clear()
    _remembered[memory] = (time.monotonic(), user.password)
    return user


def is_remembered(memory: bytes, user: User) -> bool:
    """Bound to the stored hash: a changed password is forgotten at once."""
    entry = _remembered.get(memory)
    return (
        entry is not None
        and time.monotonic() - entry[0] < REMEMBERED_FOR_S
        and entry[1] == user.password
        and user.is_active
    )


def forget() -> None:
    """Check every password anew."""
    _remembered.clear()


class NotTooLong:
    """A password validator: what could be set but never sent with Basic is refused when it is set."""

    def validate(self, password: str, user: User | None = None) -> None:
        if len(password) > LONGEST_NEW or "\x00" in password:
            raise ValidationError(self.get_help_text(), code="password_too_long")

    def get_help_text(self) -> str:
        return f"Your password can have at most {LONGEST_NEW} characters."
