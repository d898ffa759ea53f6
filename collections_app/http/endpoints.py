"""The eight endpoints of document collections: load, search, list, delete.

Each request has an access key or a password, never a session. Parameters are checked before any collection is looked
up, so that a wrong parameter gets the same response whether the collection exists or not.
"""

from functools import partial
from typing import ClassVar

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from collections_app import access
from collections_app.documents import deletion
from collections_app.http import load_requests, parameters, responses, serializers, uploads
from collections_app.http.parameters import RequestParameters
from collections_app.http.serializers import (
    PAGE_HEADERS,
    SEARCH_MODE,
    Loaded,
    OneCollectionParameters,
    SearchParameters,
)
from collections_app.ingest import loading
from collections_app.models import Document
from collections_app.models.collections import known_form
from collections_app.search import metadata_listing
from collections_app.search.metadata_listing import DEEPEST, DEFAULT_LIMIT, MAX_DOCUMENTS
from collections_app.search.pipeline import SearchRequest, search
from system.errors import AccessDenied, Invalid, NotFound
from system.http import django_request
from system.http.json_view import JsonView
from system.openapi import BODY_ERRORS, READ_ERRORS, WRITE_ERRORS, describe

DELETE_ERRORS = (*READ_ERRORS, AccessDenied)
BY_BODY_ERRORS = (*READ_ERRORS, *BODY_ERRORS)
LOAD_ERRORS = (*BY_BODY_ERRORS, *WRITE_ERRORS, Invalid)
LOAD_PARAMETERS = [OneCollectionParameters, serializers.LoadParameters.as_post_query_parameters()]
LOAD_RESPONSES = {
    200: OpenApiResponse(Loaded, "The document exists already."),
    201: OpenApiResponse(Loaded, "The document can be found; if it is `empty`, it contains no text."),
    202: OpenApiResponse(Loaded, "The document is stored and is loaded in the background; poll `status_url`."),
}
PASSAGES = {200: OpenApiResponse(serializers.Passage(many=True), "The passages, best first.")}


@extend_schema(tags=["Document collections"])
class Endpoint(JsonView):
    known: ClassVar[tuple[str, ...]] = ()

    def parameters_of(self, request: Request) -> RequestParameters:
        return parameters.of_request(request, self.known)


