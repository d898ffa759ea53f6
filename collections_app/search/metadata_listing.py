"""Lists whole documents by their metadata, page by page."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from collections_app.metadata.filter import Filter
from collections_app.metadata.validation import iso_timestamp
from collections_app.models import Collection
from system.errors import Unavailable
from system.plain_sql import fetch_rows

DEFAULT_LIMIT = 20
MAX_DOCUMENTS = 200
MAX_OFFSET = 1_000_000
# A page ends before the document that would exceed this size, but contains at least one.
MAX_CHARACTERS = 4_000_000
# Serializing a longer document takes ten times its length in memory, so a process handles one at a time.
LONG_RESPONSE_SLOT = threading.BoundedSemaphore(1)

# In one statement, a document that is replaced concurrently appears only once.
LISTING_SQL = """
    WITH matching AS MATERIALIZED (
        SELECT version.id, version.document_id, version.characters
        FROM document_version version
        WHERE version.collection_id = %s AND version.is_searched AND ({condition})
    ), page AS (
        SELECT id, document_id, characters, sum(characters) OVER (ORDER BY document_id) AS so_far
        FROM (SELECT * FROM matching ORDER BY document_id LIMIT {limit} OFFSET {offset}) cut
    )
    SELECT (SELECT count(*) FROM matching), document.doc_id,
        CASE WHEN {any_length} OR page.characters <= {max_characters} THEN extracted.text END,
        version.metadata::text, version.filename, version.chunks_count, document.created_at, document.updated_at,
        page.characters
    FROM (SELECT 1) always
    LEFT JOIN page ON so_far <= {max_characters} OR so_far = characters
    LEFT JOIN document_version version ON version.id = page.id
    LEFT JOIN document ON document.id = page.document_id
    LEFT JOIN document_text extracted ON extracted.version_id = page.id
    ORDER BY page.document_id
"""


@dataclass(frozen=True, slots=True)
class ContentPage:
    total: int
    documents: list[dict[str, Any]]
    next_offset: int | None


@contextmanager
def matching_documents(collection: Collection, filter: Filter, *, limit: int, offset: int) -> Iterator[ContentPage]:
    """Yields a page of documents in order of creation. Per process, one caller at a time can hold a long document."""
    condition, values = filter.sql("version.metadata")
    parts = {"condition": condition, "limit": limit, "offset": offset, "max_characters": MAX_CHARACTERS}
    parameters = [collection.pk, *values]
    rows = fetch_rows(LISTING_SQL.format(**parts, any_length=False), parameters)
    if not any(characters is not None and characters > MAX_CHARACTERS for *_, characters in rows):
        yield _content_page(collection, rows, offset)
        return
    if not LONG_RESPONSE_SLOT.acquire(blocking=False):
        raise Unavailable("Another long document is being returned. Try again shortly.")
    try:
        yield _content_page(collection, fetch_rows(LISTING_SQL.format(**parts, any_length=True), parameters), offset)
    finally:
        LONG_RESPONSE_SLOT.release()


def _content_page(collection: Collection, rows: list[tuple[Any, ...]], offset: int) -> ContentPage:
    documents = [document_body(collection, row[1:-1]) for row in rows if row[1] is not None]
    total, end = rows[0][0], offset + len(documents)
    return ContentPage(total, documents, end if documents and end < total else None)


def document_body(collection: Collection, row: tuple[Any, ...]) -> dict[str, Any]:
    doc_id, text, metadata, filename, chunks, created_at, updated_at = row
    return {
        "doc_id": doc_id,
        "collection_name": collection.name,
        "page_content": text or "",
        "metadata": json.loads(metadata),
        "filename": filename,
        "chunks_count": chunks,
        "created_at": iso_timestamp(created_at),
        "updated_at": iso_timestamp(updated_at),
    }
