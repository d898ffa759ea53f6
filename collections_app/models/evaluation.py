"""The questions with which the search quality of a collection is measured, and the runs that measured it."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from system.records.record import NewSysId, user_reference

from .collections import MAX_NAME_LENGTH, Collection

MAX_QUERY_LENGTH = 1000
MAX_NOTE_LENGTH = 500
MAX_EXPECTED_DOCUMENTS = 20


class RunState(models.TextChoices):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class EvaluationQuestion(models.Model):
    """A question and the `doc_id` of each document that answers it. The documents need not exist."""

    id = models.CharField(primary_key=True, max_length=32, db_collation="C", db_default=NewSysId(), editable=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="evaluation_questions")
    # Unique in the collection; `evaluation.questions` checks this under a lock, because an index has no room for it.
    query = models.CharField(max_length=MAX_QUERY_LENGTH)
    doc_ids = ArrayField(models.CharField(max_length=MAX_NAME_LENGTH, db_collation="C"))
    note = models.CharField(max_length=MAX_NOTE_LENGTH, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    created_by = user_reference()

    class Meta:
        db_table = "evaluation_question"
        ordering = ["id"]


class EvaluationRun(models.Model):
    """One measurement of all questions, and its row in the queue while it is running; see `evaluation.runs`."""

    id = models.CharField(primary_key=True, max_length=32, db_collation="C", db_default=NewSysId(), editable=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="evaluation_runs")
    created_at = models.DateTimeField(default=timezone.now)
    created_by = user_reference()
    finished_at = models.DateTimeField(null=True)
    is_automatic = models.BooleanField(default=False)
    state = models.CharField(max_length=8, choices=RunState.choices, default=RunState.RUNNING)
    error = models.CharField(max_length=300, blank=True, default="")
    # What `evaluation.settings` returned when the run started.
    settings = models.JSONField()
    # A result for each question so far, in the order of the questions; then the means over them.
    results = models.JSONField(default=list)
    results_count = models.PositiveIntegerField(default=0)
    measures = models.JSONField(null=True)
    attempt = models.PositiveSmallIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    lease_token = models.UUIDField(null=True)

    class Meta:
        db_table = "evaluation_run"
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["collection"], condition=Q(state=RunState.RUNNING), name="evaluation_run_one_running"
            )
        ]
