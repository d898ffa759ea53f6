"""Collections, and the embedding spaces of their vectors."""

import re
import unicodedata
from typing import Any, Self

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone

from system.errors import InvalidParameter
from system.records.history import history_field
from system.records.record import Record

MAX_NAME_LENGTH = 200
# With more, each character is in many passages: 99 of 100 would split a file of 4 MB into over a million.
OVERLAP_TOO_LARGE = "The overlap must be at most half of the chunk size."
# Chosen: a value instead of NULL, which processes of an earlier version could not read during an upgrade.
DEFAULT_ALPHA = 0.7
DEFAULT_OVERLAP = 200
# For small chunks, the default overlap is a fifth of the size, the same share as 200 of 1000.
DEFAULT_OVERLAP_DIVISOR = 5
# Unicode's "default ignorable" characters, all format characters, line separators and direction changes.
INVISIBLE_CHARACTERS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


class InvalidName(InvalidParameter):
    """The name of a collection is invalid."""


def normalize_name(name: str, field: str = "collection_name") -> str:
    """Returns the name in NFC; raises InvalidName unless it has "1 to 200 characters without control characters".

    >>> normalize_name("Cafe\\u0301")
    'Café'
    """
    stored_name = _stored_form(name, field)
    if "\ufffd" in stored_name:
        raise InvalidName(f"{_subject(field)} must be valid UTF-8 and must not contain U+FFFD.", field=field)
    return stored_name


def _stored_form(name: str, field: str) -> str:
    stored_name = unicodedata.normalize("NFC", name)
    if not 1 <= len(stored_name) <= MAX_NAME_LENGTH:
        raise InvalidName(f"{_subject(field)} must consist of 1 to {MAX_NAME_LENGTH} characters.", field=field)
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in stored_name) or not stored_name.strip():
        rule = "must not contain control characters or consist only of spaces"
        raise InvalidName(f"{_subject(field)} {rule}.", field=field)
    return stored_name


def _subject(field: str) -> str:
    """What an error message calls the value; documents have an ID that follows the rules of names."""
    return "A document ID" if field == "doc_id" else "A name"


def lookup_name(name: str) -> str:
    """Returns the name to look up, or "" for an invalid one. Older names may contain U+FFFD.

    >>> lookup_name("Cafe\\u0301"), lookup_name("a\\n")
    ('Café', '')
    """
    try:
        return _stored_form(name, "")
    except InvalidName:
        return ""


def check_visible_characters(name: str) -> None:
    """Refuses a new name with invisible characters or white space at its ends, because it would look like another.

    Look-alike letters are allowed. Existing collections keep their names.

    >>> check_visible_characters("a\\n")
    Traceback (most recent call last):
    collections_app.models.collections.InvalidName: A collection name must not begin or end with whitespace.
    """
    if name != name.strip():
        raise InvalidName("A collection name must not begin or end with whitespace.", field="collection_name")
    if match := INVISIBLE_CHARACTERS.search(name):
        rule = "A collection name must not contain control, formatting or invisible characters"
        raise InvalidName(f"{rule}: found U+{ord(match[0]):04X}.", field="collection_name")


def check_name(name: str) -> None:
    try:
        normalize_name(name)
    except InvalidName as error:
        raise ValidationError(error.message) from None


def is_overlap_too_large(size: int, overlap: int) -> bool:
    """
    >>> is_overlap_too_large(101, 50), is_overlap_too_large(101, 51)
    (False, True)
    """
    return overlap > size // 2


def default_overlap(size: int) -> int:
    """Returns the overlap of a new collection with this chunk size.

    >>> default_overlap(1000), default_overlap(400), default_overlap(399)
    (200, 200, 79)
    """
    return size // DEFAULT_OVERLAP_DIVISOR if is_overlap_too_large(size, DEFAULT_OVERLAP) else DEFAULT_OVERLAP


class EmbeddingSpace(models.Model):
    """Vectors that can be compared, because they have the same provider, model and number of dimensions."""

    provider = models.CharField(max_length=40)
    model = models.CharField(max_length=200)
    dimensions = models.PositiveSmallIntegerField()
    # Whether requests include the dimensions, which not every model accepts. Set when the space is created.
    asks_dimensions = models.BooleanField(default=False, db_default=False, editable=False)
    # The vector of a fixed text. A different vector later means that the provider has silently changed its model.
    probe = ArrayField(models.FloatField(), null=True, editable=False)

    class Meta:
        db_table = "embedding_space"
        constraints = [
            models.UniqueConstraint(fields=["provider", "model", "dimensions"], name="embedding_space_one"),
            # The foreign key of vectors refers to both, so all vectors of a space have its dimensions.
            models.UniqueConstraint(fields=["id", "dimensions"], name="embedding_space_dimensions"),
        ]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model} ({self.dimensions})"


