"""Helpers that load and process documents, and read the stored rows."""

from collections.abc import Iterable
from typing import Any

from django.db import connection
from django.db.models.functions import Now

from collections_app.documents import storage
from collections_app.documents.storage import StoreResult
from collections_app.ingest import worker
from collections_app.models import Collection, Version
from collections_app.queue import leases

SENTENCE_TEMPLATE = "Tray {0} of the printer in room {1} takes {2} sheets of paper. "


def sample_text(sentence_count: int, start: int = 0) -> str:
    """This many different sentences, in paragraphs of five."""
    sentences = [
        SENTENCE_TEMPLATE.format(number, number * 7 % 101, number * 13 % 997)
        for number in range(start, start + sentence_count)
    ]
    return "\n\n".join("".join(sentences[offset : offset + 5]) for offset in range(0, sentence_count, 5))


def store_document(collection: Collection, data: bytes | Iterable[bytes] = b"One text.", **options: Any) -> StoreResult:
    columns: dict[str, Any] = {
        "filename": "a.txt", "format": "text", "metadata": {}, "doc_id": None, "on_duplicate": "skip",
        "user_id": "owner", "takes_lease": False, **options,
    }  # fmt: skip
    return storage.store_document(collection=collection, data=data, **columns)


def process_queue(max_leases: int = 1000) -> int:
    """Processes documents like a worker until nothing is due; returns the number of leases."""
    owner, lease_count = "", 0
    while lease_count < max_leases and (lease := leases.take_next_lease(owner)):
        owner, lease_count = lease.owner, lease_count + 1
        worker.process_version(lease.version_id, lease.token, deadline=float("inf"))
    return lease_count


def expire_leases() -> None:
    Version.objects.exclude(lease_until=None).update(lease_until=Now())


def end_pauses() -> None:
    Version.objects.update(next_at=Now())


def fetch_rows(query: str, *parameters: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return cursor.fetchall()


def chunk_rows(version: Version) -> list[Any]:
    """The stored chunks without their ids, so that two loads can be compared."""
    return fetch_rows(
        """
        SELECT number, text, heading_path, page, page_end, char_start, char_end, cardinality(terms), weights::text,
            (SELECT array_agg(dimensions || ' ' || embedding::text) FROM chunk_vector WHERE chunk_id = chunk.id)
        FROM chunk LEFT JOIN chunk_words ON chunk_id = chunk.id WHERE chunk.version_id = %s ORDER BY number
        """,
        version.pk,
    )


def wrong_term_counts(collection: Collection) -> list[Any]:
    """The term counts that do not match the searchable chunks."""
    return fetch_rows(
        """
        SELECT term, counted.chunks, found.chunks
        FROM (SELECT term, chunks FROM term_count WHERE collection_id = %s) AS counted
        FULL JOIN (
            SELECT term, count(*) AS chunks
            FROM document_version v JOIN chunk_words w ON w.version_id = v.id, unnest(terms) term
            WHERE v.collection_id = %s AND v.is_searched GROUP BY term
            UNION ALL
            SELECT 0, count(*) FROM document_version v JOIN chunk c ON c.version_id = v.id
            WHERE v.collection_id = %s AND v.is_searched HAVING count(*) > 0
            UNION ALL
            SELECT ('x' || left(md5(v.collection_id || ':language ' || v.text_configuration), 16))::bit(64)::bigint,
                count(*)
            FROM document_version v JOIN chunk c ON c.version_id = v.id
            WHERE v.collection_id = %s AND v.is_searched GROUP BY v.collection_id, v.text_configuration
        ) AS found USING (term)
        WHERE counted.chunks IS DISTINCT FROM found.chunks
        """,
        *[collection.pk] * 4,
    )


DOCUMENT_TABLES = (
    "document",
    "document_version",
    "document_piece",
    "document_text",
    "chunk",
    "chunk_words",
    "chunk_vector",
)


def row_counts() -> dict[str, int]:
    """The number of rows in each table of documents."""
    return {table: fetch_rows(f"SELECT count(*) FROM {table}")[0][0] for table in DOCUMENT_TABLES}
