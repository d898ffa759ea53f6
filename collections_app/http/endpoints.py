"""The eight endpoints of document collections: load, search, list, delete.

Requests authenticate with an access key or a password, never with a session. Parameters are validated before any
collection is looked up, so the response to an invalid parameter does not reveal whether the collection exists.
"""

from typing import ClassVar

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from collections_app import access
from collections_app.documents import deletion
from collections_app.http import load_requests, parameters, responses, search_requests, serializers
from collections_app.http.parameters import RequestParameters
from collections_app.http.serializers import PAGE_HEADERS, LoadResponseSerializer, OneCollectionParameters
from collections_app.ingest import loading
from collections_app.models import Document
from collections_app.models.collections import lookup_name
from collections_app.search import metadata_listing
from collections_app.search.metadata_listing import DEFAULT_LIMIT, MAX_DOCUMENTS, MAX_OFFSET
from system.errors import AccessDenied, InvalidInput, NotFound
from system.http import django_request, uploads
from system.http.json_view import JsonView
from system.openapi import BODY_ERRORS, READ_ERRORS, WRITE_ERRORS, describe

DELETE_ERRORS = (*READ_ERRORS, AccessDenied)
READ_WITH_BODY_ERRORS = (*READ_ERRORS, *BODY_ERRORS)
LOAD_ERRORS = (*READ_WITH_BODY_ERRORS, *WRITE_ERRORS, InvalidInput)
LOAD_PARAMETERS = [OneCollectionParameters, serializers.LoadParameters.as_post_query_parameters()]
LOAD_RESPONSES = {
    200: OpenApiResponse(LoadResponseSerializer, "The document already exists."),
    201: OpenApiResponse(LoadResponseSerializer, "The document is searchable, or `empty` if it contains no text."),
    202: OpenApiResponse(LoadResponseSerializer, "The document is processed in the background. Poll `status_url`."),
}
PASSAGE_RESPONSES = {200: OpenApiResponse(serializers.PassageSerializer(many=True), "The passages, best first.")}


@extend_schema(tags=["Document collections"])
class CollectionEndpoint(JsonView):
    http_method_names = ["get", "head", "post", "delete"]
    parameter_names: ClassVar[tuple[str, ...]] = ()

    def read_parameters(self, request: Request) -> RequestParameters:
        return parameters.parse_request(request, self.parameter_names)


