"""Vectors are stored in binary form with half precision."""

from typing import Any

import numpy
import pytest

from collections_app.embed.request import MAX_DIMENSIONS
from collections_app.models import ChunkVector, EmbeddingSpace, Version
from collections_app.vectors import chunk_vectors
from tests.collections_app import vector_rows as rows

pytestmark = pytest.mark.django_db


def make_version(space: EmbeddingSpace, chunks: int) -> Version:
    """A version without vectors in this space."""
    return rows.make_version(rows.make_collection(space), "doc-1", chunks, space=rows.make_space("letters-b"))


def store_and_read(numbers: list[list[float]]) -> list[Any]:
    space = rows.make_space("letters-a", len(numbers[0]))
    version = make_version(space, len(numbers))
    missing_rows = chunk_vectors.chunks_to_embed([version.pk], space.pk, limit=len(numbers))
    for _ in range(2):  # the second call finds them stored
        chunk_vectors.store_vectors(chunk_vectors.VectorBatch(space=space, rows=missing_rows, vectors=numbers))
    vectors = ChunkVector.objects.filter(space=space).order_by("chunk_id")
    assert [row.chunk_id for row in vectors] == [row.chunk_id for row in missing_rows]
    assert {row.dimensions for row in vectors} == {len(numbers[0])}
    return [list(row.embedding) for row in vectors]


def test_numbers_are_rounded_to_half_precision(db: Any):
    values = [[1.0, -1.0, 0.1, 1 / 3, 0.999999, 6e-8, -1e-30, 0.0], [0.6, 0.8, 0.0, 0.0, 0.0, 0.0, 0.0, -0.0]]
    assert numpy.array_equal(
        numpy.array(store_and_read(values), dtype=numpy.float16), numpy.array(values, dtype=numpy.float16)
    )


def test_longest_vectors_can_be_stored(db: Any):
    values = (numpy.ones((3, MAX_DIMENSIONS)) / MAX_DIMENSIONS**0.5).tolist()
    assert [len(vector) for vector in store_and_read(values)] == [MAX_DIMENSIONS] * 3


def test_vectors_of_deleted_chunks_are_skipped(db: Any):
    space = rows.make_space("letters-a")
    version = make_version(space, 3)
    missing_rows = chunk_vectors.chunks_to_embed([version.pk], space.pk, limit=3)
    version.chunks.filter(number=1).delete()
    chunk_vectors.store_vectors(
        chunk_vectors.VectorBatch(
            space=space, rows=missing_rows, vectors=[rows.vector_of("a", chunk.text) for chunk in missing_rows]
        )
    )
    assert ChunkVector.objects.filter(space=space).count() == 2
