"""Back-channel sign-outs of the last hour: none counts twice, and a sign-in that was under way does not outlive one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from django.db import models
from django.db.models import Max, Q
from django.utils import timezone

from sso.models.provider_sessions import session_id

# Longer than any token is believed: ten minutes and the difference of the clocks.
KEPT_FOR = timedelta(hours=1)


class ProviderSignOut(models.Model):
    """One logout token that was verified. Written alone with its issuer (`locks.SIGN_OUTS`), so that ids tell order."""

    # Of issuer and jti.
    token_hash = models.CharField(max_length=64, unique=True, db_collation="C")
    issuer = models.CharField(max_length=2000, db_collation="C")
    sub = models.CharField(max_length=255, blank=True, default="", db_collation="C")
    sid = models.CharField(max_length=255, blank=True, default="", db_collation="C")
    issued_at = models.FloatField()
    came_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "sso_provider_sign_out"
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["issuer", "sub"], name="sso_provider_sign_out_sub"),
            models.Index(fields=["came_at"], name="sso_provider_sign_out_came"),
        ]

    def __str__(self) -> str:
        return f"{self.sub or self.sid} at {self.issuer}"

    @classmethod
    def note(cls, claims: Mapping[str, Any]) -> bool:
        """False when this very token has come before."""
        token_hash = hashlib.sha256(f"{claims['iss']}\n{claims['jti']}".encode()).hexdigest()
        if cls.objects.filter(token_hash=token_hash).exists():
            return False
        named = {name: claims[name] for name in ("sub", "sid") if name in claims}
        cls.objects.create(token_hash=token_hash, issuer=claims["iss"], issued_at=claims["iat"], **named)
        return True

    @classmethod
    def newest(cls, issuer: str) -> int:
        """What a sign-in remembers at its beginning: all that come later have a larger number."""
        found = cls.objects.filter(issuer=issuer).aggregate(newest=Max("pk"))["newest"]
        return int(found or 0)

    @classmethod
    def has_ended(cls, claims: Mapping[str, Any], *, since: int) -> bool:
        """Whether what this ID token stands for was signed out after it was made, or since this number."""
        sub, sid = claims["sub"], session_id(claims)
        # A session without a name may be the one that was signed out by its name.
        of_them = Q(sub__in=("", sub), sid__in=("", sid)) if sid else Q(sub=sub)
        is_later = Q(pk__gt=since) | Q(issued_at__gt=claims["iat"])
        return cls.objects.filter(of_them, is_later, issuer=claims["iss"]).exists()

    @classmethod
    def forget_old(cls) -> None:
        cls.objects.filter(came_at__lt=timezone.now() - KEPT_FOR).delete()
