"""Addresses of the collection pages."""

from django.urls import path

from collections_app.pages import document_actions, metadata_page, views

COLLECTION = "collections/<slug:sys_id>/"
DOCUMENTS = f"{COLLECTION}documents/"
DOCUMENT = f"{DOCUMENTS}<slug:document>/"

urlpatterns = [
    path("collections/", views.CollectionListPage.as_view(), name="collections"),
    path(COLLECTION, views.CollectionDetailPage.as_view(), name="collection"),
    path(f"{COLLECTION}delete/", views.DeleteCollection.as_view(), name="collection-delete"),
    path(f"{DOCUMENT}<int:generation>/passages/<int:number>/", views.PassagePage.as_view(), name="passage"),
    path(f"{DOCUMENT}delete/", document_actions.DeleteDocument.as_view(), name="document-delete"),
    path(f"{DOCUMENT}retry/", document_actions.RetryDocument.as_view(), name="document-retry"),
    path(f"{DOCUMENT}reprocess/", document_actions.ReprocessDocument.as_view(), name="document-reprocess"),
    path(f"{DOCUMENTS}delete/", document_actions.DeleteDocuments.as_view(), name="documents-delete"),
    path(f"{DOCUMENTS}retry/", document_actions.RetryDocuments.as_view(), name="documents-retry"),
    path(f"{DOCUMENTS}reprocess/", document_actions.ReprocessDocuments.as_view(), name="documents-reprocess"),
    path(f"{DOCUMENT}metadata/", metadata_page.DocumentMetadata.as_view(), name="document-metadata"),
]
