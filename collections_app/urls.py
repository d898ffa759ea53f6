"""URLs of document collections: the eight endpoints, with and without a trailing slash, and the management API."""

from django.urls import path, re_path

from collections_app.http import endpoints
from collections_app.http.api import collections, documents

ENDPOINTS = {
    "load_document_to_collection": endpoints.LoadDocument,
    "load_text_to_collection": endpoints.LoadText,
    "get_relevant_documents": endpoints.RelevantDocuments,
    "get_content_by_tag": endpoints.ContentByTag,
    "get_list_of_documents_names": endpoints.DocumentNames,
    "get_list_of_collection": endpoints.CollectionList,
    "delete_document_from_collection": endpoints.DeleteDocument,
    "delete_collection": endpoints.DeleteCollection,
}
COLLECTION_PATH = "api/collections/<slug:sys_id>"
DOCUMENT_PATH = f"{COLLECTION_PATH}/documents/<slug:document>"

urlpatterns = [
    *(re_path(rf"^{name}/?$", view.as_view(), name=name) for name, view in ENDPOINTS.items()),
    path("api/collections", collections.CollectionList.as_view(), name="collection-list"),
    path(COLLECTION_PATH, collections.CollectionDetail.as_view(), name="collection-settings"),
    path(f"{COLLECTION_PATH}/reembed", collections.ReembedCollection.as_view(), name="collection-reembed"),
    path(f"{COLLECTION_PATH}/search", collections.SearchCollection.as_view(), name="collection-search"),
    path(f"{COLLECTION_PATH}/documents", documents.DocumentList.as_view(), name="collection-documents"),
    path(DOCUMENT_PATH, documents.DocumentDetail.as_view(), name="collection-document"),
    path(f"{DOCUMENT_PATH}/content", documents.DocumentContent.as_view(), name="collection-document-content"),
    path(f"{DOCUMENT_PATH}/reload", documents.ReprocessDocument.as_view(), name="collection-document-reload"),
    path(f"{DOCUMENT_PATH}/retry", documents.RetryDocument.as_view(), name="collection-document-retry"),
]
