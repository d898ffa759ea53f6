"""Document endpoints: list, upload, status, metadata, original file, reprocessing, retry, delete."""

import unicodedata
from collections.abc import Callable
from typing import Any

import django_filters
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from collections_app.documents import deletion, storage
from collections_app.http import load_requests, parameters, responses, serializers
from collections_app.http.api import base
from collections_app.http.api.serializers import DocumentSerializer, MetadataChangeSerializer
from collections_app.ingest import loading, worker
from collections_app.metadata.validation import iso_timestamp
from collections_app.models import Chunk, ChunkVector, Collection, Document, Version
from collections_app.models.collections import lookup_name
from collections_app.models.documents import VersionState, searched_document_ids
from system.errors import AccessDenied, BadRequest, Conflict, NotFound
from system.http import django_request, uploads
from system.openapi import describe

NO_DOCUMENT_MESSAGE = "The document does not exist."
PDF_TYPE = "application/pdf"


class DocumentFilters(django_filters.FilterSet):  # type: ignore[misc]  # has no types
    document_status = django_filters.ChoiceFilter(field_name="newest__state", choices=VersionState.choices)
    filename = django_filters.CharFilter(method="filter_by_filename")
    doc_id = django_filters.CharFilter(method="filter_by_doc_id")
    ordering = django_filters.OrderingFilter(
        fields={
            "id": "created_at",
            "updated_at": "updated_at",
            "doc_id": "doc_id",
            "newest__filename": "filename",
            "newest__size": "size",
        }
    )

    def filter_by_filename(self, documents: Any, name: str, value: str) -> Any:
        # Names are stored in NFC, but older ones may be in NFD.
        composed, decomposed = (unicodedata.normalize(form, value) for form in ("NFC", "NFD"))
        return documents.filter(Q(newest__filename__icontains=composed) | Q(newest__filename__icontains=decomposed))

    def filter_by_doc_id(self, documents: Any, name: str, value: str) -> Any:
        return documents.filter(doc_id=lookup_name(value))


class DocumentList(base.ManagementView, GenericAPIView[Document]):
    serializer_class = DocumentSerializer
    pagination_class = base.OffsetPagination
    filter_backends = (base.StrictFilterBackend,)
    filterset_class = DocumentFilters
    # While the purge runs, a document may exist without its versions.
    complete_documents = Document.objects.filter(deleted_at__isnull=True, newest__generation__gte=1)
    queryset = complete_documents.select_related("newest").order_by("id")
    body_limit = settings.COLLECTIONS["file_limit"] + uploads.FORM_OVERHEAD_BYTES

    @describe(
        "documents_list", "List documents", {200: DocumentSerializer(many=True)}, NotFound, BadRequest,
        parameters=serializers.PAGE_HEADERS, filters=True,
    )  # fmt: skip
    def get(self, request: Request, sys_id: str) -> Response:
        """Returns the documents of a collection, in any status."""
        collection = self.open_collection(sys_id, "read")
        page: Any = self.paginate_queryset(self.filter_queryset(self.get_queryset().filter(collection=collection)))
        searched_ids = searched_document_ids(page)
        return self.get_paginated_response(
            [document_body(collection, document, document.pk in searched_ids) for document in page]
        )

    @describe(
        "documents_load", "Load a document into a collection",
        dict.fromkeys((200, 201, 202), serializers.LoadResponseSerializer), NotFound, AccessDenied, Conflict,
        parameters=[serializers.LoadParameters.as_post_query_parameters()],
        request={"multipart/form-data": serializers.FileLoadSerializer},
    )  # fmt: skip
    def post(self, request: Request, sys_id: str) -> Response:
        collection = self.open_collection(sys_id, "write")
        with uploads.receive_upload(django_request(request), settings.COLLECTIONS["file_limit"]) as upload:
            values = parameters.parse_form(request, upload, load_requests.OPTION_NAMES)
            load_request = load_requests.from_upload(upload, load_requests.read_options(values))
            return responses.load_response(request, loading.load_document(self.caller(), collection, **load_request))


class DocumentDetail(base.ManagementView):
    @describe(
        "documents_read", "Read a document's status", {200: DocumentSerializer}, NotFound, parameters=[base.ETAG_HEADER]
    )
    def get(self, request: Request, sys_id: str, document: str) -> Response:
        collection = self.open_collection(sys_id, "read")
        return status_response(collection, find_document(collection, document))

    @describe(
        "documents_change", "Replace a document's metadata", {200: DocumentSerializer}, *base.CHANGE_ERRORS,
        parameters=[base.ETAG_HEADER, base.IF_MATCH_HEADER], request=MetadataChangeSerializer,
    )  # fmt: skip
    def patch(self, request: Request, sys_id: str, document: str) -> Response:
        collection = self.open_collection(sys_id, "write")
        change = MetadataChangeSerializer(data=parameters.json_body(request))
        change.is_valid(raise_exception=True)
        stored_document = find_document(collection, document)

        def check(version: Version) -> None:
            base.refuse_stale_etag(request, content_etag(version))

        return status_response(collection, replace_metadata(stored_document, change.validated_data["metadata"], check))

    @describe(
        "documents_delete", "Delete a document by its ID", {200: serializers.DeletedDocumentSerializer},
        *base.DELETE_ERRORS, parameters=[base.IF_MATCH_HEADER],
    )  # fmt: skip
    def delete(self, request: Request, sys_id: str, document: str) -> Response:
        collection = self.open_collection(sys_id, "write")
        doc_id = find_document(collection, document).doc_id

        def check(locked_document: Document) -> None:
            if locked_document.pk != document:
                raise NotFound(NO_DOCUMENT_MESSAGE)  # another document now has this doc_id
            base.refuse_stale_etag(request, content_etag(reread_newest_version(locked_document)))

        chunk_count = deletion.delete_document(collection, doc_id, check)
        return Response(responses.deleted_document_body(collection, doc_id, chunk_count))


