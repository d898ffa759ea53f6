"""Counters of failed sign-ins and other attempts, one row per window."""

from django.db import models


class FailedAttempts(models.Model):
    """A counter of one window; the key ends in a hash, so that logins are not stored."""

    key = models.CharField(primary_key=True, max_length=64)
    started_at = models.DateTimeField()
    count = models.PositiveIntegerField()

    class Meta:
        db_table = "accounts_failed_attempts"

    def __str__(self) -> str:
        return self.key
