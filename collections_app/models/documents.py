"""Documents and their versions: what was loaded, how far it has come, what searches see."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.utils import timezone

from system.records.record import NewSysId, user_reference

from .collections import Collection


class State(models.TextChoices):
    """The way of a version; the four above the line are worked on, the others are where it ends.

    queued → extracting → splitting → embedding
    ───────────────────────────────────────────
    ready · empty (no text found) · failed (with its reason)
    """

    QUEUED = "queued"
    EXTRACTING = "extracting"
    SPLITTING = "splitting"
    EMBEDDING = "embedding"
    READY = "ready"
    EMPTY = "empty"
    FAILED = "failed"


# Shown of a document that is deleted and whose chunks are still being taken away.
DELETING = "deleting"
UNFINISHED = (State.QUEUED, State.EXTRACTING, State.SPLITTING, State.EMBEDDING)


class Document(models.Model):
    """What callers know by its `doc_id`; its content is that of its versions."""

    id = models.CharField(primary_key=True, max_length=32, db_collation="C", db_default=NewSysId(), editable=False)
    collection = models.ForeignKey(Collection, models.DO_NOTHING, related_name="documents")
    doc_id = models.CharField(max_length=200, db_collation="C")
    created_at = models.DateTimeField(default=timezone.now)
    created_by = user_reference()
    updated_at = models.DateTimeField(default=timezone.now)
    # From here on it is gone for everybody; the worker takes its chunks away.
    deleted_at = models.DateTimeField(null=True)
    # The last one that was loaded: the one that searches see, or that comes to be it, or that failed.
    newest = models.ForeignKey("Version", models.DO_NOTHING, null=True, related_name="+", db_constraint=False)

    class Meta:
        db_table = "document"
        ordering: ClassVar[list[str]] = ["id"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["collection", "doc_id"], condition=Q(deleted_at__isnull=True), name="document_doc_id"
            )
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["deleted_at"], condition=Q(deleted_at__isnull=False), name="document_deleted"),
        ]

    def __str__(self) -> str:
        return self.doc_id

    def page_title(self) -> str:
        """What people call it: one that the service numbered is known by its file."""
        return (self.newest.filename if self.newest else "") or self.doc_id


class Version(models.Model):
    """One content of a document: what was sent, where its loading stands, and whether searches see it."""

    document = models.ForeignKey(Document, models.DO_NOTHING, related_name="versions")
    collection = models.ForeignKey(Collection, models.DO_NOTHING, related_name="+")
    generation = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=timezone.now)
    # Whose turn it is next is decided by this: nobody's many files hold up the others'.
    created_by = user_reference()

    # What was sent.
    filename = models.CharField(max_length=255, blank=True, default="")
    format = models.CharField(max_length=20)
    size = models.BigIntegerField()
    sha256 = models.CharField(max_length=64, db_collation="C")
    metadata = models.JSONField(default=dict)

    # Where its loading stands.
    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    error_code = models.CharField(max_length=60, blank=True, default="")
    error = models.CharField(max_length=1000, blank=True, default="")
    warnings = models.JSONField(default=list)
    attempt = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(default=timezone.now)
    lease_until = models.DateTimeField(null=True)
    lease_token = models.UUIDField(null=True)
    ready_at = models.DateTimeField(null=True)

    # What was found.
    pages = models.PositiveIntegerField(null=True)
    characters = models.PositiveIntegerField(default=0)
    chunks_count = models.PositiveIntegerField(default=0)
    # The text search configuration that its words are stored in.
    text_configuration = models.CharField(max_length=63, blank=True, default="", db_default="", editable=False)
    is_searched = models.BooleanField(default=False)
    # By embedding space, the number of the last chunk whose vector was stored; see `vectors`.
    embedded_to = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()), editable=False)

    class Meta:
        db_table = "document_version"
        ordering: ClassVar[list[str]] = ["id"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["document", "generation"], name="document_version_generation"),
            models.UniqueConstraint(
                fields=["document"], condition=Q(is_searched=True), name="document_version_one_searched"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["collection", "is_searched"], name="document_version_searched"),
            # What has chunks that no search may find: few, however many wait.
            models.Index(
                fields=["collection"],
                condition=Q(is_searched=False, chunks_count__gt=0),
                name="document_version_hidden",
            ),
            models.Index(fields=["collection", "sha256"], name="document_version_same"),
            models.Index(fields=["next_at"], condition=Q(state__in=UNFINISHED), name="document_version_due"),
            # Whose turn is next: one owner after the other.
            models.Index(
                fields=["created_by", "next_at", "id"], condition=Q(state__in=UNFINISHED), name="document_version_turn"
            ),
            # What is to be taken away is found among these, which are few.
            models.Index(fields=["error_code"], condition=Q(state=State.FAILED), name="document_version_failed"),
            models.Index(
                fields=["id"], condition=Q(state=State.READY, is_searched=False), name="document_version_unsearched"
            ),
            GinIndex(fields=["metadata"], opclasses=["jsonb_path_ops"], name="document_version_metadata"),
        ]

    def __str__(self) -> str:
        return f"{self.document_id}/{self.generation}"


class Piece(models.Model):
    """A megabyte of what was sent."""

    pk = models.CompositePrimaryKey("version_id", "number")
    version = models.ForeignKey(Version, models.DO_NOTHING, related_name="pieces", db_constraint=False)
    number = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        db_table = "document_piece"


class ExtractedText(models.Model):
    """The text found in a version, with where its pages and headings begin."""

    version = models.OneToOneField(
        Version, models.DO_NOTHING, primary_key=True, related_name="extracted", db_constraint=False
    )
    text = models.TextField()
    # Offsets of pages, in characters; null for formats without pages.
    page_starts = models.JSONField(null=True)
    # [offset, [heading, heading below it, …]] in the order of the text.
    headings = models.JSONField(default=list)

    class Meta:
        db_table = "document_text"
