"""Documents, their versions and chunks: the loaded content, its state, and what searches see.

Chunks and their search data are written and read by SQL, and deleted with their version (ON DELETE CASCADE).
"""

from collections.abc import Iterable

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.utils import timezone
from pgvector.django import HalfVectorField, SparseVectorField

from system.records.record import NewSysId, user_reference

from .collections import Collection, EmbeddingSpace


class VersionState(models.TextChoices):
    """The states of a version; those above the line are in progress, the others are final.

    queued → extracting → splitting → embedding
    ───────────────────────────────────────────
    ready · empty (no text found) · failed (with a reason)
    """

    QUEUED = "queued"
    EXTRACTING = "extracting"
    SPLITTING = "splitting"
    EMBEDDING = "embedding"
    READY = "ready"
    EMPTY = "empty"
    FAILED = "failed"


# The dimension of a word is 28 bits of its hash.
LEXICAL_DIMENSIONS = 2**28
# The displayed state of a deleted document whose chunks are still being purged.
DELETING_STATE = "deleting"
UNFINISHED_STATES = (VersionState.QUEUED, VersionState.EXTRACTING, VersionState.SPLITTING, VersionState.EMBEDDING)


class Document(models.Model):
    """A document, identified by its `doc_id`; its versions hold the content."""

    id = models.CharField(primary_key=True, max_length=32, db_collation="C", db_default=NewSysId(), editable=False)
    collection = models.ForeignKey(Collection, models.DO_NOTHING, related_name="documents")
    doc_id = models.CharField(max_length=200, db_collation="C")
    created_at = models.DateTimeField(default=timezone.now)
    created_by = user_reference()
    updated_at = models.DateTimeField(default=timezone.now)
    # When set, the document is hidden, and the worker purges its chunks.
    deleted_at = models.DateTimeField(null=True)
    # The version that was loaded last: it may be searched, in progress or failed.
    newest = models.ForeignKey("Version", models.DO_NOTHING, null=True, related_name="+", db_constraint=False)

    class Meta:
        db_table = "document"
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "doc_id"], condition=Q(deleted_at__isnull=True), name="document_doc_id"
            )
        ]
        indexes = [models.Index(fields=["deleted_at"], condition=Q(deleted_at__isnull=False), name="document_deleted")]

    def __str__(self) -> str:
        return self.doc_id

    def displayed_version(self) -> "Version":
        """Returns the newest version or, if the document has none, an empty one."""
        return self.newest or Version(size=0, created_at=self.created_at)

    def page_title(self) -> str:
        """The title on pages: the file name, or else the `doc_id`."""
        return self.displayed_version().filename or self.doc_id


class Version(models.Model):
    """One state of a document's content: the upload, its processing, and whether searches use it."""

    document = models.ForeignKey(Document, models.DO_NOTHING, related_name="versions")
    collection = models.ForeignKey(Collection, models.DO_NOTHING, related_name="+")
    generation = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=timezone.now)
    # The queue takes turns between owners, so that many files of one do not delay the others.
    created_by = user_reference()

    # The upload.
    filename = models.CharField(max_length=255, blank=True, default="")
    format = models.CharField(max_length=20)
    size = models.BigIntegerField()
    sha256 = models.CharField(max_length=64, db_collation="C")
    metadata = models.JSONField(default=dict)

    # The state of the processing.
    state = models.CharField(max_length=12, choices=VersionState.choices, default=VersionState.QUEUED)
    error_code = models.CharField(max_length=60, blank=True, default="")
    error = models.CharField(max_length=1000, blank=True, default="")
    warnings = models.JSONField(default=list)
    attempt = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(default=timezone.now)
    lease_until = models.DateTimeField(null=True)
    lease_token = models.UUIDField(null=True)
    ready_at = models.DateTimeField(null=True)

    # The results.
    pages = models.PositiveIntegerField(null=True)
    characters = models.PositiveIntegerField(default=0)
    chunks_count = models.PositiveIntegerField(default=0)
    # The text search configuration of the stored words.
    text_configuration = models.CharField(max_length=63, blank=True, default="", db_default="", editable=False)
    # The settings of the collection with which the passages were made; see `Collection.load_settings`.
    load_settings = models.CharField(max_length=90, blank=True, default="", db_default="", editable=False)
    is_searched = models.BooleanField(default=False)
    # By embedding space, the number of the last chunk whose vector was stored; see `vectors`.
    embedded_to = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()), editable=False)

    class Meta:
        db_table = "document_version"
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["document", "generation"], name="document_version_generation"),
            models.UniqueConstraint(
                fields=["document"], condition=Q(is_searched=True), name="document_version_one_searched"
            ),
        ]
        indexes = [
            models.Index(fields=["collection", "is_searched"], name="document_version_searched"),
            # Versions with hidden chunks: few, however many are queued.
            models.Index(
                fields=["collection"],
                condition=Q(is_searched=False, chunks_count__gt=0),
                name="document_version_hidden",
            ),
            models.Index(fields=["collection", "sha256"], name="document_version_same"),
            models.Index(fields=["next_at"], condition=Q(state__in=UNFINISHED_STATES), name="document_version_due"),
            # The order of the queue: round-robin over the owners.
            models.Index(
                fields=["created_by", "next_at", "id"],
                condition=Q(state__in=UNFINISHED_STATES),
                name="document_version_turn",
            ),
            # Versions to purge are among the failed ones, which are few.
            models.Index(fields=["error_code"], condition=Q(state=VersionState.FAILED), name="document_version_failed"),
            models.Index(
                fields=["id"],
                condition=Q(state=VersionState.READY, is_searched=False),
                name="document_version_unsearched",
            ),
            GinIndex(fields=["metadata"], opclasses=["jsonb_path_ops"], name="document_version_metadata"),
        ]

    def __str__(self) -> str:
        return f"{self.document_id}/{self.generation}"


