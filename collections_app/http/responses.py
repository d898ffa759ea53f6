"""JSON responses of the endpoints: loads, passages, collections and deletions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from collections_app.documents import counts, deletion
from collections_app.documents.counts import Counts
from collections_app.ingest.loading import LoadResult
from collections_app.metadata.validation import iso_timestamp
from collections_app.models import Collection, Version
from collections_app.models.documents import State
from collections_app.search.pipeline import Hit, SearchResult
from system.errors import Conflict, Invalid
from system.http import django_request
from system.http.error_responses import own_url

SEARCH_MODE = "X-Search-Mode"
DOCUMENTS = "/api/collections/{collection}/documents/{document}"


class ExtractionFailed(Invalid):
    """The document is kept, as `failed`; its id is told, because there is something to look at or delete."""

    code = "extraction_failed"

    def __init__(self, version: Version, doc_id: str) -> None:
        super().__init__(version.error or "No text can be taken from this document.", field="file")
        self.about = {"reason": version.error_code, "doc_id": doc_id}

    def as_item(self) -> dict[str, object]:
        return super().as_item() | self.about


class Superseded(Conflict):
    """Nothing was wrong with what was sent, and nothing of it is left to look at."""

    code = deletion.SUPERSEDED
    message = "The document was replaced or deleted during the request."


def status_url(request: Request, collection_id: str, document_id: str) -> str:
    return own_url(django_request(request), DOCUMENTS.format(collection=collection_id, document=document_id))


def loaded(request: Request, found: LoadResult) -> Response:
    """201 when it can be found (or has no text), 202 while it is worked on, 200 when it was there already; 409 when a
    newer content or a deletion was faster."""
    version = found.version
    if version.error_code == deletion.SUPERSEDED:
        raise Superseded
    if version.state == State.FAILED and not found.is_duplicate:
        raise ExtractionFailed(version, found.document.doc_id)
    is_done = version.state in (State.READY, State.EMPTY)
    body = {
        "status": "OK",
        "doc_id": found.document.doc_id,
        "collection_name": found.collection.name,
        "document_status": version.state,
        "duplicate": found.is_duplicate,
        "chunks_count": version.chunks_count,
        "pages": version.pages,
        "sha256": version.sha256,
        "metadata": version.metadata,
        "status_url": status_url(request, found.collection.pk, found.document.pk),
        "warnings": version.warnings,
    }
    return Response(body, status=200 if found.is_duplicate else 201 if is_done else 202)


def passages(found: SearchResult) -> Response:
    response = Response([passage(hit) for hit in found.hits])
    if found.is_without_vectors:
        response[SEARCH_MODE] = "text"
    return response


def passage(hit: Hit) -> dict[str, Any]:
    return {
        "id": hit.id,
        "type": "Document",
        "page_content": hit.page_content,
        "metadata": hit.metadata,
        "doc_id": hit.doc_id,
        "collection_name": hit.collection_name,
        "chunk_index": hit.chunk_index,
        "chunks_count": hit.chunks_count,
        "page": hit.page,
        "page_end": hit.page_end,
        "char_start": hit.char_start,
        "char_end": hit.char_end,
        "heading_path": hit.heading_path,
        "filename": hit.filename,
        "score": hit.score,
        "scores": hit.scores,
        "highlights": hit.highlights,
    }


def collections(found: Sequence[Collection]) -> list[dict[str, Any]]:
    counted = counts.of([each.pk for each in found])
    return [collection(each, counted[each.pk]) for each in found]


def collection(each: Collection, counted: Counts) -> dict[str, Any]:
    return {
        "collection_name": each.name,
        "documents_count": counted.documents,
        "chunks_count": counted.chunks,
        "documents_by_status": dict(counted.states),
        "embedding_model": each.space.model,
        "chunk_size": each.chunk_size,
        "chunk_overlap": each.chunk_overlap,
        "created_at": iso_timestamp(each.sys_created_at),
        "updated_at": iso_timestamp(each.sys_updated_at),
    }


def deleted_document(collection: Collection, doc_id: str, chunks: int) -> dict[str, Any]:
    about = {"collection_name": collection.name, "doc_id": doc_id}
    return {"status": "OK", **about, "deleted": True, "deleted_chunks": chunks}


def deleted_collection(collection: Collection, documents: int, chunks: int) -> dict[str, Any]:
    counted = {"deleted_documents": documents, "deleted_chunks": chunks}
    return {"status": "OK", "collection_name": collection.name, "deleted": True, **counted}
