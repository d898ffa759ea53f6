"""Chunks and their search data. Written and read by SQL; deleted with their version (ON DELETE CASCADE)."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from pgvector.django import HalfVectorField, SparseVectorField

from .collections import Collection, EmbeddingSpace
from .documents import Version

# The dimension of a word is 28 bits of its hash.
LEXICAL_DIMENSIONS = 2**28


class Chunk(models.Model):
    """A passage of a version, the unit that searches return."""

    version = models.ForeignKey(Version, models.DO_NOTHING, related_name="chunks", db_constraint=False)
    collection = models.ForeignKey(Collection, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False)
    number = models.PositiveIntegerField()
    text = models.TextField()
    heading_path = ArrayField(models.TextField(), default=list)
    page = models.PositiveIntegerField(null=True)
    page_end = models.PositiveIntegerField(null=True)
    char_start = models.PositiveIntegerField()
    char_end = models.PositiveIntegerField()

    class Meta:
        db_table = "chunk"
        constraints = [models.UniqueConstraint(fields=["version", "number"], name="chunk_number")]


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
