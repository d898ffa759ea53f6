"""Actions of the collection pages: delete, retry or reprocess one document, or all that the list shows."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import pluralize

from collections_app import access
from collections_app.documents import deletion
from collections_app.ingest import loading, worker
from collections_app.models import Collection, Document
from collections_app.models.documents import VersionState
from collections_app.pages.views import CollectionDetailPage, DocumentFilter, confirmation_page, open_document
from system.admin_site.name_lists import shorten_names
from system.errors import ServiceError

# More documents need another request.
MAX_DOCUMENTS = 500
CANNOT_BE_UNDONE = "This cannot be undone."


class DocumentActionView(CollectionDetailPage):
    """Base of the actions. The response is the list, or a redirect to it."""

    http_method_names = ["post", "options"]

    def apply_to(self, document: Document) -> None:
        raise NotImplementedError

    def respond(self, collection: Collection, message: str, problems: list[str]) -> HttpResponse:
        if self.requested_part() == "documents":
            return self.show_documents(collection, problems)
        for problem in problems:
            messages.error(self.request, problem)
        if message:
            messages.success(self.request, message)
        return redirect("collection", collection.pk)


class DeleteAction(DocumentActionView):
    def apply_to(self, document: Document) -> None:
        deletion.delete_document(document.collection, document.doc_id)


class RetryAction(DocumentActionView):
    def apply_to(self, document: Document) -> None:
        worker.retry_document(document)


class ReprocessAction(DocumentActionView):
    """Searches use the present version until the new one is ready."""

    def apply_to(self, document: Document) -> None:
        loading.reprocess(self.user(), document.collection, document)


class SingleDocumentAction(DocumentActionView):
    """One document; `question` asks for confirmation first."""

    message = ""
    question = ""

    def post(self, request: HttpRequest, sys_id: str, document: str) -> HttpResponse:
        collection = access.open_collection_by_id(self.user(), sys_id, "write")
        opened_document = open_document(collection, document)
        title = opened_document.page_title()
        if self.question and "confirmed" not in request.POST:
            return confirmation_page(request, self.question.format(title=title), collection)
        self.apply_to(opened_document)
        return self.respond(collection, self.message.format(title=title), [])


class DeleteDocument(DeleteAction, SingleDocumentAction):
    message = "“{title}” was deleted."
    question = f"Delete “{{title}}”? {CANNOT_BE_UNDONE}"


class RetryDocument(RetryAction, SingleDocumentAction):
    message = "“{title}” is being processed again."


class ReprocessDocument(ReprocessAction, SingleDocumentAction):
    message = "“{title}” is being reprocessed with the current settings."


class BulkAction(DocumentActionView):
    """All documents that match the name and state of the list."""

    verb = ""
    message = ""
    hint = ""
    state: VersionState | None = None

    def post(self, request: HttpRequest, sys_id: str) -> HttpResponse:
        collection = access.open_collection_by_id(self.user(), sys_id, "write")
        matching_documents = DocumentFilter(request.GET).filter_documents(collection)
        if self.state is not None:
            matching_documents = matching_documents.filter(newest__state=self.state)
        documents = list(matching_documents[: MAX_DOCUMENTS + 1])
        if not documents:
            return self.respond(collection, "", ["No documents match."])
        selected_documents = documents[:MAX_DOCUMENTS]
        if "confirmed" not in request.POST:
            question = f"{self.verb} {_count_text(len(selected_documents))}? {self.hint}"
            return confirmation_page(request, question, collection, self.verb)
        problems = self._change_all(selected_documents)
        changed_count = len(selected_documents) - len(problems)
        if len(documents) > MAX_DOCUMENTS:
            problems.append(f"Only the first {MAX_DOCUMENTS} documents were changed. Repeat the action for the rest.")
        message = f"{_count_text(changed_count)} {self.message}" if changed_count else ""
        return self.respond(collection, message, shorten_names(problems))

    def _change_all(self, documents: list[Document]) -> list[str]:
        """The refusals, one for each document that was not changed."""
        refusals = []
        for document in documents:
            try:
                self.apply_to(document)
            except ServiceError as error:
                refusals.append(f"{document.page_title()}: {error.message}")
        return refusals


def _count_text(count: int) -> str:
    return f"{count} document{pluralize(count)}"


class DeleteDocuments(DeleteAction, BulkAction):
    verb = "Delete"
    message = "deleted."
    hint = CANNOT_BE_UNDONE


class RetryDocuments(RetryAction, BulkAction):
    verb = "Retry"
    message = "queued again."
    state = VersionState.FAILED


class ReprocessDocuments(ReprocessAction, BulkAction):
    verb = "Reprocess"
    message = "queued with the current settings."
    hint = "Searches use the current versions until the new ones are ready."
