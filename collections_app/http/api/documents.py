"""Document endpoints: list, upload, status, metadata, original file, reload, retry, delete."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import django_filters
from django.db import transaction
from django.db.models import Q
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from collections_app import access
from collections_app.documents import deletion
from collections_app.http import load_requests, openapi, parameters, responses, uploads
from collections_app.http.api import downloads
from collections_app.http.api.base import (
    ETAG,
    OF_CHANGES,
    Management,
    Pages,
    StrictFilters,
    described,
    etag,
    operation,
    refuse_stale,
)
from collections_app.http.api.serializers import Change, DocumentSerializer
from collections_app.ingest import loading, worker
from collections_app.metadata.validation import iso_timestamp
from collections_app.models import Chunk, ChunkVector, Collection, Document, Version
from collections_app.models.collections import known_form
from collections_app.models.documents import State
from system.errors import AccessDenied, Conflict, NotFound, PreconditionFailed
from system.http import django_request

MISSING = "The document does not exist."
LOADING = tuple(name for name in load_requests.PARAMETERS if name != "collection_name")


class Narrowing(django_filters.FilterSet):  # type: ignore[misc]  # has no types
    document_status = django_filters.ChoiceFilter(field_name="newest__state", choices=State.choices)
    filename = django_filters.CharFilter(method="of_filename")
    doc_id = django_filters.CharFilter(method="of_doc_id")
    ordering = django_filters.OrderingFilter(
        fields={
            "id": "created_at",
            "updated_at": "updated_at",
            "doc_id": "doc_id",
            "newest__filename": "filename",
            "newest__size": "size",
        }
    )

    def of_filename(self, found: Any, name: str, value: str) -> Any:
        # Names are stored composed; those from before November 2026 may not be.
        composed, decomposed = (unicodedata.normalize(form, value) for form in ("NFC", "NFD"))
        return found.filter(Q(newest__filename__icontains=composed) | Q(newest__filename__icontains=decomposed))

    def of_doc_id(self, found: Any, name: str, value: str) -> Any:
        return found.filter(doc_id=known_form(value))


class Documents(Management, GenericAPIView[Document]):
    """The documents of a collection, whatever has become of them."""

    serializer_class = DocumentSerializer
    pagination_class = Pages
    filter_backends = (StrictFilters,)
    filterset_class = Narrowing
    # What the purge is taking away just now may still be there without its versions.
    there = Document.objects.filter(deleted_at__isnull=True, newest__generation__gte=1)
    queryset = there.select_related("newest").order_by("id")
    body_limit = uploads.body_limit()

    @operation(
        "documents_list", "List documents", {200: DocumentSerializer(many=True)}, headers=openapi.PAGES, filters=True
    )
    def get(self, request: Request, sys_id: str) -> Response:
        collection = access.open_by_id(self.caller(), sys_id, "read")
        page: Any = self.paginate_queryset(self.filter_queryset(self.get_queryset().filter(collection=collection)))
        searched = Version.objects.filter(document__in=[each.pk for each in page], is_searched=True)
        ids = set(searched.values_list("document_id", flat=True))
        return self.get_paginated_response([shown(collection, each, each.pk in ids) for each in page])

    @operation(
        "documents_load",
        "Load a document into a collection",
        {status: described("Loaded") for status in (200, 201, 202)},
        AccessDenied,
        Conflict,
        in_query=openapi.LOAD_IN_QUERY,
        request={"multipart/form-data": openapi.FORM},
    )
    def post(self, request: Request, sys_id: str) -> Response:
        collection = access.open_by_id(self.caller(), sys_id, "write")
        with uploads.received(django_request(request)) as upload:
            given = parameters.parse_parameters(request.query_params, upload.fields, LOADING)
            return responses.loaded(
                request, loading.load_document(self.caller(), collection, load_requests.from_upload(upload, given))
            )


class OneDocument(Management):
    @operation("documents_read", "Read a document's status", {200: DocumentSerializer}, headers=ETAG)
    def get(self, request: Request, sys_id: str, document: str) -> Response:
        collection = access.open_by_id(self.caller(), sys_id, "read")
        return status_of(collection, find(collection, document))

    @operation(
        "documents_change",
        "Replace a document's metadata",
        {200: DocumentSerializer},
        *OF_CHANGES,
        headers=ETAG,
        request=Change,
    )
    def patch(self, request: Request, sys_id: str, document: str) -> Response:
        collection = access.open_by_id(self.caller(), sys_id, "write")
        given = Change(data=parameters.body_of(request))
        given.is_valid(raise_exception=True)
        found = find(collection, document)

        def check(sent: Version) -> None:
            refuse_stale(request, etag_of(sent))

        return status_of(collection, with_metadata(found, given.validated_data["metadata"], check))

    @operation(
        "documents_delete",
        "Delete a document by its id",
        {200: described("DeletedDocument")},
        AccessDenied,
        PreconditionFailed,
    )
    def delete(self, request: Request, sys_id: str, document: str) -> Response:
        collection = access.open_by_id(self.caller(), sys_id, "write")
        doc_id = find(collection, document).doc_id

        def check(locked: Document) -> None:
            if locked.pk != document:
                raise NotFound(MISSING)  # deleted meanwhile, and another one has come to be called so
            refuse_stale(request, etag_of(last_sent(locked)))

        chunks = deletion.delete_document(collection, doc_id, check)
        return Response(responses.deleted_document(collection, doc_id, chunks))


class Content(Management):
    """The bytes as they were sent."""

    @operation("documents_content", "Download a document", {(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, sys_id: str, document: str) -> HttpResponse:
        version = newest(find(access.open_by_id(self.caller(), sys_id, "read"), document))
        called = version.filename or f"{document}.txt"
        return downloads.download(version, called, has_body=request.method != "HEAD")


class Reload(Management):
    """Read, split and embed again what was sent, for instance after the collection's settings changed."""

    @operation("documents_reload", "Reprocess a document", {202: described("Loaded")}, AccessDenied, request=None)
    def post(self, request: Request, sys_id: str, document: str) -> Response:
        collection = access.open_by_id(self.caller(), sys_id, "write")
        found = loading.reprocess(self.caller(), collection, find(collection, document))
        return responses.loaded(request, found)


