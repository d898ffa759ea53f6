"""Sessions, stored under a hash of their cookie with user, address and browser."""

import hashlib
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.base_session import AbstractBaseSession, BaseSessionManager
from django.db import models
from django.utils import timezone

from accounts.models.browsers import readable

ADDRESS = "signed_in_from"
BROWSER = "signed_in_with"
PROVIDER_SESSION = "provider_session"
# Anybody can begin as many of these as they like; it outlasts an attempt to sign in.
WITHOUT_USER_FOR = timedelta(minutes=15)


def hashed(session_key: str) -> str:
    """What the database keeps: a copy of it opens no session."""
    return hashlib.sha256(session_key.encode()).hexdigest()[:40]


class Session(AbstractBaseSession):
    """One signed-in browser, or one on its way there."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="sessions")
    address = models.CharField(max_length=45, blank=True, default="")
    browser = models.CharField(max_length=200, blank=True, default="")
    # Which session of an identity provider it began with, if any (single sign-on knows more).
    provider_session = models.CharField(max_length=32, blank=True, default="", db_index=True)
    started_at = models.DateTimeField(default=timezone.now)

    objects: ClassVar[Any] = BaseSessionManager()

    class Meta:
        db_table = "accounts_session"

    def __str__(self) -> str:
        return f"session from {self.address or 'an unknown address'}"

    @property
    def browser_name(self) -> str:
        return readable(self.browser)

    @classmethod
    def get_session_store_class(cls) -> type[DatabaseStore]:
        return SessionStore


class SessionStore(DatabaseStore):
    """Django's database store, with the key hashed at its border."""

    @classmethod
    def get_model_class(cls) -> Any:
        return Session

    def _get_session_from_db(self) -> Any:
        try:
            return Session.objects.get(session_key=hashed(self.session_key or ""), expire_date__gt=timezone.now())
        except Session.DoesNotExist:
            self._session_key = None
            return None

    def exists(self, session_key: str) -> bool:
        return bool(Session.objects.filter(session_key=hashed(session_key)).exists())

    def create_model_instance(self, data: dict[str, Any]) -> Any:
        columns = {
            "session_data": self.encode(data),
            "expire_date": self.get_expiry_date() if SESSION_KEY in data else end_without_user(),
            "user_id": data.get(SESSION_KEY),
            "address": data.get(ADDRESS, ""),
            "browser": data.get(BROWSER, ""),
            "provider_session": data.get(PROVIDER_SESSION, ""),
        }
        key = hashed(self._get_or_create_session_key())  # type: ignore[attr-defined]  # Django's own
        started = Session.objects.filter(session_key=key).values_list("started_at", flat=True).first()
        return Session(session_key=key, started_at=started or timezone.now(), **columns)

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key is not None:
            Session.objects.filter(session_key=hashed(key)).delete()


def end_without_user() -> datetime:
    """When a session ends in which nobody has signed in yet."""
    return timezone.now() + WITHOUT_USER_FOR


def own_row(store: Any) -> str:
    """The database's key of the session that a request came with."""
    return hashed(store.session_key or "")
