"""In charge of the chunks of a version that have no vector in a space yet, and of storing their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from django.db import connection

from collections_app import provider_pauses
from collections_app.embed import EmbeddingRefused, EmbeddingUnavailable, embedder
from collections_app.models import EmbeddingSpace, Version
from collections_app.split import indexed_text

AT_ONCE = 256

MISSING = """
SELECT id, heading_path, text FROM chunk
WHERE version_id = %s AND NOT EXISTS (
    SELECT 1 FROM chunk_vector WHERE chunk_vector.chunk_id = chunk.id AND chunk_vector.space_id = %s
)
ORDER BY number LIMIT %s
"""
STORE = """
INSERT INTO chunk_vector (chunk_id, space_id, collection_id, version_id, dimensions, embedding)
SELECT chunk_id, %s, %s, %s, %s, vector::halfvec FROM unnest(%s::bigint[], %s::text[]) AS made (chunk_id, vector)
ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Vectors that are not stored yet."""

    space: EmbeddingSpace
    chunk_ids: tuple[int, ...]
    vectors: tuple[Sequence[float], ...]


def make(version: Version, space: EmbeddingSpace, within_s: float) -> Made | None:
    """Vectors of the next chunks that lack them; None when none does. Outside of any transaction: it calls others."""
    with connection.cursor() as cursor:
        cursor.execute(MISSING, [version.pk, space.pk, AT_ONCE])
        rows = cursor.fetchall()
    if not rows:
        return None
    texts = [indexed_text(headings, text) for _, headings, text in rows]
    return Made(space=space, chunk_ids=tuple([row[0] for row in rows]), vectors=_vectors(space, texts, within_s))


def _vectors(space: EmbeddingSpace, texts: list[str], within_s: float) -> tuple[Sequence[float], ...]:
    """A provider that failed is left alone for a while, whoever's document it is."""
    if wait_s := provider_pauses.left_s(space.pk):
        code, message = provider_pauses.reason(space.pk)
        raise EmbeddingUnavailable(message, code=code, retry_after_s=ceil(wait_s))
    try:
        found = embedder(space).embed_documents(texts, within_s=within_s)
    except (EmbeddingUnavailable, EmbeddingRefused) as error:
        if not error.is_of_the_texts:
            pause_s = provider_pauses.after_failure(space.pk, error.retry_after_s, (error.code, error.message))
            error.retry_after_s = ceil(pause_s)
        raise
    provider_pauses.went_well(space.pk)
    return tuple(found)


def lacks(version: Version, space_id: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(MISSING, [version.pk, space_id, 1])
        return cursor.fetchone() is not None


def store(version: Version, made: Made) -> None:
    # Half precision holds four digits; all that Python knows would be three times as long.
    written = ["[" + ",".join(map("{:.6g}".format, vector)) + "]" for vector in made.vectors]
    about: list[Any] = [made.space.pk, version.collection_id, version.pk, made.space.dimensions]
    with connection.cursor() as cursor:
        cursor.execute(STORE, [*about, list(made.chunk_ids), written])
