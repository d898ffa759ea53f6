"""Addresses of the pages of collections."""

from django.urls import path

from collections_app import metadata_page, pages

urlpatterns = [
    path("collections/", pages.Collections.as_view(), name="collections"),
    path("collections/<slug:sys_id>/", pages.OneCollection.as_view(), name="collection"),
    path("collections/<slug:sys_id>/delete/", pages.DeleteCollection.as_view(), name="collection-delete"),
    path(
        "collections/<slug:sys_id>/documents/<slug:document>/<int:generation>/passages/<int:number>/",
        pages.Passage.as_view(),
        name="passage",
    ),
    path(
        "collections/<slug:sys_id>/documents/<slug:document>/delete/",
        pages.DeleteDocument.as_view(),
        name="document-delete",
    ),
    path(
        "collections/<slug:sys_id>/documents/<slug:document>/retry/",
        pages.RetryDocument.as_view(),
        name="document-retry",
    ),
    path(
        "collections/<slug:sys_id>/documents/<slug:document>/metadata/",
        metadata_page.DocumentMetadata.as_view(),
        name="document-metadata",
    ),
]
