"""Sessions, stored under a hash of their cookie with user, address and browser."""

import hashlib
import re
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import DatabaseError, models, transaction
from django.utils import timezone

ADDRESS_KEY = "signed_in_from"
BROWSER_KEY = "signed_in_with"
PROVIDER_SESSION_KEY = "provider_session"
# For sessions without a user, which anyone can create. Longer than a sign-in attempt lasts.
ANONYMOUS_LIFETIME = timedelta(minutes=15)
# How exact the time of the last use is: a session is written at most this often.
LAST_USE_INTERVAL = timedelta(minutes=5)

# The first match counts, because most browsers also send names that come later in this list.
BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("CriOS/", "Chrome"),
    ("Safari/", "Safari"),
)
OPERATING_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
)
PROGRAM_PATTERN = re.compile(r"(?!Mozilla/)[A-Za-z][\w .-]{0,40}")


def hash_session_key(session_key: str) -> str:
    """The stored form of a session key. The keys cannot be recovered from a copy of the database."""
    return hashlib.sha256(session_key.encode()).hexdigest()[:40]


class Session(AbstractBaseSession):
    """A browser that is signed in or is signing in."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="sessions")
    address = models.CharField(max_length=45, blank=True, default="")
    browser = models.CharField(max_length=200, blank=True, default="")
    # The id of the `ProviderSession` of the `sso` app, if the user signed in through a provider.
    provider_session = models.CharField(max_length=32, blank=True, default="", db_index=True)
    started_at = models.DateTimeField(default=timezone.now)
    last_used_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "accounts_session"

    def __str__(self) -> str:
        return f"session from {self.address or 'an unknown address'}"

    @property
    def browser_name(self) -> str:
        return describe_user_agent(self.browser)

    @classmethod
    def of_user(cls, user: Any) -> "models.QuerySet[Session]":
        """The user's sessions that have not expired, the last used first."""
        return cls.objects.filter(user=user, expire_date__gt=timezone.now()).order_by("-last_used_at", "-started_at")

    @property
    def is_in_use(self) -> bool:
        return timezone.now() - self.last_used_at < LAST_USE_INTERVAL

    def record_use(self) -> None:
        if self.is_in_use:
            return
        now = timezone.now()
        outdated = Session.objects.filter(pk=self.pk, last_used_at__lt=now - LAST_USE_INTERVAL)
        try:
            with transaction.atomic():
                outdated.update(last_used_at=now)
        except DatabaseError:  # for example a full disk; the request can do without
            pass

    @classmethod
    def get_session_store_class(cls) -> type[DatabaseStore]:
        return SessionStore


class SessionStore(DatabaseStore):
    """Django's database store, which stores only a hash of each session key."""

    @classmethod
    def get_model_class(cls) -> Any:
        return Session

    def _get_session_from_db(self) -> Any:
        try:
            session = Session.objects.get(session_key=stored_session_key(self), expire_date__gt=timezone.now())
        except Session.DoesNotExist:
            self._session_key = None
            return None
        session.record_use()
        return session

    def exists(self, session_key: str) -> bool:
        return bool(Session.objects.filter(session_key=hash_session_key(session_key)).exists())

    def create_model_instance(self, data: dict[str, Any]) -> Any:
        columns = {
            "session_data": self.encode(data),
            "expire_date": self.get_expiry_date() if SESSION_KEY in data else anonymous_expiry(),
            "user_id": data.get(SESSION_KEY),
            "address": data.get(ADDRESS_KEY, ""),
            "browser": data.get(BROWSER_KEY, ""),
            "provider_session": data.get(PROVIDER_SESSION_KEY, ""),
        }
        key = hash_session_key(self._get_or_create_session_key())  # type: ignore[attr-defined]  # Django's own
        started_at = Session.objects.filter(session_key=key).values_list("started_at", flat=True).first()
        return Session(session_key=key, started_at=started_at or timezone.now(), **columns)

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key is not None:
            Session.objects.filter(session_key=hash_session_key(key)).delete()


def anonymous_expiry() -> datetime:
    """When a session without a user expires."""
    return timezone.now() + ANONYMOUS_LIFETIME


def stored_session_key(store: Any) -> str:
    """The key under which the database stores this session."""
    return hash_session_key(store.session_key or "")


def describe_user_agent(user_agent: str) -> str:
    """Guesses browser and system from a User-Agent header; for display only.

    >>> describe_user_agent("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/126.0 Safari/537.36 Edg/126.0")
    'Edge on Windows'
    >>> describe_user_agent("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0")
    'Firefox on Linux'
    >>> describe_user_agent("curl/8.5.0")
    'curl'
    """
    browser = next((name for substring, name in BROWSERS if substring in user_agent), "")
    system = next((name for substring, name in OPERATING_SYSTEMS if substring in user_agent), "")
    if browser:
        return f"{browser} on {system}" if system else browser
    program = PROGRAM_PATTERN.match(user_agent)
    return program.group().strip() if program else "Unknown browser"