class DocumentContent(base.ManagementView):
    """Returns the original file."""

    @describe(
        "documents_content", "Download a document", {(200, "application/octet-stream"): OpenApiTypes.BINARY}, NotFound
    )
    def get(self, request: Request, sys_id: str, document: str) -> HttpResponse:
        version = find_document(self.open_collection(sys_id, "read"), document).displayed_version()
        # Never with the file's own media type: an uploaded file must not run as a page of this service.
        return file_response(request, version, "application/octet-stream", version.filename or f"{document}.txt")


class ReprocessDocument(base.ManagementView):
    """Extracts, splits and embeds the stored file again, for example after a change to the collection's settings."""

    @describe(
        "documents_reload", "Reprocess a document", {202: serializers.LoadResponseSerializer}, NotFound, AccessDenied,
        request=None,
    )  # fmt: skip
    def post(self, request: Request, sys_id: str, document: str) -> Response:
        collection = self.open_collection(sys_id, "write")
        return responses.load_response(request, loading.reprocess(self.caller(), find_document(collection, document)))


class RetryDocument(base.ManagementView):
    """Extracts, splits and embeds a failed document again with current settings. For other documents, use `reload`.

    A damaged or password-protected file fails again. Load a repaired file with `doc_id` and `on_duplicate=replace`.
    """

    @describe(
        "documents_retry", "Retry a failed document", {202: DocumentSerializer}, NotFound, AccessDenied, Conflict,
        parameters=[base.ETAG_HEADER], request=None,
    )  # fmt: skip
    def post(self, request: Request, sys_id: str, document: str) -> Response:
        collection = self.open_collection(sys_id, "write")
        worker.retry_document(find_document(collection, document))
        return status_response(collection, find_document(collection, document), status=202)


def file_response(request: Request | HttpRequest, version: Version, media_type: str, filename: str) -> HttpResponse:
    """Returns the original file, which the browser opens only if it is a PDF file."""
    # Not streamed: the web server sends a complete response without a thread, but each slow client of a stream
    # would occupy one of the four threads of a process.
    content = b"" if request.method == "HEAD" else storage.read_content(version)
    if request.method != "HEAD" and len(content) < version.size:
        raise NotFound(NO_DOCUMENT_MESSAGE)
    disposition = content_disposition_header(as_attachment=media_type != PDF_TYPE, filename=filename)
    response = HttpResponse(content, content_type=media_type)
    response["Content-Length"] = str(version.size)
    response["Content-Disposition"] = disposition or "attachment"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


def find_document(collection: Collection, sys_id: str) -> Document:
    documents = Document.objects.select_related("newest").filter(collection=collection, deleted_at__isnull=True)
    document = documents.filter(pk=sys_id).first()
    if document is None or document.newest is None:
        raise NotFound(NO_DOCUMENT_MESSAGE)
    return document


def reread_newest_version(locked_document: Document) -> Version:
    """Reads the newest version in a separate query, because a join in the locking query may return an old version."""
    version = Version.objects.filter(pk__in=Document.objects.filter(pk=locked_document.pk).values("newest")).first()
    if version is None:
        raise NotFound(NO_DOCUMENT_MESSAGE)
    return version


def content_etag(version: Version) -> str:
    """Returns the ETag of the content and metadata. Processing the document does not change it."""
    return base.compute_etag([version.generation, version.metadata])


def replace_metadata(document: Document, metadata: dict[str, Any], check: Callable[[Version], None]) -> Document:
    """Replaces the metadata of both the searched version and the newest version of a document.

    `check` is called with the newest version under the lock, and may raise an error to prevent the change.
    """
    with transaction.atomic():
        documents = Document.objects.select_for_update(no_key=True)
        locked_document = documents.filter(pk=document.pk, deleted_at__isnull=True).first()
        if locked_document is None:
            raise NotFound(NO_DOCUMENT_MESSAGE)
        version = reread_newest_version(locked_document)
        check(version)
        locked_document.versions.filter(is_searched=True).update(metadata=metadata)
        locked_document.versions.filter(pk=version.pk).update(metadata=metadata)
        Document.objects.filter(pk=locked_document.pk).update(updated_at=timezone.now())
    return find_document(document.collection, document.pk)


def status_response(collection: Collection, document: Document, status: int = 200) -> Response:
    version = document.displayed_version()
    body = document_body(collection, document, bool(searched_document_ids([document])))
    body["progress"] = None
    if version.state == VersionState.EMBEDDING:
        embedded_count = ChunkVector.objects.filter(version=version, space=collection.space_id).count()
        body["progress"] = {"chunks": Chunk.objects.filter(version=version).count(), "embedded": embedded_count}
    return Response(body, status=status, headers={"ETag": content_etag(version)})


def document_body(collection: Collection, document: Document, is_searched: bool) -> dict[str, Any]:
    version = document.displayed_version()
    columns = ("warnings", "filename", "format", "size", "sha256", "metadata", "pages", "characters", "chunks_count")
    return {
        "sys_id": document.pk,
        "doc_id": document.doc_id,
        "collection_name": collection.name,
        "document_status": version.state,
        "is_searched": is_searched,
        "error": version.error or None,
        "error_code": version.error_code or None,
        **{name: getattr(version, name) for name in columns},
        "generation": version.generation,
        "attempt": version.attempt,
        "created_at": iso_timestamp(document.created_at),
        "updated_at": iso_timestamp(document.updated_at),
        "ready_at": iso_timestamp(version.ready_at) if version.ready_at else None,
    }
