"""The sign-in log: who came through which connection, when, from where, and how that ended; never a token."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from sso.models.settings import OidcSetting
from system.record import Record


class SignIn(Record):
    """One attempt that came back from a provider."""

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

    class Meta(Record.Meta):
        db_table = "sso_sign_in"
        verbose_name = "sign-in"
        verbose_name_plural = "sign-in log"
        ordering: ClassVar[list[str]] = ["-sys_id"]
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["sys_created_at"], name="sso_sign_in_created")]

    def __str__(self) -> str:
        return f"{self.login or 'somebody'}: {self.outcome}"

    def leaves_log_entry(self) -> bool:
        return False  # they go by the thousand when they are old
