"""Loads content of a source as a document, like an upload that replaces the document."""

from accounts.models import User
from collections_app.ingest import loading
from collections_app.models import Document, Source
from collections_app.sources.errors import RefreshInterrupted
from system.errors import TooManyRequests


def find_document(source: Source, doc_id: str) -> Document | None:
    documents = Document.objects.filter(collection=source.collection_id, deleted_at__isnull=True, doc_id=doc_id)
    return documents.select_related("newest").first()


def load(source: Source, doc_id: str, data: bytes, *, format: str, filename: str = "") -> None:
    """Queues the content. A document that exists keeps its metadata."""
    document = find_document(source, doc_id)
    try:
        loading.load_document(
            # Only the id counts: the queue takes turns between owners, and this one may have been deleted.
            User(sys_id=source.sys_created_by or ""),
            source.collection,
            data=data,
            size=len(data),
            filename=filename,
            format=format,
            metadata=document.displayed_version().metadata if document else {},
            doc_id=doc_id,
            on_duplicate="replace",
            wants_to_wait=False,
        )
    except TooManyRequests:
        raise RefreshInterrupted from None
