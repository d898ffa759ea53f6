"""Collections, and the embedding spaces that their vectors lie in."""

from __future__ import annotations

import re
import unicodedata
from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone

from system.records.history import tracked
from system.records.record import Record

LONGEST_NAME = 200
# With more, each character stands in many passages: at 99 of 100, a file of 4 MB in more than a million.
LARGE_OVERLAP = "The overlap must be at most half of the chunk size."
DEFAULT_OVERLAP = 200
# Where that is more than half of a chunk, the overlap is this part of it: as 200 is of 1000.
DEFAULT_PART = 5
# Unicode's "default ignorable" characters, all formats and separators of lines, and what changes the direction of text.
UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def well_named(name: str) -> str:
    """The name in NFC, or ValueError: "1 to 200 characters without control characters".

    >>> well_named("Cafe\\u0301")
    'Café'
    """
    found = _stored_form(name)
    if "\ufffd" in found:
        raise ValueError("A name must be valid UTF-8 and cannot contain U+FFFD.")
    return found


def _stored_form(name: str) -> str:
    found = unicodedata.normalize("NFC", name)
    if not 1 <= len(found) <= LONGEST_NAME:
        raise ValueError(f"A name must have 1 to {LONGEST_NAME} characters.")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in found) or not found.strip():
        raise ValueError("A name cannot contain control characters or consist of spaces only.")
    return found


def known_form(name: str) -> str:
    """As it would be stored; what nothing can be called is found nowhere. Names with U+FFFD there were before.

    >>> known_form("Cafe\\u0301"), known_form("a\\n")
    ('Café', '')
    """
    try:
        return _stored_form(name)
    except ValueError:
        return ""


def check_visible(name: str) -> None:
    """Raise ValueError for white space at the ends, and for characters that nobody sees. Look-alikes are allowed.

    >>> check_visible("a\\u200bb")
    Traceback (most recent call last):
    ValueError: A collection name cannot contain control, bidirectional or zero-width characters: it has U+200B.
    """
    if name != name.strip():
        raise ValueError("A collection name cannot begin or end with white space.")
    if found := UNSEEN.search(name):
        about = "A collection name cannot contain control, bidirectional or zero-width characters"
        raise ValueError(f"{about}: it has U+{ord(found[0]):04X}.")


def check_name(name: str) -> None:
    """As a validator of forms."""
    try:
        well_named(name)
    except ValueError as error:
        raise ValidationError(str(error)) from None


def is_overlap_too_large(size: int, overlap: int) -> bool:
    """
    >>> is_overlap_too_large(101, 50), is_overlap_too_large(101, 51)
    (False, True)
    """
    return overlap > size // 2


def default_overlap(size: int) -> int:
    """Of chunks of this size, when a new collection's is not said.

    >>> default_overlap(1000), default_overlap(400), default_overlap(399)
    (200, 200, 79)
    """
    return size // DEFAULT_PART if is_overlap_too_large(size, DEFAULT_OVERLAP) else DEFAULT_OVERLAP


class EmbeddingSpace(models.Model):
    """Vectors that can be compared: of one provider, one model, one number of dimensions."""

    provider = models.CharField(max_length=40)
    model = models.CharField(max_length=200)
    dimensions = models.PositiveSmallIntegerField()
    # Whether the number is sent along: not every model takes it, and it stays as it was when the space was made.
    asks_dimensions = models.BooleanField(default=False, db_default=False, editable=False)
    # The vector of a fixed text: a provider that changed its model silently gives another one.
    probe = ArrayField(models.FloatField(), null=True, editable=False)

    class Meta:
        db_table = "embedding_space"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["provider", "model", "dimensions"], name="embedding_space_one"),
            # For the foreign key of vectors: none of another length can lie in a space.
            models.UniqueConstraint(fields=["id", "dimensions"], name="embedding_space_dimensions"),
        ]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model} ({self.dimensions})"


