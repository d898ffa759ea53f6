"""Actions of the collection pages: delete, retry or reprocess one or all listed documents."""

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import pluralize

from accounts.models import User
from collections_app import access
from collections_app.documents import deletion
from collections_app.ingest import loading, worker
from collections_app.models import Collection, Document
from collections_app.models.documents import VersionState
from collections_app.pages.views import (
    DocumentFilter,
    DocumentsPage,
    confirmation_page,
    open_document,
)
from system.admin_site.name_lists import shorten_names
from system.errors import ServiceError

# Further documents require another request.
MAX_DOCUMENTS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentAction:
    """A change to one document, or to all listed or selected ones. A `question` must be confirmed first."""

    verb: str
    apply: Callable[[User, Document], object]
    message: str
    bulk_message: str
    question: str = ""
    bulk_hint: str = ""
    state: VersionState | None = None


# Keyed by the last part of their URL.
ACTIONS = {
    "delete": DocumentAction(
        verb="Delete",
        apply=lambda _, document: deletion.delete_document(document.collection, document.doc_id),
        message="“{title}” was deleted.",
        bulk_message="deleted.",
        question="Delete “{title}”? This cannot be undone.",
        bulk_hint="This cannot be undone.",
    ),
    "retry": DocumentAction(
        verb="Retry",
        apply=lambda _, document: worker.retry_document(document),
        message="“{title}” is being processed again.",
        bulk_message="queued again.",
        state=VersionState.FAILED,
    ),
    "reprocess": DocumentAction(
        verb="Reprocess",
        apply=loading.reprocess,
        message="“{title}” is being reprocessed with the current settings.",
        bulk_message="queued for reprocessing with the current settings.",
        bulk_hint="Searches use the current versions until the new ones are ready.",
    ),
}


class DocumentActionView(DocumentsPage):
    http_method_names = ["post", "options"]

    def respond(self, collection: Collection, message: str, problems: list[str]) -> HttpResponse:
        if self.requested_part() == "documents":
            return self.show_documents(collection, problems)
        for problem in problems:
            messages.error(self.request, problem)
        if message:
            messages.success(self.request, message)
        return redirect("documents-page", collection.pk)


class SingleDocumentAction(DocumentActionView):
    def post(self, request: HttpRequest, sys_id: str, document: str, action: DocumentAction) -> HttpResponse:
        collection = access.open_collection_by_id(self.user(), sys_id, "write")
        opened_document = open_document(collection, document)
        title = opened_document.page_title()
        if action.question and "confirmed" not in request.POST:
            return confirmation_page(request, action.question.format(title=title), collection)
        action.apply(self.user(), opened_document)
        return self.respond(collection, action.message.format(title=title), [])


class BulkAction(DocumentActionView):
    def post(self, request: HttpRequest, sys_id: str, action: DocumentAction) -> HttpResponse:
        collection = access.open_collection_by_id(self.user(), sys_id, "write")
        is_selection = "selection" in request.POST
        matching_documents = DocumentFilter(request.GET).filter_documents(collection)
        if is_selection:
            matching_documents = matching_documents.filter(pk__in=request.POST.getlist("document"))
        if action.state is not None:
            matching_documents = matching_documents.filter(newest__state=action.state)
        documents = list(matching_documents[: MAX_DOCUMENTS + 1])
        if not documents:
            problem = "Select at least one document." if is_selection else "No documents match."
            return self.respond(collection, "", [problem])
        selected_documents = documents[:MAX_DOCUMENTS]
        if "confirmed" not in request.POST:
            question = f"{action.verb} {_count_text(len(selected_documents))}? {action.bulk_hint}"
            return confirmation_page(request, question, collection, action.verb)
        problems = self._apply_to_all(selected_documents, action)
        changed_count = len(selected_documents) - len(problems)
        if len(documents) > MAX_DOCUMENTS:
            problems.append(
                f"The action was applied only to the first {MAX_DOCUMENTS} documents. "
                "Repeat it or filter the list to reach the rest."
            )
        message = f"{_count_text(changed_count)} {action.bulk_message}" if changed_count else ""
        return self.respond(collection, message, shorten_names(problems))

    def _apply_to_all(self, documents: list[Document], action: DocumentAction) -> list[str]:
        """Returns a message for each document that was not changed."""
        problems = []
        for document in documents:
            try:
                action.apply(self.user(), document)
            except ServiceError as error:
                problems.append(f"{document.page_title()}: {error.message}")
        return problems


def _count_text(count: int) -> str:
    return f"{count} document{pluralize(count)}"
