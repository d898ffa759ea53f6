"""Addresses of the pages of collections."""

from django.urls import path

from collections_app.pages import metadata_page, views

urlpatterns = [
    path("collections/", views.Collections.as_view(), name="collections"),
    path("collections/<slug:sys_id>/", views.OneCollection.as_view(), name="collection"),
    path("collections/<slug:sys_id>/delete/", views.DeleteCollection.as_view(), name="collection-delete"),
    path(
        "collections/<slug:sys_id>/documents/<slug:document>/<int:generation>/passages/<int:number>/",
        views.Passage.as_view(),
        name="passage",
    ),
    path(
        "collections/<slug:sys_id>/documents/<slug:document>/delete/",
        views.DeleteDocument.as_view(),
        name="document-delete",
    ),
    path(
        "collections/<slug:sys_id>/documents/<slug:document>/retry/",
        views.RetryDocument.as_view(),
        name="document-retry",
    ),
    path(
        "collections/<slug:sys_id>/documents/<slug:document>/metadata/",
        metadata_page.DocumentMetadata.as_view(),
        name="document-metadata",
    ),
]