def role_list(label: str, about: str) -> Any:
    return ArrayField(
        models.CharField(max_length=32, db_collation="C"), verbose_name=label, default=list, blank=True, help_text=about
    )


class Collections(models.QuerySet["Collection"]):
    """What deletes many deletes each as one is deleted."""

    def delete(self) -> tuple[int, dict[str, int]]:
        counts = [each.delete()[0] for each in self]
        return sum(counts), {self.model._meta.label: sum(counts)}


class Collection(Record):
    """Documents that are searched together, and who may."""

    references: ClassVar[dict[str, str]] = {"reader_roles": "sys_role", "writer_roles": "sys_role"}
    display_column = "name"
    untold_columns = frozenset({"unmarked_configuration"})

    name = models.CharField(max_length=LONGEST_NAME, db_collation="C", validators=[check_name])
    space = models.ForeignKey(EmbeddingSpace, models.PROTECT, related_name="+", editable=False)
    # Being filled beside the other; searches go over to it when it is complete.
    next_space = models.ForeignKey(
        EmbeddingSpace, models.PROTECT, related_name="+", null=True, blank=True, editable=False
    )
    chunk_size = models.PositiveIntegerField(default=1000, validators=[MinValueValidator(100), MaxValueValidator(8000)])
    chunk_overlap = models.PositiveIntegerField(default=DEFAULT_OVERLAP, validators=[MaxValueValidator(4000)])
    # PostgreSQL's text search configuration for what is loaded from now on; empty: each document's is guessed.
    text_configuration = models.CharField("language", max_length=63, blank=True, default="")
    # The one whose words are stored without it: that of the documents from before each had its own; see `lexical`.
    unmarked_configuration = models.CharField(max_length=63, blank=True, default="", db_default="", editable=False)
    alpha = models.FloatField(
        default=0.7,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text="Keyword weight in hybrid search (1 = keywords only, 0 = semantic only).",
    )
    reader_roles = role_list("readers", "Roles that can search this collection.")
    writer_roles = role_list("writers", "Roles that can add, delete and search documents. If empty: collection_admin.")
    # What became of the last try to fill `next_space`, and when the next is due.
    reembed_error = models.CharField("re-embedding", max_length=300, blank=True, default="", editable=False)
    reembed_attempt = models.PositiveSmallIntegerField(default=0, editable=False)
    reembed_at = models.DateTimeField(null=True, blank=True, editable=False)
    # Up to this version all have been filled; see `reembed`.
    reembed_after = models.BigIntegerField(default=0, db_default=0, editable=False)
    # Vectors of a space that it left are still to be taken away.
    has_old_vectors = models.BooleanField(default=False, editable=False)
    # From here on it is gone for everybody; the worker takes its documents away.
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)
    history = tracked(without=("reembed_error", "reembed_attempt", "reembed_at", "reembed_after", "has_old_vectors"))

    objects = Collections.as_manager()

    class Meta(Record.Meta):
        db_table = "document_collection"
        ordering: ClassVar[list[str]] = ["name", "sys_id"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(deleted_at__isnull=True), name="document_collection_name"
            ),
            models.CheckConstraint(
                condition=models.Q(chunk_size__gte=models.F("chunk_overlap") * 2), name="document_collection_overlap"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        if is_overlap_too_large(self.chunk_size, self.chunk_overlap):
            raise ValidationError({"chunk_overlap": LARGE_OVERLAP})

    def delete(self, *positional: Any, **options: Any) -> tuple[int, dict[str, int]]:
        """Gone for everybody from now on; the worker takes its documents away, and then this row."""
        from collections_app.documents import deletion  # noqa: PLC0415  (it imports this)

        deletion.delete_collection(self)
        return 1, {self._meta.label: 1}

    def mark_deleted(self) -> None:
        self.deleted_at = timezone.now()
        self.save(update_fields=["deleted_at"])

    def remove(self) -> None:
        """Take the row itself away, when nothing is left in it."""
        super().delete()

    def leaves_log_entry(self) -> bool:
        return self.deleted_at is None  # written when it was marked, with who did it