class Retry(Management):
    """Read, split and embed it again from its beginning, by the settings of now.

    What did not fail is loaded anew by `reload`. A file that is damaged or protected fails again: load a mended one
    with the same `doc_id` and `on_duplicate=replace`.
    """

    @operation(
        "documents_retry",
        "Try a failed document again",
        {202: DocumentSerializer},
        AccessDenied,
        Conflict,
        headers=ETAG,
        request=None,
    )
    def post(self, request: Request, sys_id: str, document: str) -> Response:
        collection = access.open_by_id(self.caller(), sys_id, "write")
        worker.retry(find(collection, document))
        return status_of(collection, find(collection, document), status=202)


def find(collection: Collection, sys_id: str) -> Document:
    there = Document.objects.select_related("newest").filter(collection=collection, deleted_at__isnull=True)
    found = there.filter(pk=sys_id).first()
    if found is None or found.newest is None:
        raise NotFound(MISSING)
    return found


def newest(document: Document) -> Version:
    assert document.newest is not None  # `find` saw to it
    return document.newest


def last_sent(locked: Document) -> Version:
    """Asked for after the lock was had: joined to the statement that waits for it, it would be that of before."""
    found = Version.objects.filter(pk__in=Document.objects.filter(pk=locked.pk).values("newest")).first()
    if found is None:
        raise NotFound(MISSING)
    return found


def etag_of(version: Version) -> str:
    """Of what callers send, the content and the metadata; how far its loading has come changes by itself."""
    return etag([version.generation, version.metadata])


def with_metadata(document: Document, metadata: dict[str, Any], check: Callable[[Version], None]) -> Document:
    """Both of what searches see and of what is being loaded in its place: neither brings the old ones back.

    `check` may refuse what was sent last: it is asked under the lock.
    """
    with transaction.atomic():
        there = Document.objects.select_for_update(no_key=True)
        locked = there.filter(pk=document.pk, deleted_at__isnull=True).first()
        if locked is None:
            raise NotFound(MISSING)
        sent = last_sent(locked)
        check(sent)
        locked.versions.filter(is_searched=True).update(metadata=metadata)
        locked.versions.filter(pk=sent.pk).update(metadata=metadata)
        Document.objects.filter(pk=locked.pk).update(updated_at=timezone.now())
    return find(document.collection, document.pk)


def status_of(collection: Collection, document: Document, status: int = 200) -> Response:
    is_searched = Version.objects.filter(document=document, is_searched=True).exists()
    body = shown(collection, document, is_searched) | {"progress": progress(collection, newest(document))}
    return Response(body, status=status, headers={"ETag": etag_of(newest(document))})


def progress(collection: Collection, version: Version) -> dict[str, int] | None:
    """How many of its passages have their vector, while that is being worked on."""
    if version.state != State.EMBEDDING:
        return None
    embedded = ChunkVector.objects.filter(version=version, space=collection.space_id).count()
    return {"chunks": Chunk.objects.filter(version=version).count(), "embedded": embedded}


def shown(collection: Collection, document: Document, is_searched: bool) -> dict[str, Any]:
    version = newest(document)
    same = ("warnings", "filename", "format", "size", "sha256", "metadata", "pages", "characters")
    return {
        "sys_id": document.pk,
        "doc_id": document.doc_id,
        "collection_name": collection.name,
        "document_status": version.state,
        "is_searched": is_searched,
        "error": version.error or None,
        "error_code": version.error_code or None,
        **{name: getattr(version, name) for name in same},
        "chunks_count": version.chunks_count,
        "generation": version.generation,
        "attempt": version.attempt,
        "created_at": iso_timestamp(document.created_at),
        "updated_at": iso_timestamp(document.updated_at),
        "ready_at": iso_timestamp(version.ready_at) if version.ready_at else None,
    }
