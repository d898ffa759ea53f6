"""Stored vectors: binary, with the accuracy of half precision."""

from typing import Any

import numpy
import pytest

from collections_app.embed.request import MAX_DIMENSIONS
from collections_app.models import ChunkVector, EmbeddingSpace, Version
from collections_app.vectors import chunk_vectors
from tests.collections_app import vector_rows as rows

pytestmark = pytest.mark.django_db


def version_in(space: EmbeddingSpace, chunks: int) -> Version:
    """Without vectors in this space."""
    return rows.make_version(rows.make_collection(space), "doc-1", chunks, space=rows.make_space("letters-b"))


def stored(found: list[list[float]]) -> list[Any]:
    space = rows.make_space("letters-a", len(found[0]))
    version = version_in(space, len(found))
    lacking = chunk_vectors.find_missing([version.pk], space.pk, limit=len(found))
    for _ in range(2):  # the second time they are there
        chunk_vectors.store_vectors(chunk_vectors.VectorBatch(space=space, rows=lacking, vectors=found))
    vectors = ChunkVector.objects.filter(space=space).order_by("chunk_id")
    assert [row.chunk_id for row in vectors] == [row.chunk_id for row in lacking]
    assert {row.dimensions for row in vectors} == {len(found[0])}
    return [list(row.embedding) for row in vectors]


def test_numbers_are_rounded_to_the_nearest(db: Any):
    values = [[1.0, -1.0, 0.1, 1 / 3, 0.999999, 6e-8, -1e-30, 0.0], [0.6, 0.8, 0.0, 0.0, 0.0, 0.0, 0.0, -0.0]]
    assert numpy.array_equal(numpy.array(stored(values), dtype=numpy.float16), numpy.array(values, dtype=numpy.float16))


def test_longest_fit(db: Any):
    values = (numpy.ones((3, MAX_DIMENSIONS)) / MAX_DIMENSIONS**0.5).tolist()
    assert [len(vector) for vector in stored(values)] == [MAX_DIMENSIONS] * 3


def test_chunks_that_are_gone_are_left_out(db: Any):
    space = rows.make_space("letters-a")
    version = version_in(space, 3)
    lacking = chunk_vectors.find_missing([version.pk], space.pk, limit=3)
    version.chunks.filter(number=1).delete()
    chunk_vectors.store_vectors(
        chunk_vectors.VectorBatch(
            space=space, rows=lacking, vectors=[rows.vector("a", chunk.text) for chunk in lacking]
        )
    )
    assert ChunkVector.objects.filter(space=space).count() == 2
