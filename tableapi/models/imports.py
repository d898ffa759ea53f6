"""Imports of files, their data in pieces, and the mappings that users chose."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from accounts.models import User
from system.records.record import NewSysId


class Import(models.Model):
    class State(models.TextChoices):
        READING = "reading"
        WRITING = "writing"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"
        UNDOING = "undoing"
        UNDONE = "undone"

    id = models.CharField(primary_key=True, max_length=32, db_collation="C", db_default=NewSysId(), editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE)
    # The roles of a scoped access key; NULL for all roles of the user.
    roles = ArrayField(models.CharField(max_length=100), null=True)
    table = models.CharField(max_length=63, db_collation="C")
    file_name = models.CharField(max_length=255, blank=True)
    format = models.CharField(max_length=10)
    size = models.BigIntegerField()
    options = models.JSONField(default=dict)
    state = models.CharField(max_length=10, choices=State.choices, default=State.READING)
    # What the parser found in the file, and the column of each name in the header row.
    description = models.JSONField(default=dict)
    mapping = models.JSONField(default=dict)
    line_count = models.PositiveIntegerField(default=0)
    piece_count = models.PositiveIntegerField(default=0)
    next_piece = models.PositiveIntegerField(default=0)
    # `processed`, `created`, `updated`, `unchanged`, `failed`, `undone`, `left`
    counts = models.JSONField(default=dict)
    error = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    next_at = models.DateTimeField(db_default=Now())
    attempt = models.PositiveSmallIntegerField(default=0)

    class Meta:
        db_table = "tableapi_import"
        indexes = [models.Index(fields=["state", "next_at"], name="import_due")]

    def __str__(self) -> str:
        return f"{self.table} {self.pk}"


class ImportPiece(models.Model):
    """A part of the file, of its rows, of the errors or of the data to undo them. The database deletes it with its
    import."""

    class Kind(models.TextChoices):
        FILE = "file"
        ROWS = "rows"
        ERRORS = "errors"
        UNDO = "undo"
        LEFT = "left"

    of_import = models.ForeignKey(Import, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False)
    kind = models.CharField(max_length=6, choices=Kind.choices)
    number = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        db_table = "tableapi_import_piece"
        constraints = [models.UniqueConstraint(fields=["of_import", "kind", "number"], name="import_piece_number")]

    def __str__(self) -> str:
        return f"{self.of_import_id} {self.kind} {self.number}"


class ImportMapping(models.Model):
    """The last mapping that a user sent for a table and a set of header names."""

    user = models.ForeignKey(User, on_delete=models.CASCADE)
    table = models.CharField(max_length=63, db_collation="C")
    header_hash = models.CharField(max_length=64)
    mapping = models.JSONField()

    class Meta:
        db_table = "tableapi_import_mapping"
        constraints = [models.UniqueConstraint(fields=["user", "table", "header_hash"], name="import_mapping_once")]

    def __str__(self) -> str:
        return f"{self.user_id} {self.table}"
