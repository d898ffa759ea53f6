"""The sign-in log: who came through which connection, when, from where, and how that ended; never a token."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from accounts.authentication.login_attempts import network
from sso.models import advisory_locks
from sso.models.oidc_settings import OidcSetting
from system.records.record import Record

# Refusals of one kind from one address are one entry for so long: anybody can make as many as they like.
FOLDED_WITHIN = timedelta(minutes=15)
# Of one kind, so many causes have an entry each; what is in a cause may be a stranger's choice too.
MOST_CAUSES = 5


class SignIn(Record):
    """One attempt that came back from a provider, or several that were refused alike, from one place in a short time.

    Alike are those of one outcome, place, login and connection, and of one cause as long as the causes are few. Of them
    the last one's detail and duration are kept, and `sys_updated_at` is its time.
    """

    OK = "ok"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", editable=False
    )
    setting = models.ForeignKey(OidcSetting, null=True, on_delete=models.SET_NULL, related_name="+", editable=False)
    setting_name = models.CharField("connection", max_length=200, blank=True, default="", editable=False)
    login = models.CharField(max_length=255, blank=True, default="", editable=False)
    outcome = models.CharField(max_length=50, editable=False)
    detail = models.CharField(max_length=1000, blank=True, default="", editable=False)
    address = models.CharField(max_length=45, blank=True, default="", editable=False)
    duration_ms = models.PositiveIntegerField("duration in ms", default=0, editable=False)
    times = models.PositiveIntegerField(default=1, editable=False)
    # What is equal of equal refusals; empty where each counts for itself.
    kind = models.CharField(max_length=64, blank=True, default="", editable=False, db_collation="C")

    class Meta(Record.Meta):
        db_table = "sso_sign_in"
        verbose_name = "sign-in"
        verbose_name_plural = "sign-ins"
        ordering: ClassVar[list[str]] = ["-sys_id"]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["sys_created_at"], name="sso_sign_in_created"),
            models.Index(fields=["kind", "sys_created_at"], name="sso_sign_in_kind", condition=~models.Q(kind="")),
        ]

    def __str__(self) -> str:
        return f"{self.login or 'somebody'}: {self.outcome}"

    def page_title(self) -> str:
        return f"Sign-in of {self}"

    def fold(self) -> bool:
        """Whether this refusal went into an entry that is there; in the caller's transaction, which then writes it."""
        at = network(self.address)
        alike = "\n".join((self.outcome, at, self.login, self.setting_name))
        self.kind = hashlib.sha256(alike.encode()).hexdigest()
        advisory_locks.alone_with(advisory_locks.REFUSALS, self.kind)
        recent = timezone.now() - FOLDED_WITHIN
        standing = list(type(self).objects.filter(kind=self.kind, sys_created_at__gt=recent)[:MOST_CAUSES])
        same_cause = next((each for each in standing if each.detail == self.detail), None)
        if same_cause is None and len(standing) < MOST_CAUSES:
            return False
        entry = same_cause or standing[0]
        last: dict[str, Any] = {name: getattr(self, name) for name in ("detail", "address", "duration_ms")}
        type(self).objects.filter(pk=entry.pk).update(
            times=models.F("times") + 1, sys_updated_at=timezone.now(), **last
        )
        return True

    def leaves_log_entry(self) -> bool:
        return False  # they go by the thousand when they are old