class LoadDocument(Endpoint):
    """Loads a file and makes it searchable. Creates the collection if it does not exist and you are allowed to.

    Every parameter can be given in the query string or in the form.
    """

    http_method_names = ["post"]
    body_limit = uploads.body_limit()

    @describe(
        "load_a_document", "Load a document", LOAD_RESPONSES, *LOAD_ERRORS,
        parameters=LOAD_PARAMETERS, request={"multipart/form-data": serializers.FileLoad},
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        with uploads.receive(django_request(request)) as upload:
            values = parameters.parse_parameters(request.query_params, upload.fields, load_requests.PARAMETERS)
            name = values.require("collection_name", parameters.nonempty_text)
            check = partial(loading.check_may_load, access.caller(request), name)
            return load(request, load_requests.from_upload(upload, values, check), name)


class LoadText(Endpoint):
    """Loads a text and makes it searchable. Creates the collection if it does not exist and you are allowed to.

    Every parameter can be given in the query string or in a JSON body.
    """

    http_method_names = ["post"]
    body_limit = parameters.body_limit(settings.COLLECTIONS["text_limit"])
    known = (*load_requests.PARAMETERS, "text")

    @describe(
        "load_a_text", "Load a text", LOAD_RESPONSES, *LOAD_ERRORS,
        parameters=LOAD_PARAMETERS, request=serializers.TextLoad,
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        values = self.parameters_of(request)
        load_request = load_requests.from_text(values)
        return load(request, load_request, values.require("collection_name", parameters.nonempty_text))


def load(request: Request, load_request: loading.LoadRequest, name: str) -> Response:
    return responses.loaded(request, loading.load_by_name(access.caller(request), name, load_request))


class RelevantDocuments(Endpoint):
    """Every parameter can be given in the query string or in a JSON body."""

    http_method_names = ["get", "head", "post"]
    known = SearchParameters.names()

    @describe("search", "Search", PASSAGES, *READ_ERRORS, parameters=[SearchParameters, SEARCH_MODE], methods=["GET"])
    @describe(
        "search_by_a_body", "Search with a JSON body", PASSAGES, *BY_BODY_ERRORS,
        parameters=[SearchParameters.as_post_query_parameters(), SEARCH_MODE], request=SearchParameters,
        methods=["POST"],
    )  # fmt: skip
    def get(self, request: Request) -> Response:
        values = self.parameters_of(request)
        search_request = search_request_of(values)
        names = values.require("collection_names", parameters.names)
        return responses.passages(search(access.open_all(access.caller(request), names), search_request))

    post = get


def search_request_of(values: RequestParameters) -> SearchRequest:
    """The search that the parameters describe, in any collections."""
    return SearchRequest(
        query=values.require("query", parameters.query),
        k=values.get("k", parameters.number(1, parameters.MAX_K)) or parameters.DEFAULT_K,
        filter=parameters.filter_in(values, "metadata"),
        mode=values.get("mode", parameters.choice(parameters.MODES)) or "hybrid",
        alpha=values.get("alpha", parameters.share),
    )


class ContentByTag(Endpoint):
    """Every parameter can be given in the query string or in a JSON body."""

    http_method_names = ["get", "head", "post"]
    known = serializers.ContentByTagParameters.names()

    @describe(
        "read_whole_documents", "Read whole documents", {200: serializers.Content(many=True)}, *READ_ERRORS,
        parameters=[serializers.ContentByTagParameters, *PAGE_HEADERS], methods=["GET"],
    )  # fmt: skip
    @describe(
        "read_whole_documents_by_a_body", "Read whole documents with a JSON body",
        {200: serializers.Content(many=True)}, *BY_BODY_ERRORS,
        parameters=[serializers.ContentByTagParameters.as_post_query_parameters(), *PAGE_HEADERS],
        request=serializers.ContentByTagParameters, methods=["POST"],
    )  # fmt: skip
    def get(self, request: Request) -> HttpResponse:
        values = self.parameters_of(request)
        name = values.require("collection_name", parameters.nonempty_text)
        condition = parameters.filter_in(values, "tag_info")
        limit = values.get("limit", parameters.number(1, MAX_DOCUMENTS)) or DEFAULT_LIMIT
        offset = values.get("offset", parameters.number(0, DEEPEST)) or 0
        collection = access.open_collection(access.caller(request), name, "read")
        with metadata_listing.matching(collection, condition, limit=limit, offset=offset) as page:
            # Rendered inside the block, which holds one long document at a time.
            response = HttpResponse(JSONRenderer().render(page.documents), content_type="application/json")
        response["X-Total-Count"] = str(page.total)
        if page.next_offset is not None:
            response["X-Next-Offset"] = str(page.next_offset)
        return response

    post = get


class DocumentNames(Endpoint):
    http_method_names = ["get", "head"]
    known = OneCollectionParameters.names()

    @describe(
        "list_the_documents_of_a_collection", "List the documents of a collection", {200: list[str]}, *READ_ERRORS,
        parameters=[OneCollectionParameters],
    )  # fmt: skip
    def get(self, request: Request) -> Response:
        name = self.parameters_of(request).require("collection_name", parameters.nonempty_text)
        collection = access.open_collection(access.caller(request), name, "read")
        documents = Document.objects.filter(collection=collection, deleted_at__isnull=True).order_by("id")
        return Response(list(documents.values_list("doc_id", flat=True).iterator()))


class CollectionList(Endpoint):
    http_method_names = ["get", "head"]

    @describe(
        "list_the_collections", "List the collections", {200: serializers.CollectionSerializer(many=True)}, *READ_ERRORS
    )
    def get(self, request: Request) -> Response:
        self.parameters_of(request)
        return Response(responses.collections(list(access.readable(access.caller(request)))))


class DeleteDocument(Endpoint):
    """Every parameter can be given in the query string or in a JSON body."""

    http_method_names = ["delete"]
    known = serializers.DeleteDocumentParameters.names()

    @describe(
        "delete_a_document", "Delete a document", {200: serializers.DeletedDocument}, *DELETE_ERRORS,
        parameters=[serializers.DeleteDocumentParameters],
    )  # fmt: skip
    def delete(self, request: Request) -> Response:
        values = self.parameters_of(request)
        name = values.require("collection_name", parameters.nonempty_text)
        doc_id = values.require("id_value", parameters.text)
        collection = access.open_collection(access.caller(request), name, "write")
        try:
            chunks = deletion.delete_document(collection, doc_id)
        except NotFound as error:
            error.field = "id_value"  # this endpoint's name for doc_id
            raise
        return Response(responses.deleted_document(collection, known_form(doc_id), chunks))


class DeleteCollection(Endpoint):
    """Every parameter can be given in the query string or in a JSON body."""

    http_method_names = ["delete"]
    known = OneCollectionParameters.names()

    @describe(
        "delete_a_collection", "Delete a collection", {200: serializers.DeletedCollection}, *DELETE_ERRORS,
        parameters=[OneCollectionParameters],
    )  # fmt: skip
    def delete(self, request: Request) -> Response:
        name = self.parameters_of(request).require("collection_name", parameters.nonempty_text)
        collection = access.open_collection(access.caller(request), name, "manage")
        return Response(responses.deleted_collection(collection, *deletion.delete_collection(collection)))
