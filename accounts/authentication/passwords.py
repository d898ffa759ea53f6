"""Checks passwords: counts attempts, caches successes for a minute, and spends the same time on unknown users."""

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
from accounts.normalization import composed
from system import properties
from system.errors import Unauthenticated
from system.process_cache import WeightedCache

MAX_INPUT_LENGTH = 1024
# For new passwords. They fit into the Basic header with any login, however many bytes a character takes.
MAX_PASSWORD_LENGTH = 512
# A password needs this many characters besides login, names and email, which others know.
MIN_OTHER_CHARACTERS = 10
# Shorter names occur in many words by chance.
MIN_NAME_LENGTH = 3
CACHE_TTL_S = 60.0
MAX_CACHE_BYTES = 4 * 1024 * 1024
CACHED_PASSWORD_BYTES = 400
# Generated at each start, so that cache keys are useless outside this process.
_PROCESS_SECRET = secrets.token_bytes(32)
PASSWORD_CACHE: WeightedCache[bytes, tuple[float, str]] = WeightedCache(
    "passwords", max_weight=MAX_CACHE_BYTES, weigh=lambda _, entry: CACHED_PASSWORD_BYTES + len(entry[1])
)
_CHECK_LOCKS = [threading.Lock() for _ in range(64)]
# Checked for unknown users, so that they take as long as known ones.
DUMMY_HASH = SimpleLazyObject(lambda: make_password(secrets.token_urlsafe(16)))


def verify_password(login: str, password: str, address: str) -> User:
    """Returns the active user with this login and password; raises the same error in every other case."""
    if not login or not password or max(len(login), len(password)) > MAX_INPUT_LENGTH or "\x00" in login + password:
        raise Unauthenticated
    user = User.objects.find_by_login(login)
    cache_key = hmac.new(_PROCESS_SECRET, f"{login}\x00{password}".encode(errors="surrogatepass"), sha256).digest()
    if user is not None and is_cached(cache_key, user):
        return user
    # One thread checks; others with the same credentials wait for its result instead of counting as attempts.
    with _CHECK_LOCKS[cache_key[0] % len(_CHECK_LOCKS)]:
        if user is not None and is_cached(cache_key, user):
            return user
        # If logins are case-sensitive, a success of Bob must not clear the failures of bob.
        login = composed(login)
        counted_login = login if properties.get(properties.CASE_SENSITIVE) else login.lower()
        return check_attempt(user, password, cache_key, PasswordAttempt(counted_login, address))


def check_attempt(user: User | None, password: str, cache_key: bytes, attempt: PasswordAttempt) -> User:
    attempt.count_as_failed()
    dummy_hash = str(DUMMY_HASH)  # evaluated for everybody: the first unknown user must not take longer
    has_password = user is not None and user.has_usable_password()
    is_correct = check_password(password, user.password if user is not None and has_password else dummy_hash)
    if user is None or not has_password or not is_correct or not user.is_active:
        raise Unauthenticated
    attempt.record_success()
    PASSWORD_CACHE.put(cache_key, (time.monotonic(), user.password))
    return user


def is_cached(cache_key: bytes, user: User) -> bool:
    """Compares the stored hash with that of the entry, so that a changed password takes effect immediately."""
    entry = PASSWORD_CACHE.get(cache_key)
    return (
        entry is not None and time.monotonic() - entry[0] < CACHE_TTL_S and entry[1] == user.password and user.is_active
    )


class MaximumLengthValidator:
    """Password validator: refuses passwords that could never be sent with Basic authentication."""

    def validate(self, password: str, user: User | None = None) -> None:
        if "\x00" in password:
            raise ValidationError("Your password must not contain NUL characters.", code="password_contains_nul")
        if len(password) > MAX_PASSWORD_LENGTH:
            raise ValidationError(self.get_help_text(), code="password_too_long")

    def get_help_text(self) -> str:
        return f"Your password must contain at most {MAX_PASSWORD_LENGTH} characters."


class UserSimilarityValidator(UserAttributeSimilarityValidator):
    """Django's password validator for our columns, which also refuses a name with a few characters added."""

    def __init__(self) -> None:
        super().__init__(user_attributes=("login", "first_name", "last_name", "email"))

    def validate(self, password: str, user: Any = None) -> None:
        super().validate(password, user)
        for name in self.user_attributes:
            if user is not None and any(_is_mostly_name(part, password) for part in _name_parts(getattr(user, name))):
                label = str(user._meta.get_field(name).verbose_name)
                raise ValidationError(
                    self.get_error_message(), code="password_too_similar", params={"verbose_name": label}
                )


def _name_parts(value: str) -> list[str]:
    """The name and its parts; for an email address, only those before the @, as "com" occurs in many words.

    >>> _name_parts("Dora Lee-Smith"), _name_parts("dora.li@example.com")
    (['Dora Lee-Smith', 'Dora', 'Lee', 'Smith'], ['dora.li', 'dora'])
    """
    value = value.partition("@")[0]
    return [part for part in dict.fromkeys((value, *re.split(r"\W+", value))) if len(part) >= MIN_NAME_LENGTH]


def _is_mostly_name(name: str, password: str) -> bool:
    """
    >>> _is_mostly_name("dora", "Dora123456"), _is_mostly_name("dora", "dora likes battery staples")
    (True, False)
    """
    other_characters = password.lower().replace(name.lower(), "")
    return len(other_characters) < min(len(password), MIN_OTHER_CHARACTERS)
