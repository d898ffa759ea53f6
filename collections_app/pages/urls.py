"""URLs of the collection pages."""

from django.urls import path

from collections_app.pages import metadata_page, views
from collections_app.pages.document_actions import ACTIONS, BulkAction, SingleDocumentAction

COLLECTION_PATH = "collections/<slug:sys_id>/"
DOCUMENTS_PATH = f"{COLLECTION_PATH}documents/"
DOCUMENT_PATH = f"{DOCUMENTS_PATH}<slug:document>/"

urlpatterns = [
    path("collections/", views.CollectionListPage.as_view(), name="collections"),
    path(COLLECTION_PATH, views.CollectionDetailPage.as_view(), name="collection"),
    path(f"{COLLECTION_PATH}delete/", views.DeleteCollection.as_view(), name="collection-delete"),
    path(f"{DOCUMENT_PATH}<int:generation>/passages/<int:number>/", views.PassagePage.as_view(), name="passage"),
    *(
        path(f"{DOCUMENT_PATH}{name}/", SingleDocumentAction.as_view(), {"action": action}, name=f"document-{name}")
        for name, action in ACTIONS.items()
    ),
    *(
        path(f"{DOCUMENTS_PATH}{name}/", BulkAction.as_view(), {"action": action}, name=f"documents-{name}")
        for name, action in ACTIONS.items()
    ),
    path(f"{DOCUMENT_PATH}metadata/", metadata_page.MetadataPage.as_view(), name="document-metadata"),
]
