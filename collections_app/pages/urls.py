"""URLs of the collection pages."""

from django.urls import path

from collections_app.pages import document_actions, metadata_page, views

COLLECTION_PATH = "collections/<slug:sys_id>/"
DOCUMENTS_PATH = f"{COLLECTION_PATH}documents/"
DOCUMENT_PATH = f"{DOCUMENTS_PATH}<slug:document>/"

urlpatterns = [
    path("collections/", views.CollectionListPage.as_view(), name="collections"),
    path(COLLECTION_PATH, views.CollectionDetailPage.as_view(), name="collection"),
    path(f"{COLLECTION_PATH}delete/", views.DeleteCollection.as_view(), name="collection-delete"),
    path(f"{DOCUMENT_PATH}<int:generation>/passages/<int:number>/", views.PassagePage.as_view(), name="passage"),
    path(f"{DOCUMENT_PATH}delete/", document_actions.DeleteDocument.as_view(), name="document-delete"),
    path(f"{DOCUMENT_PATH}retry/", document_actions.RetryDocument.as_view(), name="document-retry"),
    path(f"{DOCUMENT_PATH}reprocess/", document_actions.ReprocessDocument.as_view(), name="document-reprocess"),
    path(f"{DOCUMENTS_PATH}delete/", document_actions.DeleteDocuments.as_view(), name="documents-delete"),
    path(f"{DOCUMENTS_PATH}retry/", document_actions.RetryDocuments.as_view(), name="documents-retry"),
    path(f"{DOCUMENTS_PATH}reprocess/", document_actions.ReprocessDocuments.as_view(), name="documents-reprocess"),
    path(f"{DOCUMENT_PATH}metadata/", metadata_page.MetadataPage.as_view(), name="document-metadata"),
]
