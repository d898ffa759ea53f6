"""Finds chunks that lack a vector in a space, and stores vectors.

Each lookup starts after the last chunk with a stored vector (`Version.embedded_to`), because it would otherwise scan
all earlier chunks. This is only an optimization: before a version is published, all its chunks are checked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pgvector import HalfVector
from pgvector.psycopg.halfvec import register_halfvec_info
from psycopg.types import TypeInfo

from collections_app.chunk.splitter import indexed_text
from collections_app.embed import Embedder, is_slow
from collections_app.models import EmbeddingSpace, Version
from system.plain_sql import fetch_rows, server_binding_cursor

# Chunks embedded in one batch. A batch of long passages takes a slow model ten seconds.
CHUNK_BATCH_SIZE = 256
SLOW_BATCH_SIZE = 32

MISSING_SQL = """
    SELECT chunk.version_id, chunk.number, chunk.id, chunk.heading_path, chunk.text FROM chunk
    WHERE chunk.version_id = ANY(%s) AND (chunk.version_id, chunk.number) > (%s, %s) AND NOT EXISTS (
        SELECT 1 FROM chunk_vector WHERE chunk_vector.chunk_id = chunk.id AND chunk_vector.space_id = %s
    )
    ORDER BY chunk.version_id, chunk.number LIMIT %s
"""
# Stores only vectors of existing chunks, because documents can be deleted while the provider works. In a fixed order,
# so that concurrent writers do not deadlock.
STORE_VECTORS_SQL = """
    INSERT INTO chunk_vector (chunk_id, space_id, collection_id, version_id, dimensions, embedding)
    SELECT chunk.id, %s, chunk.collection_id, chunk.version_id, %s, batch.vector
    FROM unnest(%b::bigint[], %b::halfvec[]) AS batch (chunk_id, vector) JOIN chunk ON chunk.id = batch.chunk_id
    ORDER BY chunk.id FOR KEY SHARE OF chunk
    ON CONFLICT DO NOTHING
"""
START_POSITION = (0, -1)  # a version id and a chunk number


class ChunkWithoutVector(NamedTuple):
    version_id: int
    number: int
    chunk_id: int
    heading_path: list[str]
    text: str

    @property
    def indexed_text(self) -> str:
        return indexed_text(self.heading_path, self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorBatch:
    space: EmbeddingSpace
    rows: Sequence[ChunkWithoutVector]
    vectors: list[list[float]]

    @property
    def last_position(self) -> tuple[int, int]:
        """The version and number of the last chunk; the next batch starts after it."""
        return self.rows[-1].version_id, self.rows[-1].number


def embed_next_batch(version: Version, space: EmbeddingSpace, timeout_s: float) -> VectorBatch | None:
    """Embeds the next chunks without a vector, or returns None. It calls a provider: use it outside transactions."""
    last_position = (version.pk, version.embedded_to.get(str(space.pk), -1))
    rows = chunks_to_embed([version.pk], space.pk, limit=batch_size(space), after=last_position)
    if not rows:
        return None
    vectors = Embedder(space).embed_documents([row.indexed_text for row in rows], timeout_s=timeout_s)
    return VectorBatch(space=space, rows=rows, vectors=vectors)


def batch_size(space: EmbeddingSpace) -> int:
    return min(SLOW_BATCH_SIZE, CHUNK_BATCH_SIZE) if is_slow(space) else CHUNK_BATCH_SIZE


def chunks_to_embed(
    version_ids: Sequence[int], space_id: int, *, limit: int, after: tuple[int, int] = START_POSITION
) -> list[ChunkWithoutVector]:
    """Returns the next chunks of these versions after position `after` that have no vector in the space."""
    return [ChunkWithoutVector(*row) for row in fetch_rows(MISSING_SQL, [list(version_ids), *after, space_id, limit])]


def store_vectors(batch: VectorBatch) -> None:
    """Stores vectors in binary form, because text takes five times as long."""
    with server_binding_cursor() as cursor:
        halfvec = TypeInfo.fetch(cursor.connection, "halfvec")
        assert halfvec is not None  # the extension is checked at each start
        register_halfvec_info(cursor, halfvec)  # type: ignore[arg-type]  # any object with adapters
        chunk_ids = [row.chunk_id for row in batch.rows]
        cursor.execute(
            STORE_VECTORS_SQL, [batch.space.pk, batch.space.dimensions, chunk_ids, list(map(HalfVector, batch.vectors))]
        )
