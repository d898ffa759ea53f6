"""Vectors are stored in binary form with half precision."""

from typing import Any

import numpy
import pytest

from collections_app.embed.request import MAX_DIMENSIONS
from collections_app.models import ChunkVector, EmbeddingSpace, Version
from collections_app.vectors import chunk_vectors
from tests.collections_app import vector_rows

pytestmark = pytest.mark.django_db


def make_version(space: EmbeddingSpace, chunk_count: int) -> Version:
    """A version without vectors in this space."""
    return vector_rows.make_version(
        vector_rows.make_collection(space), "doc-1", chunk_count, space=vector_rows.make_space("letters-b")
    )


def store_and_read(vectors: list[list[float]]) -> list[Any]:
    space = vector_rows.make_space("letters-a", len(vectors[0]))
    version = make_version(space, len(vectors))
    missing_rows = chunk_vectors.chunks_to_embed([version.pk], space.pk, limit=len(vectors))
    for _ in range(2):  # the second call finds them stored
        chunk_vectors.store_vectors(chunk_vectors.VectorBatch(space=space, rows=missing_rows, vectors=vectors))
    stored_rows = ChunkVector.objects.filter(space=space).order_by("chunk_id")
    assert [row.chunk_id for row in stored_rows] == [row.chunk_id for row in missing_rows]
    assert {row.dimensions for row in stored_rows} == {len(vectors[0])}
    return [list(row.embedding) for row in stored_rows]


def test_numbers_are_rounded_to_half_precision(db: Any):
    vectors = [[1.0, -1.0, 0.1, 1 / 3, 0.999999, 6e-8, -1e-30, 0.0], [0.6, 0.8, 0.0, 0.0, 0.0, 0.0, 0.0, -0.0]]
    assert numpy.array_equal(
        numpy.array(store_and_read(vectors), dtype=numpy.float16), numpy.array(vectors, dtype=numpy.float16)
    )


def test_longest_vectors_can_be_stored(db: Any):
    vectors = (numpy.ones((3, MAX_DIMENSIONS)) / MAX_DIMENSIONS**0.5).tolist()
    assert [len(stored_vector) for stored_vector in store_and_read(vectors)] == [MAX_DIMENSIONS] * 3


def test_vectors_of_deleted_chunks_are_skipped(db: Any):
    space = vector_rows.make_space("letters-a")
    version = make_version(space, 3)
    missing_rows = chunk_vectors.chunks_to_embed([version.pk], space.pk, limit=3)
    version.chunks.filter(number=1).delete()
    chunk_vectors.store_vectors(
        chunk_vectors.VectorBatch(
            space=space, rows=missing_rows, vectors=[vector_rows.vector_of("a", chunk.text) for chunk in missing_rows]
        )
    )
    assert ChunkVector.objects.filter(space=space).count() == 2
