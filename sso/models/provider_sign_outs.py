"""Back-channel sign-outs of the last hour, stored to refuse repeated tokens and to end sign-ins in progress."""

import hashlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import models
from django.db.models import Max, Q
from django.db.models.functions import Now
from django.utils import timezone

from sso.models.provider_sessions import session_id

# Longer than any token is valid: ten minutes plus the difference between the clocks.
RETENTION = timedelta(hours=1)


class ProviderSignOut(models.Model):
    """One verified logout token. Written under a lock of its issuer (`SIGN_OUTS_LOCK`), so that ids increase."""

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
        cls.objects.filter(came_at__lt=Now() - RETENTION).delete()
