"""State between requests: the responses to idempotent requests, and deferred records."""

from django.db import models
from django.utils import timezone


class IdempotentAnswer(models.Model):
    caller = models.CharField(max_length=32, db_collation="C")
    method = models.CharField(max_length=7)
    path = models.TextField()
    key = models.CharField(max_length=255)
    body_hash = models.CharField(max_length=64)
    status = models.SmallIntegerField()
    body = models.TextField(blank=True, default="")
    headers = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "tableapi_idempotent_answer"
        constraints = [
            models.UniqueConstraint(fields=["caller", "method", "path", "key"], name="idempotent_answer_once")
        ]
        indexes = [models.Index(fields=["created_at"], name="idempotent_answer_age")]


class DeferredRecord(models.Model):
    """A record that was accepted and is created by the worker."""

    class State(models.TextChoices):
        QUEUED = "queued", "queued"
        FAILED = "failed", "failed"

    table = models.CharField(max_length=63)
    record_id = models.CharField(max_length=32, db_collation="C", unique=True)
    values = models.JSONField(default=dict)
    caller = models.CharField(max_length=32, db_collation="C", null=True, blank=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    attempts = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    next_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "tableapi_deferred_record"
        ordering = ["-id"]
        indexes = [models.Index(fields=["state", "next_at"], name="deferred_record_due")]

    def __str__(self) -> str:
        return f"{self.table} {self.record_id}"