def role_list_field(label: str, help_text: str) -> Any:
    return ArrayField(
        models.CharField(max_length=32, db_collation="C"),
        verbose_name=label,
        default=list,
        blank=True,
        help_text=help_text,
    )


class Collection(Record):
    """Documents that are searched together, with their roles and settings."""

    references = {"reader_roles": "sys_role", "writer_roles": "sys_role"}
    display_column = "name"
    internal_columns = frozenset({"unmarked_configuration"})

    name = models.CharField(max_length=MAX_NAME_LENGTH, db_collation="C", validators=[check_name])
    space = models.ForeignKey(EmbeddingSpace, models.PROTECT, related_name="+", editable=False)
    # The space that is being filled; searches change to it when it is complete.
    next_space = models.ForeignKey(
        EmbeddingSpace, models.PROTECT, related_name="+", null=True, blank=True, editable=False
    )
    chunk_size = models.PositiveIntegerField(default=1000, validators=[MinValueValidator(100), MaxValueValidator(8000)])
    chunk_overlap = models.PositiveIntegerField(default=DEFAULT_OVERLAP, validators=[MaxValueValidator(4000)])
    # PostgreSQL's text search configuration for new documents; empty: detected for each document.
    text_configuration = models.CharField("language", max_length=63, blank=True, default="")
    # The configuration of words that are stored without one, from before each document had its own; see `lexical`.
    unmarked_configuration = models.CharField(max_length=63, blank=True, default="", db_default="", editable=False)
    # The name of a local model; empty: chosen by the languages of the documents. See `vectors.model_choice`.
    embedding_model_choice = models.CharField("embedding model", max_length=200, blank=True, default="", db_default="")
    alpha = models.FloatField(
        default=DEFAULT_ALPHA,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text="Keyword weight in hybrid search (1 = keywords only, 0 = semantic only).",
    )
    # One group a line, separated by commas; see `lexical.synonyms`.
    synonyms = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="Words that mean the same, one group a line, separated by commas: printer, MFP, multifunction "
        "device. A search for one also finds the others.",
    )
    doc_id_from_filename = models.BooleanField(
        "document IDs from file names",
        default=False,
        db_default=False,
        help_text="A new document that is loaded without an ID gets its file name as its ID, instead of a number.",
    )
    reader_roles = role_list_field("readers", "Roles that can search this collection.")
    writer_roles = role_list_field(
        "writers", "Roles that can add, delete and search documents. If empty: collection_admin."
    )
    # The error of the last attempt to fill `next_space`, and when the next one is due.
    reembed_error = models.CharField("re-embedding", max_length=300, blank=True, default="", editable=False)
    reembed_attempt = models.PositiveSmallIntegerField(default=0, editable=False)
    reembed_at = models.DateTimeField(null=True, blank=True, editable=False)
    # All versions up to this one have vectors in `next_space`; see `reembedding`.
    reembed_after = models.BigIntegerField(default=0, db_default=0, editable=False)
    # Whether vectors of a former space still have to be deleted.
    has_old_vectors = models.BooleanField(default=False, editable=False)
    # When set, the collection is hidden, and the worker purges its documents.
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)
    history = history_field(omit=("reembed_error", "reembed_attempt", "reembed_at", "reembed_after", "has_old_vectors"))

    class Meta(Record.Meta):
        db_table = "document_collection"
        ordering = ["name", "sys_id"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(deleted_at__isnull=True), name="document_collection_name"
            ),
            models.CheckConstraint(
                condition=models.Q(chunk_size__gte=models.F("chunk_overlap") * 2), name="document_collection_overlap"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def own_alpha(self) -> float | None:
        """The keyword weight, or None if the embedding model and the language determine it."""
        return None if self.alpha == DEFAULT_ALPHA else self.alpha

    def clean(self) -> None:
        if is_overlap_too_large(self.chunk_size, self.chunk_overlap):
            raise ValidationError({"chunk_overlap": OVERLAP_TOO_LARGE})

    @property
    def load_settings(self) -> str:
        """The settings that apply to documents when they are loaded, as text."""
        return f"{self.chunk_size}/{self.chunk_overlap} {self.text_configuration or 'auto'}"

    @classmethod
    def lock(cls, sys_id: str) -> Self | None:
        """Reads and locks a collection, or returns None if it is deleted. New documents do not wait for the lock."""
        # Unordered; otherwise PostgreSQL would also lock the tables that it orders by.
        locked = cls.objects.select_for_update(no_key=True).order_by()
        return locked.filter(pk=sys_id, deleted_at=None).first()

    def mark_deleted(self) -> None:
        self.deleted_at = timezone.now()
        self.save(update_fields=["deleted_at"])

    def leaves_deletion_log_entry(self) -> bool:
        return self.deleted_at is None  # `deletion.delete_collection` has written the entry, with the acting user
