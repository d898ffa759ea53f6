"""The addresses of the management of collections."""

from django.urls import path

from collections_app.http.api import collections, documents

ONE = "api/collections/<slug:sys_id>"
DOCUMENT = f"{ONE}/documents/<slug:document>"

urlpatterns = [
    path("api/collections", collections.Collections.as_view(), name="collection-list"),
    path(ONE, collections.OneCollection.as_view(), name="collection-settings"),
    path(f"{ONE}/reembed", collections.Reembed.as_view(), name="collection-reembed"),
    path(f"{ONE}/search", collections.Search.as_view(), name="collection-search"),
    path(f"{ONE}/documents", documents.Documents.as_view(), name="collection-documents"),
    path(DOCUMENT, documents.OneDocument.as_view(), name="collection-document"),
    path(f"{DOCUMENT}/content", documents.Content.as_view(), name="collection-document-content"),
    path(f"{DOCUMENT}/reload", documents.Reload.as_view(), name="collection-document-reload"),
    path(f"{DOCUMENT}/retry", documents.Retry.as_view(), name="collection-document-retry"),
]
