"""Which of our sessions began with which session of a provider: for signing out there, and for being signed out."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from accounts.models import Session, User
from sso.models.oidc_settings import OidcSetting
from system import encryption

# A sign-in has made its row some moments before it saves its session.
UNDER_WAY = timedelta(hours=1)


def handle() -> str:
    return secrets.token_hex(16)


def session_id(claims: Mapping[str, Any]) -> str:
    """What the provider calls its session; nothing where it names none.

    >>> session_id({"sid": "s-1"}), session_id({"sid": 5})
    ('s-1', '')
    """
    sid = claims.get("sid")
    return sid if isinstance(sid, str) and len(sid) <= 255 else ""


class ProviderSession(models.Model):
    """What is kept of one sign-in while its session lasts. The session's row names it, whatever key it has by then."""

    encrypted_columns: ClassVar[frozenset[str]] = frozenset({"id_token"})

    id = models.CharField(primary_key=True, max_length=32, default=handle, db_collation="C")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    setting = models.ForeignKey(OidcSetting, null=True, on_delete=models.SET_NULL, related_name="+")
    issuer = models.CharField(max_length=2000, db_collation="C")
    sub = models.CharField(max_length=255, db_collation="C")
    sid = models.CharField(max_length=255, blank=True, default="", db_collation="C")
    # The provider asks for it when somebody signs out.
    id_token = models.TextField()
    started_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "sso_provider_session"
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["issuer", "sid"], name="sso_provider_session_sid"),
            models.Index(fields=["issuer", "sub"], name="sso_provider_session_sub"),
        ]

    def __str__(self) -> str:
        return f"{self.user} at {self.issuer}"

    @classmethod
    def begin(cls, user: User, setting: OidcSetting, claims: dict[str, Any], id_token: str) -> ProviderSession:
        return cls.objects.create(
            user=user,
            setting=setting,
            issuer=claims["iss"],
            sub=claims["sub"],
            sid=session_id(claims),
            id_token=encryption.encrypt(id_token),
        )

    @property
    def token_hint(self) -> str:
        """The ID token in clear; nothing when its key is gone."""
        try:
            return encryption.decrypt(self.id_token)
        except encryption.Undecipherable:
            return ""

    @classmethod
    def end(cls, **of: str) -> int:
        """End the sessions of these; how many there were. Of a subject also those that the provider gave no name."""
        named = Q(**of)
        if "sub" in of and "sid" in of:
            named |= Q(**{**of, "sid": ""})
        found = list(cls.objects.filter(named).values_list("pk", flat=True))
        ended, _ = Session.objects.filter(provider_session__in=found).delete()
        cls.objects.filter(pk__in=found).delete()
        return int(ended)

    @classmethod
    def forget_ended(cls) -> None:
        """Those whose session is over."""
        own = Session.objects.filter(provider_session=OuterRef("pk"), expire_date__gt=timezone.now())
        cls.objects.filter(~Exists(own), started_at__lt=timezone.now() - UNDER_WAY).delete()
