"""The sign-in log: who signed in through which connection, when, from where, and the outcome; never a token."""

import hashlib
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

from accounts.authentication.login_attempts import client_network
from sso.models import advisory_locks
from sso.models.oidc_settings import OidcSetting
from sso.refusals import Refusal
from system.records.record import Record

# Equal refusals from one network within this time share an entry, because anyone can cause them.
MERGE_WINDOW = timedelta(minutes=15)
# At most this many entries for different details of one kind, because strangers can choose details too.
MAX_DETAILS = 5


class SignIn(Record):
    """One response of a provider, or several identical refusals from one network in a short time.

    Refusals are equal if they have the same outcome, network, login and connection and, up to `MAX_DETAILS`, the same
    detail. Detail, address, duration and `sys_updated_at` are those of the last refusal.
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
    # A hash of what equal refusals have in common; empty for other entries.
    kind = models.CharField(max_length=64, blank=True, default="", editable=False, db_collation="C")

    class Meta(Record.Meta):
        db_table = "sso_sign_in"
        verbose_name = "sign-in"
        verbose_name_plural = "sign-ins"
        ordering = ["-sys_id"]
        indexes = [
            models.Index(fields=["sys_created_at"], name="sso_sign_in_created"),
            models.Index(fields=["kind", "sys_created_at"], name="sso_sign_in_kind", condition=~models.Q(kind="")),
        ]

    def __str__(self) -> str:
        return f"{self.login or 'unknown user'}: {self.outcome_title(self.outcome)}"

    @classmethod
    def outcome_title(cls, outcome: str) -> str:
        """
        >>> SignIn.outcome_title("ok"), SignIn.outcome_title("user_unknown"), SignIn.outcome_title("of_another_version")
        ('Signed in', 'No account', 'of_another_version')
        """
        refusal = Refusal.from_code(outcome)
        return "Signed in" if outcome == cls.OK else refusal.title if refusal else outcome

    def page_title(self) -> str:
        return f"Sign-in of {self}"

    def merge_into_existing(self) -> bool:
        """Add this refusal to an existing entry, or return False. Then the caller saves it in the same transaction."""
        shared_values = "\n".join((self.outcome, client_network(self.address), self.login, self.setting_name))
        self.kind = hashlib.sha256(shared_values.encode()).hexdigest()
        advisory_locks.lock_named(advisory_locks.REFUSALS_LOCK, self.kind)
        window_start = timezone.now() - MERGE_WINDOW
        entries = list(type(self).objects.filter(kind=self.kind, sys_created_at__gt=window_start)[:MAX_DETAILS])
        matching_entry = next((entry for entry in entries if entry.detail == self.detail), None)
        if matching_entry is None and len(entries) < MAX_DETAILS:
            return False
        entry = matching_entry or entries[0]
        last_values: dict[str, Any] = {name: getattr(self, name) for name in ("detail", "address", "duration_ms")}
        type(self).objects.filter(pk=entry.pk).update(
            times=models.F("times") + 1, sys_updated_at=timezone.now(), **last_values
        )
        return True

    def leaves_deletion_log_entry(self) -> bool:
        return False  # old entries are deleted in bulk
