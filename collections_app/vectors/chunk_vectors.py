"""Finds chunks that lack a vector in a space, and stores vectors.

The search for them starts after the last stored one (`Version.embedded_to`), because otherwise each batch would scan
all earlier chunks. This is only an optimisation: before a version is published, `lacks` checks all chunks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pgvector import HalfVector
from pgvector.psycopg.halfvec import register_halfvec_info
from psycopg.types import TypeInfo

from collections_app.chunk.splitter import indexed_text
from collections_app.embed import embedder
from collections_app.models import EmbeddingSpace, Version
from system.database_cursor import bound_cursor
from system.plain_sql import fetch_rows

# Chunks embedded in one batch.
AT_ONCE = 256

LACKING = """
    SELECT chunk.version_id, chunk.number, chunk.id, chunk.heading_path, chunk.text FROM chunk
    WHERE chunk.version_id = ANY(%s) AND (chunk.version_id, chunk.number) > (%s, %s) AND NOT EXISTS (
        SELECT 1 FROM chunk_vector WHERE chunk_vector.chunk_id = chunk.id AND chunk_vector.space_id = %s
    )
    ORDER BY chunk.version_id, chunk.number LIMIT %s
"""
# Only for chunks that still exist, because their documents can be deleted while the provider works. In a fixed order,
# so that concurrent writers do not deadlock.
STORE = """
    INSERT INTO chunk_vector (chunk_id, space_id, collection_id, version_id, dimensions, embedding)
    SELECT chunk.id, %s, chunk.collection_id, chunk.version_id, %s, made.vector
    FROM unnest(%b::bigint[], %b::halfvec[]) AS made (chunk_id, vector) JOIN chunk ON chunk.id = made.chunk_id
    ORDER BY chunk.id FOR KEY SHARE OF chunk
    ON CONFLICT DO NOTHING
"""
BEFORE_ALL = (0, -1)  # a version id and a chunk number


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
class NewVectors:
    space: EmbeddingSpace
    rows: Sequence[ChunkWithoutVector]
    vectors: list[list[float]]

    @property
    def last(self) -> tuple[int, int]:
        """The version and number of the last chunk; the next batch starts after it."""
        return self.rows[-1].version_id, self.rows[-1].number


def embed_next(version: Version, space: EmbeddingSpace, within_s: float) -> NewVectors | None:
    """Vectors for the next chunks without one, or None. Called outside transactions, because it calls a provider."""
    rows = lacking([version.pk], space.pk, most=AT_ONCE, after=(version.pk, embedded_to(version, space)))
    if not rows:
        return None
    vectors = embedder(space).embed_documents([row.indexed_text for row in rows], within_s=within_s)
    return NewVectors(space=space, rows=rows, vectors=vectors)


def embedded_to(version: Version, space: EmbeddingSpace) -> int:
    """The number of the last chunk whose vector was stored, or -1."""
    number: int = version.embedded_to.get(str(space.pk), -1)
    return number


def embedded_to_with(version: Version, made: NewVectors) -> dict[str, int]:
    """The same for all spaces, after these vectors have been stored."""
    return {**version.embedded_to, str(made.space.pk): made.last[1]}


def lacking(
    version_ids: Sequence[int], space_id: int, *, most: int, after: tuple[int, int] = BEFORE_ALL
) -> list[ChunkWithoutVector]:
    """The next chunks of these versions after that position without a vector in the space."""
    return [ChunkWithoutVector(*row) for row in fetch_rows(LACKING, [list(version_ids), *after, space_id, most])]


def lacks(version: Version, space_id: int) -> bool:
    return bool(lacking([version.pk], space_id, most=1))


def store(made: NewVectors) -> None:
    """Store vectors in binary form, because text takes five times as long."""
    with bound_cursor() as cursor:
        halfvec = TypeInfo.fetch(cursor.connection, "halfvec")
        assert halfvec is not None  # the extension is checked at each start
        register_halfvec_info(cursor, halfvec)  # type: ignore[arg-type]  # whatever has adapters
        chunk_ids = [row.chunk_id for row in made.rows]
        cursor.execute(STORE, [made.space.pk, made.space.dimensions, chunk_ids, list(map(HalfVector, made.vectors))])
