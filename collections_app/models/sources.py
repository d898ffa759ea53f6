"""Sources of a collection: web pages and folders that the worker loads on a schedule."""

from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from system.outbound.urls import MAX_URL_LENGTH
from system.records.history import history_field
from system.records.record import Record

from .collections import MAX_NAME_LENGTH, Collection

MIN_INTERVAL_MINUTES = 5
MAX_INTERVAL_MINUTES = 30 * 24 * 60
STATE_COLUMNS = (
    "next_at", "lease_until", "lease_token", "checked_at", "succeeded_at", "error", "error_since", "problems",
    "conditions", "device",
)  # fmt: skip


class Source(Record):
    """A web page or a folder, and the state of its refreshes."""

    class Kind(models.TextChoices):
        PAGE = "page", "Web page"
        FOLDER = "folder", "Folder"

    display_column = "address"

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="sources", editable=False)
    kind = models.CharField(max_length=6, choices=Kind.choices)
    # The URL of a page, or the path of a folder on the server. Only managers of the collection see it.
    address = models.CharField(max_length=MAX_URL_LENGTH)
    # The document with the text of the page; the files of a folder have their relative paths.
    doc_id = models.CharField("document ID", max_length=MAX_NAME_LENGTH, db_collation="C", blank=True, default="")
    interval_minutes = models.PositiveIntegerField(
        default=24 * 60, validators=[MinValueValidator(MIN_INTERVAL_MINUTES), MaxValueValidator(MAX_INTERVAL_MINUTES)]
    )

    # The state. The holder of the lease changes it; see `sources.refresh`.
    next_at = models.DateTimeField("next refresh", default=timezone.now, editable=False)
    lease_until = models.DateTimeField(null=True, editable=False)
    lease_token = models.UUIDField(null=True, editable=False)
    checked_at = models.DateTimeField("last refresh", null=True, editable=False)
    succeeded_at = models.DateTimeField("last success", null=True, editable=False)
    error = models.CharField(max_length=500, blank=True, default="", editable=False)
    error_since = models.DateTimeField("failing since", null=True, editable=False)
    # The first files that could not be loaded, each with a message.
    problems = models.JSONField(default=list, editable=False)
    # The headers with which the server of a page can answer that it is unchanged.
    conditions = models.JSONField(default=dict, editable=False)
    # The device of a folder (`st_dev`). Another one means that something else is mounted there, or nothing.
    device = models.BigIntegerField(null=True, editable=False)
    history = history_field(omit=STATE_COLUMNS)

    class Meta(Record.Meta):
        db_table = "document_source"
        ordering = ["kind", "address", "sys_id"]
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "doc_id"], condition=Q(kind="page"), name="document_source_page"
            ),
            # The paths in two folders could be equal, and their documents would replace each other.
            models.UniqueConstraint(fields=["collection"], condition=Q(kind="folder"), name="document_source_folder"),
        ]

    def __str__(self) -> str:
        return self.address

    @property
    def state(self) -> str:
        return "failing" if self.error else "waiting" if self.succeeded_at is None else "ok"

    def payload(self) -> dict[str, Any]:
        """The deletion log contains the configuration only."""
        return {name: value for name, value in super().payload().items() if name not in STATE_COLUMNS}


class SourceFile(models.Model):
    """A file of a folder that was loaded, or whose content is not supported."""

    source = models.ForeignKey(Source, models.CASCADE, related_name="files")
    # Relative to the folder; the `doc_id` of its document.
    path = models.CharField(max_length=MAX_NAME_LENGTH, db_collation="C")
    # Changes when the file does.
    fingerprint = models.CharField(max_length=120)
    # Why it was not loaded. It is read again when it changes.
    problem = models.CharField(max_length=300, blank=True, default="")
    missing_since = models.DateTimeField(null=True)

    class Meta:
        db_table = "document_source_file"
        constraints = [models.UniqueConstraint(fields=["source", "path"], name="document_source_file_path")]

    def __str__(self) -> str:
        return self.path
