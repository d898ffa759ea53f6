"""The eight endpoints of document collections: loading, retrieving, listing, deleting.

A key or a password with each request, never a session. What a request says is read and refused before any collection is
looked for, so that a wrong parameter is told alike whether there is such a collection or not.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from django.conf import settings
from django.http import HttpResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from collections_app import access
from collections_app.documents import deletion
from collections_app.http import load_requests, parameters, responses, uploads
from collections_app.http.parameters import RequestParameters
from collections_app.ingest import loading
from collections_app.models import Document
from collections_app.models.collections import known_form
from collections_app.search import metadata_listing
from collections_app.search.pipeline import SearchRequest, search
from system.errors import NotFound
from system.http import django_request
from system.http.response_cleanup import ReleasesResponse


class Endpoint(ReleasesResponse):
    known: ClassVar[tuple[str, ...]] = ()

    def given(self, request: Request) -> RequestParameters:
        return parameters.of_request(request, self.known)


class LoadDocument(Endpoint):
    http_method_names = ["post"]
    body_limit = uploads.body_limit()

    def post(self, request: Request) -> Response:
        with uploads.received(django_request(request)) as upload:
            given = parameters.parse_parameters(request.query_params, upload.fields, load_requests.PARAMETERS)
            name = given.needed("collection_name", parameters.named)
            may_load = partial(loading.check_may_load, access.caller(request), name)
            return load(request, load_requests.from_upload(upload, given, may_load), given)


class LoadText(Endpoint):
    http_method_names = ["post"]
    body_limit = parameters.body_limit(settings.COLLECTIONS["text_limit"])
    known = (*load_requests.PARAMETERS, "text")

    def post(self, request: Request) -> Response:
        given = self.given(request)
        return load(request, load_requests.from_text(given), given)


def load(request: Request, asked: loading.LoadRequest, given: RequestParameters) -> Response:
    caller = access.caller(request)
    name = given.needed("collection_name", parameters.named)
    return responses.loaded(request, loading.load_by_name(caller, name, asked))


class RelevantDocuments(Endpoint):
    http_method_names = ["get", "head", "post"]
    known = ("collection_names", "query", "k", "metadata", "mode", "alpha")

    def get(self, request: Request) -> Response:
        return self._answer(request)

    def post(self, request: Request) -> Response:
        return self._answer(request)

    def _answer(self, request: Request) -> Response:
        given = self.given(request)
        asked = asked_of(given)
        collections = access.open_all(access.caller(request), given.needed("collection_names", parameters.names))
        return responses.passages(search(collections, asked))


def asked_of(given: RequestParameters) -> SearchRequest:
    """What is searched for, wherever."""
    return SearchRequest(
        query=given.needed("query", parameters.query),
        k=given.get("k", parameters.number(1, parameters.MOST_K)) or parameters.DEFAULT_K,
        filter=parameters.filter_in(given, "metadata"),
        mode=given.get("mode", parameters.choice(parameters.MODES)) or "hybrid",
        alpha=given.get("alpha", parameters.share),
    )


class ContentByTag(Endpoint):
    http_method_names = ["get", "head", "post"]
    known = ("collection_name", "tag_info", "limit", "offset")

    def get(self, request: Request) -> HttpResponse:
        return self._answer(request)

    def post(self, request: Request) -> HttpResponse:
        return self._answer(request)

    def _answer(self, request: Request) -> HttpResponse:
        given = self.given(request)
        name = given.needed("collection_name", parameters.named)
        wanted = parameters.filter_in(given, "tag_info")
        limit = (
            given.get("limit", parameters.number(1, metadata_listing.MOST_DOCUMENTS)) or metadata_listing.DEFAULT_LIMIT
        )
        offset = given.get("offset", parameters.number(0, metadata_listing.DEEPEST)) or 0
        collection = access.open_collection(access.caller(request), name, "read")
        with metadata_listing.matching(collection, wanted, limit=limit, offset=offset) as found:
            # Written here and not after the view: a long document has its turn only so long.
            response = HttpResponse(JSONRenderer().render(found.documents), content_type="application/json")
        response["X-Total-Count"] = str(found.total)
        if found.next_offset is not None:
            response["X-Next-Offset"] = str(found.next_offset)
        return response


class DocumentNames(Endpoint):
    http_method_names = ["get", "head"]
    known = ("collection_name",)

    def get(self, request: Request) -> Response:
        name = self.given(request).needed("collection_name", parameters.named)
        collection = access.open_collection(access.caller(request), name, "read")
        found = Document.objects.filter(collection=collection, deleted_at__isnull=True).order_by("id")
        return Response(list(found.values_list("doc_id", flat=True).iterator()))


class Collections(Endpoint):
    http_method_names = ["get", "head"]

    def get(self, request: Request) -> Response:
        self.given(request)
        return Response(responses.collections(list(access.readable(access.caller(request)))))


class DeleteDocument(Endpoint):
    http_method_names = ["delete"]
    known = ("collection_name", "id_value")

    def delete(self, request: Request) -> Response:
        given = self.given(request)
        name = given.needed("collection_name", parameters.named)
        doc_id = given.needed("id_value", parameters.text)
        collection = access.open_collection(access.caller(request), name, "write")
        try:
            chunks = deletion.delete_document(collection, doc_id)
        except NotFound as missing:
            missing.field = "id_value"  # as this endpoint calls it
            raise
        return Response(responses.deleted_document(collection, known_form(doc_id), chunks))


class DeleteCollection(Endpoint):
    http_method_names = ["delete"]
    known = ("collection_name",)

    def delete(self, request: Request) -> Response:
        name = self.given(request).needed("collection_name", parameters.named)
        collection = access.open_collection(access.caller(request), name, "manage")
        return Response(responses.deleted_collection(collection, *deletion.delete_collection(collection)))
