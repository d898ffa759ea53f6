"""Chunks and what they are found by. Written and read by SQL; rows go with their version (ON DELETE CASCADE)."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from pgvector.django import HalfVectorField, SparseVectorField

from .collections import Collection, EmbeddingSpace
from .documents import Version

# Words lie at 28 bits of their hash.
LEXICAL_DIMENSIONS = 2**28


class Chunk(models.Model):
    """A passage of a version: what a search answers with."""

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
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["version", "number"], name="chunk_number")
        ]


class ChunkWords(models.Model):
    """The words of a chunk; apart from its text, so that scoring thousands reads few pages."""

    chunk = models.OneToOneField(Chunk, models.DO_NOTHING, primary_key=True, related_name="words", db_constraint=False)
    version = models.ForeignKey(Version, models.DO_NOTHING, related_name="+", db_constraint=False)
    # Hashes of its words together with its collection: so one index serves each collection as if it were its own.
    terms = ArrayField(models.BigIntegerField())
    # How much each word says about it: the saturated frequency of BM25.
    weights = SparseVectorField(dimensions=LEXICAL_DIMENSIONS)

    class Meta:
        db_table = "chunk_words"
        indexes: ClassVar[list[models.Index]] = [GinIndex(fields=["terms"], name="chunk_words_terms")]


class ChunkVector(models.Model):
    """A chunk's place in a space; narrow, so that a scan of many reads few pages."""

    pk = models.CompositePrimaryKey("chunk_id", "space_id")
    chunk = models.ForeignKey(Chunk, models.DO_NOTHING, related_name="+", db_constraint=False)
    space = models.ForeignKey(EmbeddingSpace, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False)
    collection = models.ForeignKey(Collection, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False)
    version = models.ForeignKey(Version, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False)
    dimensions = models.PositiveSmallIntegerField()
    embedding = HalfVectorField()

    class Meta:
        db_table = "chunk_vector"
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["collection", "space"], name="chunk_vector_collection"),
            models.Index(fields=["version", "space"], name="chunk_vector_version"),
        ]


class TermCount(models.Model):
    """In how many searched chunks of a collection a word stands; term 0 counts the chunks themselves."""

    pk = models.CompositePrimaryKey("collection_id", "term")
    collection = models.ForeignKey(Collection, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False)
    term = models.BigIntegerField()
    chunks = models.BigIntegerField()

    class Meta:
        db_table = "term_count"