class LoadDocument(CollectionEndpoint):
    """Loads a file and makes it searchable. Creates the collection if it does not exist and you have permission.

    You can send each parameter in the query string or in the form.
    """

    body_limit = settings.COLLECTIONS["file_limit"] + uploads.FORM_OVERHEAD_BYTES

    @describe(
        "load_a_document", "Load a document", LOAD_RESPONSES, *LOAD_ERRORS,
        parameters=LOAD_PARAMETERS, request={"multipart/form-data": serializers.FileLoadSerializer},
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        with uploads.receive_upload(django_request(request), settings.COLLECTIONS["file_limit"]) as upload:
            values = parameters.parse_form(request, upload, load_requests.PARAMETER_NAMES)
            name = values.require("collection_name", parameters.read_nonempty_text)
            options = load_requests.read_options(values)
            caller = access.caller(request)
            access.find_load_target(caller, name)  # raises permission errors before the file is read
            load_request = load_requests.from_upload(upload, options)
            return responses.load_response(request, loading.load_document(caller, name, **load_request))


class LoadText(CollectionEndpoint):
    """Loads text and makes it searchable. Creates the collection if it does not exist and you have permission.

    You can send each parameter in the query string or in a JSON body.
    """

    body_limit = parameters.ESCAPE_FACTOR * settings.COLLECTIONS["text_limit"] + parameters.ENVELOPE_BYTES
    parameter_names = (*load_requests.PARAMETER_NAMES, "text")

    @describe(
        "load_a_text", "Load text", LOAD_RESPONSES, *LOAD_ERRORS,
        parameters=LOAD_PARAMETERS, request=serializers.TextLoadSerializer,
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        values = self.read_parameters(request)
        load_request = load_requests.from_text(values)
        name = values.require("collection_name", parameters.read_nonempty_text)
        return responses.load_response(request, loading.load_document(access.caller(request), name, **load_request))


class RelevantDocuments(CollectionEndpoint):
    """You can send each parameter in the query string or in a JSON body."""

    reads_by_post = True
    parameter_names = serializers.SearchParameters.names()

    @describe(
        "search", "Search", PASSAGE_RESPONSES, *READ_ERRORS,
        parameters=[serializers.SearchParameters, *serializers.SEARCH_HEADERS], methods=["GET"],
    )  # fmt: skip
    @describe(
        "search_by_a_body", "Search with a JSON body", PASSAGE_RESPONSES, *READ_WITH_BODY_ERRORS,
        parameters=[serializers.SearchParameters.as_post_query_parameters(), *serializers.SEARCH_HEADERS],
        request=serializers.SearchParameters, methods=["POST"],
    )  # fmt: skip
    def get(self, request: Request) -> Response:
        values = self.read_parameters(request)
        searches = search_requests.read_searches(values)
        names = values.require("collection_names", parameters.read_collection_names)
        return search_requests.respond(access.open_collections(access.caller(request), names), searches)

    post = get


class ContentByTag(CollectionEndpoint):
    """You can send each parameter in the query string or in a JSON body."""

    reads_by_post = True
    parameter_names = serializers.ContentByTagParameters.names()

    @describe(
        "read_whole_documents", "Read whole documents", {200: serializers.ContentSerializer(many=True)}, *READ_ERRORS,
        parameters=[serializers.ContentByTagParameters, *PAGE_HEADERS], methods=["GET"],
    )  # fmt: skip
    @describe(
        "read_whole_documents_by_a_body", "Read whole documents with a JSON body",
        {200: serializers.ContentSerializer(many=True)}, *READ_WITH_BODY_ERRORS,
        parameters=[serializers.ContentByTagParameters.as_post_query_parameters(), *PAGE_HEADERS],
        request=serializers.ContentByTagParameters, methods=["POST"],
    )  # fmt: skip
    def get(self, request: Request) -> HttpResponse:
        values = self.read_parameters(request)
        name = values.require("collection_name", parameters.read_nonempty_text)
        metadata_filter = parameters.read_filter(values, "tag_info")
        limit = values.get("limit", parameters.number_reader(1, MAX_DOCUMENTS)) or DEFAULT_LIMIT
        offset = values.get("offset", parameters.number_reader(0, MAX_OFFSET)) or 0
        collection = access.open_collection(access.caller(request), name, "read")
        with metadata_listing.matching_documents(collection, metadata_filter, limit=limit, offset=offset) as page:
            # Rendered inside the block, which limits a process to one long document at a time.
            response = HttpResponse(JSONRenderer().render(page.documents), content_type="application/json")
        response["X-Total-Count"] = str(page.total)
        if page.next_offset is not None:
            response["X-Next-Offset"] = str(page.next_offset)
        return response

    post = get


class DocumentNames(CollectionEndpoint):
    parameter_names = OneCollectionParameters.names()

    @describe(
        "list_the_documents_of_a_collection", "List the documents of a collection", {200: list[str]}, *READ_ERRORS,
        parameters=[OneCollectionParameters],
    )  # fmt: skip
    def get(self, request: Request) -> Response:
        name = self.read_parameters(request).require("collection_name", parameters.read_nonempty_text)
        collection = access.open_collection(access.caller(request), name, "read")
        documents = Document.objects.filter(collection=collection, deleted_at__isnull=True).order_by("id")
        return Response(list(documents.values_list("doc_id", flat=True).iterator()))


class CollectionList(CollectionEndpoint):
    @describe(
        "list_the_collections", "List the collections", {200: serializers.CollectionSerializer(many=True)}, *READ_ERRORS
    )
    def get(self, request: Request) -> Response:
        self.read_parameters(request)
        return Response(responses.collection_bodies(list(access.readable_collections(access.caller(request)))))


class DeleteDocument(CollectionEndpoint):
    """You can send each parameter in the query string or in a JSON body."""

    parameter_names = serializers.DeleteDocumentParameters.names()

    @describe(
        "delete_a_document", "Delete a document", {200: serializers.DeletedDocumentSerializer}, *DELETE_ERRORS,
        parameters=[serializers.DeleteDocumentParameters],
    )  # fmt: skip
    def delete(self, request: Request) -> Response:
        values = self.read_parameters(request)
        name = values.require("collection_name", parameters.read_nonempty_text)
        doc_id = values.require("id_value", parameters.read_text)
        collection = access.open_collection(access.caller(request), name, "write")
        try:
            chunk_count = deletion.delete_document(collection, doc_id)
        except NotFound as error:
            error.field = "id_value"  # this endpoint's name for doc_id
            raise
        return Response(responses.deleted_document_body(collection, lookup_name(doc_id), chunk_count))


class DeleteCollection(CollectionEndpoint):
    """You can send each parameter in the query string or in a JSON body."""

    parameter_names = OneCollectionParameters.names()

    @describe(
        "delete_a_collection", "Delete a collection", {200: serializers.DeletedCollectionSerializer}, *DELETE_ERRORS,
        parameters=[OneCollectionParameters],
    )  # fmt: skip
    def delete(self, request: Request) -> Response:
        name = self.read_parameters(request).require("collection_name", parameters.read_nonempty_text)
        collection = access.open_collection(access.caller(request), name, "manage")
        return Response(responses.deleted_collection_body(collection, *deletion.delete_collection(collection)))
