"""URLs of document collections: the eight endpoints, with and without a trailing slash, the management API, pages."""

from django.urls import path, re_path

from collections_app.http import endpoints, vector_stores
from collections_app.http.api import collections, documents, evaluation, sources
from collections_app.pages import (
    document_actions,
    document_page,
    evaluation_page,
    metadata_page,
    search_pages,
    settings_pages,
    source_pages,
    uploads,
    views,
)
from system.http.error_responses import FOREIGN_ERROR_BODIES

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
API_COLLECTION = "api/collections/<slug:sys_id>"
API_EVALUATION = f"{API_COLLECTION}/evaluation"
API_DOCUMENT = f"{API_COLLECTION}/documents/<slug:document>"
API_SOURCE = f"{API_COLLECTION}/sources/<slug:source>"
PAGE = "collections/<slug:sys_id>/"
DOCUMENT_PAGE = f"{PAGE}documents/<slug:document>/"

FOREIGN_ERROR_BODIES["/v1/"] = vector_stores.error_body
urlpatterns = [
    *(re_path(rf"^{name}/?$", view.as_view(), name=name) for name, view in ENDPOINTS.items()),
    path("api/collections", collections.CollectionList.as_view(), name="collection-list"),
    path(API_COLLECTION, collections.CollectionDetail.as_view(), name="collection-settings"),
    path(f"{API_COLLECTION}/reembed", collections.ReembedCollection.as_view(), name="collection-reembed"),
    path(f"{API_COLLECTION}/search", collections.SearchCollection.as_view(), name="collection-search"),
    path(f"{API_COLLECTION}/documents", documents.DocumentList.as_view(), name="collection-documents"),
    path(API_DOCUMENT, documents.DocumentDetail.as_view(), name="collection-document"),
    path(f"{API_DOCUMENT}/content", documents.DocumentContent.as_view(), name="collection-document-content"),
    path(f"{API_DOCUMENT}/reload", documents.ReprocessDocument.as_view(), name="collection-document-reload"),
    path(f"{API_DOCUMENT}/retry", documents.RetryDocument.as_view(), name="collection-document-retry"),
    path(f"{API_COLLECTION}/sources", sources.SourceList.as_view(), name="collection-sources"),
    path(API_SOURCE, sources.SourceDetail.as_view(), name="collection-source"),
    path(f"{API_SOURCE}/refresh", sources.RefreshSource.as_view(), name="collection-source-refresh"),
    path(f"{API_EVALUATION}/questions", evaluation.EvaluationQuestions.as_view()),
    path(f"{API_EVALUATION}/questions/<slug:question>", evaluation.EvaluationQuestionDetail.as_view()),
    path(f"{API_EVALUATION}/runs", evaluation.EvaluationRuns.as_view()),
    path(f"{API_EVALUATION}/runs/<slug:run>", evaluation.EvaluationRunDetail.as_view()),
    path("v1/vector_stores/<slug:sys_id>/search", vector_stores.SearchVectorStore.as_view()),
    path("collections/", views.CollectionListPage.as_view(), name="collections"),
    path("collections/search/", search_pages.SearchAllPage.as_view(), name="search-collections"),
    path(PAGE, search_pages.SearchPage.as_view(), name="collection"),
    path(f"{PAGE}access/", settings_pages.AccessPage.as_view(), name="collection-access-page"),
    path(f"{PAGE}settings/", settings_pages.SettingsPage.as_view(), name="collection-settings-page"),
    path(f"{PAGE}reembed/", settings_pages.ReembedView.as_view(), name="collection-reembed-page"),
    path(f"{PAGE}sources/", source_pages.SourcesPage.as_view(), name="collection-sources-page"),
    path(f"{PAGE}evaluation/", evaluation_page.EvaluationPage.as_view(), name="collection-evaluation"),
    path(f"{PAGE}evaluation/start/", evaluation_page.StartEvaluation.as_view(), name="evaluation-start"),
    path(f"{PAGE}evaluation/upload/", evaluation_page.UploadQuestions.as_view(), name="evaluation-upload"),
    path(
        f"{PAGE}evaluation/questions/<slug:question>/delete/",
        evaluation_page.DeleteQuestion.as_view(),
        name="evaluation-question-delete",
    ),
    path(f"{PAGE}delete/", views.DeleteCollection.as_view(), name="collection-delete"),
    path(f"{PAGE}documents/", views.DocumentsPage.as_view(), name="documents-page"),
    path(f"{PAGE}documents/upload/", uploads.UploadView.as_view(), name="documents-upload"),
    path(f"{DOCUMENT_PAGE}replace/", uploads.UploadView.as_view(), name="document-replace"),
    path(f"{DOCUMENT_PAGE}pdf/", document_page.PdfFile.as_view(), name="document-pdf"),
    path(f"{DOCUMENT_PAGE}metadata/", metadata_page.MetadataPage.as_view(), name="document-metadata"),
    path(f"{DOCUMENT_PAGE}<int:generation>/passages/<int:number>/", document_page.FormerPassagePage.as_view()),
]
for name, action in document_actions.ACTIONS.items():
    single, bulk = document_actions.SingleDocumentAction.as_view(), document_actions.BulkAction.as_view()
    urlpatterns += [
        path(f"{DOCUMENT_PAGE}{name}/", single, {"action": action}, name=f"document-{name}"),
        path(f"{PAGE}documents/{name}/", bulk, {"action": action}, name=f"documents-{name}"),
    ]
for name in ("refresh", "delete"):
    source_action = source_pages.SourceAction.as_view()
    urlpatterns.append(path(f"{PAGE}sources/<slug:source>/{name}/", source_action, {"action": name}, f"source-{name}"))
# After the actions, whose names would match as a document.
urlpatterns.append(path(DOCUMENT_PAGE, document_page.DocumentPage.as_view(), name="document-page"))
