"""URLs of document collections: the eight endpoints, with and without a trailing slash, and the management API."""

from django.urls import include, path, re_path

from collections_app.http import endpoints

ENDPOINTS = {
    "load_document_to_collection": endpoints.LoadDocument,
    "load_text_to_collection": endpoints.LoadText,
    "get_relevant_documents": endpoints.RelevantDocuments,
    "get_content_by_tag": endpoints.ContentByTag,
    "get_list_of_documents_names": endpoints.DocumentNames,
    "get_list_of_collection": endpoints.Collections,
    "delete_document_from_collection": endpoints.DeleteDocument,
    "delete_collection": endpoints.DeleteCollection,
}

urlpatterns = [
    *(re_path(rf"^{name}/?$", view.as_view(), name=name) for name, view in ENDPOINTS.items()),
    path("", include("collections_app.http.api.urls")),
]
