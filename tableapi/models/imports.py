"""Imports of files, their data in pieces, and the mappings that users chose."""

import json
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from accounts.models import User
from system.records.record import NewSysId

MAX_PIECE_BYTES = 64 * 1024 * 1024


class Import(models.Model):
    class State(models.TextChoices):
        READING = "reading"
        WRITING = "writing"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"
        UNDOING = "undoing"
        UNDONE = "undone"

    ACTIVE_STATES = (State.READING, State.WRITING, State.UNDOING)

    id = models.CharField(primary_key=True, max_length=32, db_collation="C", db_default=NewSysId(), editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE)
    # The roles of a scoped access key; NULL for all roles of the user.
    roles = ArrayField(models.CharField(max_length=100), null=True)
    table = models.CharField(max_length=63, db_collation="C")
    file_name = models.CharField(max_length=255, blank=True)
    format = models.CharField(max_length=10)
    size = models.BigIntegerField(default=0)
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
    # When the next step is due, and how often it was begun.
    next_at = models.DateTimeField(db_default=Now())
    attempt = models.PositiveSmallIntegerField(default=0)

    class Meta:
        db_table = "tableapi_import"
        indexes = [models.Index(fields=["state", "next_at"], name="import_due")]

    @property
    def is_active(self) -> bool:
        return self.state in self.ACTIVE_STATES

    def pieces(self, kind: "ImportPiece.Kind") -> models.QuerySet["ImportPiece"]:
        return ImportPiece.objects.filter(of_import=self.pk, kind=kind).order_by("number")

    def add_piece(self, kind: "ImportPiece.Kind", number: int, data: bytes) -> None:
        ImportPiece.objects.create(of_import=self, kind=kind, number=number, data=data)

    def add_entries(self, kind: "ImportPiece.Kind", number: int, entries: list[Any]) -> None:
        if entries:
            self.add_piece(kind, number, zlib.compress(json.dumps(entries, ensure_ascii=False).encode(), 1))

    def entries(self, kind: "ImportPiece.Kind", number: int) -> list[Any]:
        """The entries of a piece; none if it does not exist. Limited, because the parser's output is not trusted."""
        for data in self.pieces(kind).filter(number=number).values_list("data", flat=True):
            return list(json.loads(zlib.decompressobj().decompress(data, MAX_PIECE_BYTES)))
        return []

    def first_entries(self, kind: "ImportPiece.Kind", limit: int) -> list[Any]:
        entries: list[Any] = []
        for number in self.pieces(kind).values_list("number", flat=True):
            if len(entries) < limit:
                entries += self.entries(kind, number)
        return entries[:limit]

    @contextmanager
    def opened_file(self) -> Iterator[IO[bytes]]:
        """The file in an unnamed temporary file, so that it is never held in memory."""
        pieces = self.pieces(ImportPiece.Kind.FILE)
        with tempfile.TemporaryFile() as file:
            for number in list(pieces.values_list("number", flat=True)):
                file.write(pieces.values_list("data", flat=True).get(number=number))
            file.flush()
            yield file


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


class ImportMapping(models.Model):
    """The last mapping that a user sent for a table."""

    user = models.ForeignKey(User, on_delete=models.CASCADE)
    table = models.CharField(max_length=63, db_collation="C")
    mapping = models.JSONField()

    class Meta:
        db_table = "tableapi_import_mapping"
        constraints = [models.UniqueConstraint(fields=["user", "table"], name="import_mapping_once")]
