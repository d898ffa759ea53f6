"""JSON responses of the endpoints: loads, passages, collections and deletions."""

from collections.abc import Sequence
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from collections_app.documents import counts, deletion
from collections_app.documents.counts import DocumentCounts
from collections_app.documents.storage import StoreResult
from collections_app.http.serializers import PassageSerializer
from collections_app.metadata.validation import iso_timestamp
from collections_app.models import Collection, Version
from collections_app.models.documents import VersionState
from collections_app.search.passages import Hit
from collections_app.search.pipeline import SearchResult
from collections_app.vectors import reembedding
from system.errors import Conflict, InvalidInput
from system.http import django_request
from system.http.error_responses import own_url

SEARCH_MODE_HEADER = "X-Search-Mode"
RERANK_HEADER = "X-Rerank"
# `type` is the same for all passages.
HIT_FIELDS = tuple(name for name in PassageSerializer().get_fields() if name not in ("id", "type"))
DOCUMENT_PATH = "/api/collections/{collection}/documents/{document}"


class ExtractionFailed(InvalidInput):
    """The document is stored as `failed`. The response contains its `doc_id`, to inspect or delete it."""

    code = "extraction_failed"

    def __init__(self, version: Version, doc_id: str) -> None:
        super().__init__(version.error or "No text can be extracted from this document.", field="file")
        self.details = {"reason": version.error_code, "doc_id": doc_id}

    def as_item(self) -> dict[str, object]:
        return super().as_item() | self.details


class VersionSuperseded(Conflict):
    """The loaded version was replaced, or its document deleted, before the response."""

    code = deletion.SUPERSEDED_CODE
    message = "The document was replaced or deleted during the request."


def load_response(request: Request, result: StoreResult) -> Response:
    """Returns 201 if the document is searchable or has no text, 202 while it is being processed, and 200 if it already
    existed. Raises a 409 error if it was replaced or deleted in the meantime."""
    document, version = result.document, result.version
    if version.error_code == deletion.SUPERSEDED_CODE:
        raise VersionSuperseded
    if version.state == VersionState.FAILED and not result.is_duplicate:
        raise ExtractionFailed(version, document.doc_id)
    is_done = version.state in (VersionState.READY, VersionState.EMPTY)
    path = DOCUMENT_PATH.format(collection=document.collection_id, document=document.pk)
    body = {
        "status": "OK",
        "doc_id": document.doc_id,
        "collection_name": document.collection.name,
        "document_status": version.state,
        "duplicate": result.is_duplicate,
        "chunks_count": version.chunks_count,
        "pages": version.pages,
        "sha256": version.sha256,
        "metadata": version.metadata,
        "status_url": own_url(django_request(request), path),
        "warnings": version.warnings,
    }
    return Response(body, status=200 if result.is_duplicate else 201 if is_done else 202)


def passages_response(results: Sequence[SearchResult], *, is_list: bool) -> Response:
    bodies = [list(map(passage_body, result.hits)) for result in results]
    response = Response(bodies if is_list else bodies[0])
    if any(result.is_without_vectors for result in results):
        response[SEARCH_MODE_HEADER] = "text"
    if any(result.is_without_reranking for result in results):
        response[RERANK_HEADER] = "unavailable"
    return response


def passage_body(hit: Hit) -> dict[str, Any]:
    return {"id": hit.id, "type": "Document"} | {name: getattr(hit, name) for name in HIT_FIELDS}


def collection_bodies(collections: Sequence[Collection]) -> list[dict[str, Any]]:
    counts_by_id = counts.count_by_collection([collection.pk for collection in collections])
    vector_counts = reembedding.count_new_vectors(collections)
    return [
        _collection_body(collection, counts_by_id[collection.pk], vector_counts.get(collection.pk, 0))
        for collection in collections
    ]


def _collection_body(collection: Collection, counts: DocumentCounts, new_vector_count: int) -> dict[str, Any]:
    return {
        "collection_name": collection.name,
        "documents_count": counts.document_count,
        "chunks_count": counts.chunk_count,
        "documents_by_status": dict(counts.state_counts),
        "embedding_model": collection.space.model,
        "embedding_progress": reembedding.embedding_progress(collection, new_vector_count, counts.chunk_count),
        "chunk_size": collection.chunk_size,
        "chunk_overlap": collection.chunk_overlap,
        "created_at": iso_timestamp(collection.sys_created_at),
        "updated_at": iso_timestamp(collection.sys_updated_at),
    }


def deleted_document_body(collection: Collection, doc_id: str, chunk_count: int) -> dict[str, Any]:
    names = {"collection_name": collection.name, "doc_id": doc_id}
    return {"status": "OK", **names, "deleted": True, "deleted_chunks": chunk_count}


def deleted_collection_body(collection: Collection, document_count: int, chunk_count: int) -> dict[str, Any]:
    deleted = {"deleted": True, "deleted_documents": document_count, "deleted_chunks": chunk_count}
    return {"status": "OK", "collection_name": collection.name, **deleted}
