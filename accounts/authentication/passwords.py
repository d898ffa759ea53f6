"""Checks passwords: counts attempts, caches successes for a minute, takes equally long for unknown users."""

import hmac
import re
import secrets
import threading
import time
from hashlib import sha256
from typing import Any

from django.contrib.auth.hashers import check_password, make_password
from django.contrib.auth.password_validation import UserAttributeSimilarityValidator
from django.core.exceptions import ValidationError
from django.utils.functional import SimpleLazyObject

from accounts.authentication.login_attempts import PasswordAttempt
from accounts.models import User
from accounts.normalisation import composed
from system import properties
from system.errors import Unauthenticated
from system.process_cache import WeightedCache

MAX_LENGTH = 1024
# Of new passwords. With any login they still fit into the Basic header, however many bytes a character takes.
MAX_NEW_LENGTH = 512
# Login, names and email are known to others: a password needs this many characters besides them.
MIN_BESIDE_NAMES = 10
# Shorter names occur in many words by chance.
SHORTEST_NAME = 3
REMEMBERED_FOR_S = 60.0
REMEMBERED_BYTES = 4 * 1024 * 1024
PER_PASSWORD = 400
# New at each start, so that cached entries are useless elsewhere.
_START_SECRET = secrets.token_bytes(32)
_remembered: WeightedCache[bytes, tuple[float, str]] = WeightedCache(
    "passwords", limit=REMEMBERED_BYTES, weigh=lambda _, entry: PER_PASSWORD + len(entry[1])
)
_turns = [threading.Lock() for _ in range(64)]
# Checked for unknown users, so that they take as long as known ones.
NOBODY = SimpleLazyObject(lambda: make_password(secrets.token_urlsafe(16)))


def verify(login: str, password: str, address: str) -> User:
    """Returns the active user with this login and password; refuses every other case in the same way."""
    if not login or not password or len(login) > MAX_LENGTH or len(password) > MAX_LENGTH or "\x00" in login + password:
        raise Unauthenticated
    user = User.objects.with_login(login)
    memory = hmac.new(_START_SECRET, f"{login}\x00{password}".encode(errors="surrogatepass"), sha256).digest()
    if user is not None and is_remembered(memory, user):
        return user
    # One thread checks; others with the same credentials wait for its result instead of counting as attempts.
    with _turns[memory[0] % len(_turns)]:
        if user is not None and is_remembered(memory, user):
            return user
        # Where case counts, Bob is not bob, and Bob's success must not clear what was counted against bob.
        login = composed(login)
        counted_as = login if properties.get(properties.CASE_SENSITIVE) else login.lower()
        return check(user, password, memory, PasswordAttempt(counted_as, address))


def check(user: User | None, password: str, memory: bytes, attempt: PasswordAttempt) -> User:
    attempt.reserve()
    nobody = str(NOBODY)  # evaluated for everybody: the first unknown user must not take longer
    has_password = user is not None and user.has_usable_password()
    is_right = check_password(password, user.password if user is not None and has_password else nobody)
    if user is None or not has_password or not is_right or not user.is_active:
        raise Unauthenticated
    attempt.succeeded()
    _remembered.put(memory, (time.monotonic(), user.password))
    return user


def is_remembered(memory: bytes, user: User) -> bool:
    """Bound to the stored hash, so that a changed password takes effect immediately."""
    entry = _remembered.get(memory)
    return (
        entry is not None
        and time.monotonic() - entry[0] < REMEMBERED_FOR_S
        and entry[1] == user.password
        and user.is_active
    )


class NotTooLong:
    """Password validator: refuses passwords that could never be sent with Basic authentication."""

    def validate(self, password: str, user: User | None = None) -> None:
        if len(password) > MAX_NEW_LENGTH or "\x00" in password:
            raise ValidationError(self.get_help_text(), code="password_too_long")

    def get_help_text(self) -> str:
        return f"Your password can have at most {MAX_NEW_LENGTH} characters."


class NotLikeItsUser(UserAttributeSimilarityValidator):
    """Password validator: Django's, for our columns, which also refuses a name with a few characters added."""

    def __init__(self) -> None:
        super().__init__(user_attributes=("login", "first_name", "last_name", "email"))

    def validate(self, password: str, user: Any = None) -> None:
        super().validate(password, user)
        for name in self.user_attributes:
            if user is not None and any(_adds_little_to(part, password) for part in _parts(getattr(user, name))):
                label = str(user._meta.get_field(name).verbose_name)
                raise ValidationError(
                    self.get_error_message(), code="password_too_similar", params={"verbose_name": label}
                )


def _parts(value: str) -> list[str]:
    """The parts of a name; of an email address only the part before the @, since "com" occurs in many words.

    >>> _parts("Dora Lee-Smith"), _parts("dora.li@example.com")
    (['Dora Lee-Smith', 'Dora', 'Lee', 'Smith'], ['dora.li', 'dora'])
    """
    value = value.partition("@")[0]
    return [part for part in dict.fromkeys((value, *re.split(r"\W+", value))) if len(part) >= SHORTEST_NAME]


def _adds_little_to(name: str, password: str) -> bool:
    """
    >>> _adds_little_to("dora", "Dora123456"), _adds_little_to("dora", "dora likes battery staples")
    (True, False)
    """
    rest = password.lower().replace(name.lower(), "")
    return len(rest) < min(len(password), MIN_BESIDE_NAMES)
