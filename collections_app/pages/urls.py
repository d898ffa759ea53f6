"""Addresses of the collection pages."""

from django.urls import path

from collections_app.pages import document_actions, metadata_page, views

urlpatterns = [
    path("collections/", views.CollectionListPage.as_view(), name="collections"),
    path("collections/<slug:sys_id>/", views.CollectionDetailPage.as_view(), name="collection"),
    path("collections/<slug:sys_id>/delete/", views.DeleteCollection.as_view(), name="collection-delete"),
    path(
        "collections/<slug:sys_id>/documents/<slug:document>/<int:generation>/passages/<int:number>/",
        views.PassagePage.as_view(),
        name="passage",
    ),
    path(
        "collections/<slug:sys_id>/documents/<slug:document>/delete/",
        document_actions.DeleteDocument.as_view(),
        name="document-delete",
    ),
    path(
        "collections/<slug:sys_id>/documents/<slug:document>/retry/",
        document_actions.RetryDocument.as_view(),
        name="document-retry",
    ),
    path(
        "collections/<slug:sys_id>/documents/<slug:document>/reprocess/",
        document_actions.ReprocessDocument.as_view(),
        name="document-reprocess",
    ),
    path(
        "collections/<slug:sys_id>/documents/delete/",
        document_actions.DeleteDocuments.as_view(),
        name="documents-delete",
    ),
    path(
        "collections/<slug:sys_id>/documents/retry/", document_actions.RetryDocuments.as_view(), name="documents-retry"
    ),
    path(
        "collections/<slug:sys_id>/documents/reprocess/",
        document_actions.ReprocessDocuments.as_view(),
        name="documents-reprocess",
    ),
    path(
        "collections/<slug:sys_id>/documents/<slug:document>/metadata/",
        metadata_page.DocumentMetadata.as_view(),
        name="document-metadata",
    ),
]