def searched_document_ids(documents: Iterable[Document]) -> set[str]:
    """Returns the ids of those documents that searches find, in their newest or an earlier version."""
    versions = Version.objects.filter(document__in=[document.pk for document in documents], is_searched=True)
    return set(versions.values_list("document_id", flat=True))


class Piece(models.Model):
    """A piece of the original bytes, of at most one megabyte."""

    pk = models.CompositePrimaryKey("version_id", "number")
    version = models.ForeignKey(Version, models.DO_NOTHING, related_name="pieces", db_constraint=False)
    number = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        db_table = "document_piece"


class ExtractedText(models.Model):
    """The text of a version, with the offsets of its pages and headings."""

    version = models.OneToOneField(
        Version, models.DO_NOTHING, primary_key=True, related_name="extracted", db_constraint=False
    )
    text = models.TextField()
    # Offsets of pages, in characters; null for formats without pages.
    page_starts = models.JSONField(null=True)
    # [offset, [heading, heading below it, …]] in the order of the text.
    headings = models.JSONField(default=list)
    # The printed label of each page; null if they are the numbers of the pages.
    page_labels = models.JSONField(null=True)
    # The scanned pages by their progress; see `ingest.scanned_pages`.
    scanned_pages = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))

    class Meta:
        db_table = "document_text"


class Chunk(models.Model):
    """A passage of a version, the unit that searches return."""

    version = models.ForeignKey(Version, models.DO_NOTHING, related_name="chunks", db_constraint=False)
    collection = models.ForeignKey(Collection, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False)
    number = models.PositiveIntegerField()
    text = models.TextField()
    heading_path = ArrayField(models.TextField(), default=list)
    page = models.PositiveIntegerField(null=True)
    page_end = models.PositiveIntegerField(null=True)
    # The labels printed on these pages, such as "iv" or "A-1"; null if they are the numbers of the pages.
    page_label = models.TextField(null=True)
    page_label_end = models.TextField(null=True)
    # Whether part of the text was read from a scan.
    is_ocr = models.BooleanField(default=False, db_default=False)
    char_start = models.PositiveIntegerField()
    char_end = models.PositiveIntegerField()

    class Meta:
        db_table = "chunk"
        constraints = [models.UniqueConstraint(fields=["version", "number"], name="chunk_number")]

    def table_header(self) -> str:
        """The header that the text repeats because the chunk continues a table (see `splitter.Passage`)."""
        return self.text[: len(self.text) - (self.char_end - self.char_start)]


class ChunkWords(models.Model):
    """The words of a chunk. They are separate from its text, so scoring thousands of chunks reads few pages."""

    chunk = models.OneToOneField(Chunk, models.DO_NOTHING, primary_key=True, related_name="words", db_constraint=False)
    version = models.ForeignKey(Version, models.DO_NOTHING, related_name="+", db_constraint=False)
    # Hashes of each word and its collection; one index serves all collections.
    terms = ArrayField(models.BigIntegerField())
    # The weight of each word: the saturated frequency of BM25.
    weights = SparseVectorField(dimensions=LEXICAL_DIMENSIONS)

    class Meta:
        db_table = "chunk_words"
        indexes = [GinIndex(fields=["terms"], name="chunk_words_terms")]


class ChunkVector(models.Model):
    """The vector of a chunk in a space. Rows are narrow, so a scan reads few pages."""

    pk = models.CompositePrimaryKey("chunk_id", "space_id")
    chunk = models.ForeignKey(Chunk, models.DO_NOTHING, related_name="+", db_constraint=False)
    space = models.ForeignKey(EmbeddingSpace, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False)
    collection = models.ForeignKey(Collection, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False)
    version = models.ForeignKey(Version, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False)
    dimensions = models.PositiveSmallIntegerField()
    embedding = HalfVectorField()

    class Meta:
        db_table = "chunk_vector"
        indexes = [
            models.Index(fields=["collection", "space"], name="chunk_vector_collection"),
            models.Index(fields=["version", "space"], name="chunk_vector_version"),
        ]


class TermCount(models.Model):
    """The number of searchable chunks of a collection that contain a word; term 0 counts all chunks."""

    pk = models.CompositePrimaryKey("collection_id", "term")
    collection = models.ForeignKey(Collection, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False)
    term = models.BigIntegerField()
    chunks = models.BigIntegerField()

    class Meta:
        db_table = "term_count"
