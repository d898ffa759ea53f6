"""The addresses of document collections: the eight endpoints, with and without a slash at the end, and management."""

from django.urls import include, path, re_path

from collections_app import views

ENDPOINTS = {
    "load_document_to_collection": views.LoadDocument,
    "load_text_to_collection": views.LoadText,
    "get_relevant_documents": views.RelevantDocuments,
    "get_content_by_tag": views.ContentByTag,
    "get_list_of_documents_names": views.DocumentNames,
    "get_list_of_collection": views.Collections,
    "delete_document_from_collection": views.DeleteDocument,
    "delete_collection": views.DeleteCollection,
}

urlpatterns = [
    *(re_path(rf"^{name}/?$", view.as_view(), name=name) for name, view in ENDPOINTS.items()),
    path("", include("collections_app.api.urls")),
]
