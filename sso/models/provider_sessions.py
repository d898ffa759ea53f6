"""Sessions at the provider, for sign-out in both directions, and the provider's sign-outs of the last hour."""

import hashlib
import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Exists, Max, OuterRef, Q
from django.db.models.functions import Now
from django.utils import timezone

from accounts.models import Session, User
from sso.models.oidc_settings import OidcSetting
from system import encryption

# A sign-in creates this row shortly before it saves its session.
SIGN_IN_GRACE = timedelta(hours=1)
# Longer than any token is valid: ten minutes plus the difference between the clocks.
SIGN_OUT_RETENTION = timedelta(hours=1)


def handle() -> str:
    return secrets.token_hex(16)


def session_id(claims: Mapping[str, Any]) -> str:
    """The provider's id of its session (sid), or an empty string.

    >>> session_id({"sid": "s-1"}), session_id({"sid": 5})
    ('s-1', '')
    """
    sid = claims.get("sid")
    return sid if isinstance(sid, str) and len(sid) <= 255 else ""


class ProviderSession(models.Model):
    """A sign-in through a provider, kept while its session lasts. The session refers to it, even if its key changes."""

    encrypted_columns = frozenset({"id_token"})

    id = models.CharField(primary_key=True, max_length=32, default=handle, db_collation="C")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    setting = models.ForeignKey(OidcSetting, null=True, on_delete=models.SET_NULL, related_name="+")
    issuer = models.CharField(max_length=2000, db_collation="C")
    sub = models.CharField(max_length=255, db_collation="C")
    sid = models.CharField(max_length=255, blank=True, default="", db_collation="C")
    # Sent to the provider at sign-out.
    id_token = models.TextField()
    started_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "sso_provider_session"
        indexes = [
            models.Index(fields=["issuer", "sid"], name="sso_provider_session_sid"),
            models.Index(fields=["issuer", "sub"], name="sso_provider_session_sub"),
        ]

    def __str__(self) -> str:
        return f"{self.user} at {self.issuer}"

    @classmethod
    def begin(cls, user: User, setting: OidcSetting, claims: dict[str, Any], id_token: str) -> "ProviderSession":
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
        """The decrypted ID token, or an empty string if its encryption key is missing."""
        try:
            return encryption.decrypt(self.id_token)
        except encryption.DecryptionFailed:
            return ""

    @classmethod
    def end(cls, **identifiers: str) -> int:
        """End the matching sessions and return their number; sessions without a sid match by sub alone."""
        condition = Q(**identifiers)
        if "sub" in identifiers and "sid" in identifiers:
            condition |= Q(**{**identifiers, "sid": ""})
        ids = list(cls.objects.filter(condition).values_list("pk", flat=True))
        ended_count, _ = Session.objects.filter(provider_session__in=ids).delete()
        cls.objects.filter(pk__in=ids).delete()
        return int(ended_count)

    @classmethod
    def delete_ended(cls) -> None:
        live_sessions = Session.objects.filter(provider_session=OuterRef("pk"), expire_date__gt=Now())
        cls.objects.filter(~Exists(live_sessions), started_at__lt=Now() - SIGN_IN_GRACE).delete()


class ProviderSignOut(models.Model):
    """One verified logout token, stored to refuse repetitions and to end sign-ins in progress.

    Written under a lock of its issuer (`SIGN_OUTS_LOCK`), so that ids increase.
    """

    # The hash of issuer and jti.
    token_hash = models.CharField(max_length=64, unique=True, db_collation="C")
    issuer = models.CharField(max_length=2000, db_collation="C")
    sub = models.CharField(max_length=255, blank=True, default="", db_collation="C")
    sid = models.CharField(max_length=255, blank=True, default="", db_collation="C")
    issued_at = models.FloatField()
    came_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "sso_provider_sign_out"
        indexes = [
            models.Index(fields=["issuer", "sub"], name="sso_provider_sign_out_sub"),
            models.Index(fields=["came_at"], name="sso_provider_sign_out_came"),
        ]

    def __str__(self) -> str:
        return f"{self.sub or self.sid} at {self.issuer}"

    @classmethod
    def record(cls, claims: Mapping[str, Any]) -> bool:
        """Record a sign-out; return False if its token was received before."""
        token_hash = hashlib.sha256(f"{claims['iss']}\n{claims['jti']}".encode()).hexdigest()
        identifiers = {name: claims[name] for name in ("sub", "sid") if name in claims}
        columns = {"issuer": claims["iss"], "issued_at": claims["iat"], "came_at": Now(), **identifiers}
        _, is_new = cls.objects.get_or_create(token_hash=token_hash, defaults=columns)
        return is_new

    @classmethod
    def newest_id(cls, issuer: str) -> int:
        """The highest sign-out id of this issuer, or 0. Read when a sign-in starts: later sign-outs have higher ids."""
        newest_id = cls.objects.filter(issuer=issuer).aggregate(id=Max("pk"))["id"]
        return int(newest_id or 0)

    @classmethod
    def has_ended(cls, claims: Mapping[str, Any], *, since_id: int) -> bool:
        """Whether the ID token's session was signed out after the token was issued, or with an id above `since_id`."""
        sub, sid = claims["sub"], session_id(claims)
        # A session without a sid may be the one that was signed out by its sid.
        is_same_session = Q(sub__in=("", sub), sid__in=("", sid)) if sid else Q(sub=sub)
        is_later_sign_out = Q(pk__gt=since_id) | Q(issued_at__gt=claims["iat"])
        return cls.objects.filter(is_same_session, is_later_sign_out, issuer=claims["iss"]).exists()

    @classmethod
    def delete_old(cls) -> None:
        cls.objects.filter(came_at__lt=Now() - SIGN_OUT_RETENTION).delete()
