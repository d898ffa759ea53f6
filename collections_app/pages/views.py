"""The list of collections, the list of documents in one, and the base class of the collection pages."""

import unicodedata
from collections.abc import Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.core.paginator import Page, Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views import View

from accounts.models import User
from collections_app import access
from collections_app.documents import counts, deletion
from collections_app.extract.file_formats import EXTENSIONS, FORMAT_LABELS
from collections_app.models import Collection, Document
from collections_app.models.collections import MAX_NAME_LENGTH, normalize_name
from collections_app.models.documents import VersionState, searched_document_ids
from collections_app.pages import presenters
from collections_app.pages.metadata_rows import rows_context
from collections_app.vectors import reembedding
from system.errors import NotFound, ServiceError

PAGE_SIZE = 20
# URL name and verb of each action on all listed documents.
BULK_ACTIONS = (("documents-retry", "Retry"), ("documents-reprocess", "Reprocess"), ("documents-delete", "Delete"))


class CollectionPage(LoginRequiredMixin, View):
    """Base class of the collection pages. An htmx request gets only the part that it replaces."""

    def user(self) -> User:
        assert isinstance(self.request.user, User)
        return self.request.user

    def handle_no_permission(self) -> HttpResponseBase:  # type: ignore[override]  # wider type
        if self.requested_part() is None:
            return super().handle_no_permission()
        # The session has ended. Reload the page, which then redirects to the sign-in page.
        return HttpResponse(headers={"HX-Refresh": "true"})

    def requested_part(self) -> str | None:
        if "HX-Request" not in self.request.headers or "HX-History-Restore-Request" in self.request.headers:
            return None
        return self.request.headers.get("HX-Target", "")

    def requested_page(self, rows: Any) -> Page[Any]:
        return Paginator(rows, PAGE_SIZE).get_page(self.request.GET.get("page"))

    def tab_context(self, collection: Collection, tab: str) -> dict[str, Any]:
        """The context of `tabs.html`, which offers only the tabs that the user may open."""
        rights = access.rights(self.user(), collection)
        may_write, may_manage = "write" in rights, "manage" in rights
        progress = reembedding.read_progress(collection)
        return {
            "collection": collection, "tab": tab, "may_write": may_write, "may_manage": may_manage, "progress": progress
        }  # fmt: skip


class NameFilter:
    def __init__(self, query_params: QueryDict) -> None:
        # Names are stored in NFC.
        self.name = unicodedata.normalize("NFC", query_params.get("name", "").replace("\x00", "").strip())
        self.filters = {"name": self.name}

    @property
    def query_prefix(self) -> str:
        """The query string of the filter, to which templates append the page number."""
        query = QueryDict(mutable=True)
        query.update({name: value for name, value in self.filters.items() if value})
        return f"{query.urlencode()}&" if query else ""


class NewCollectionForm(forms.Form):
    name = forms.CharField(
        max_length=MAX_NAME_LENGTH, help_text="You can choose the readers and writers later, under Access."
    )


class CollectionListPage(CollectionPage):
    """`/collections/`: the collections that the user can read, and a form to create one."""

    def get(self, request: HttpRequest) -> HttpResponse:
        return self._show(NewCollectionForm())

    def post(self, request: HttpRequest) -> HttpResponse:
        form = NewCollectionForm(request.POST)
        if not form.is_valid():
            return self._show(form, 400)
        try:
            name = normalize_name(form.cleaned_data["name"])
            collection = access.create_collection(self.user(), Collection(name=name))
        except ServiceError as error:
            form.add_error("name", error.message)
            return self._show(form, error.status)
        messages.success(request, f"Collection “{collection.name}” created.")
        return redirect("documents-page", collection.pk)

    def _show(self, form: NewCollectionForm, status: int = 200) -> HttpResponse:
        list_filter = NameFilter(self.request.GET)
        page = self.requested_page(access.readable_collections(self.user()).filter(name__icontains=list_filter.name))
        counts_by_id = counts.count_by_collection([collection.pk for collection in page])
        context = {
            "rows": [{"collection": collection, "counts": counts_by_id[collection.pk]} for collection in page],
            "page": page,
            "list_filter": list_filter,
            "is_loading": any(collection_counts.unfinished_count for collection_counts in counts_by_id.values()),
            "may_create": access.may_create_collections(self.user()),
            "form": form,
        }
        template = "collection_rows" if self.requested_part() == "collections" else "list"
        return render(self.request, f"collections/{template}.html", context, status=status)


class DocumentsPage(CollectionPage):
    """`/collections/{sys_id}/documents/`: uploads and the list of documents."""

    def get(self, request: HttpRequest, sys_id: str) -> HttpResponse:
        collection = access.open_collection_by_id(self.user(), sys_id, "read")
        if self.requested_part() == "documents":
            return self.show_documents(collection)
        return self.show_page(collection)

    def show_page(self, collection: Collection, rows: Sequence[dict[str, str]] = (), status: int = 200) -> HttpResponse:
        context = self._documents_context(collection) | {
            "states": [state.value for state in counts.STATE_ORDER],
            "formats": FORMAT_LABELS,
            **upload_context(),
            **rows_context(rows),
        }
        return render(self.request, "collections/documents.html", context, status=status)

    def show_documents(self, collection: Collection, problems: Sequence[str] = ()) -> HttpResponse:
        context = self._documents_context(collection) | {"problems": problems}
        return render(self.request, "collections/document_rows.html", context)

    def _documents_context(self, collection: Collection) -> dict[str, Any]:
        list_filter = DocumentFilter(self.request.GET)
        page = self.requested_page(list_filter.filter_documents(collection))
        searched_ids = searched_document_ids(page)
        return self.tab_context(collection, "documents") | {
            "rows": [presenters.document_context(document, document.pk in searched_ids) for document in page],
            "page": page,
            "list_filter": list_filter,
            "counts": counts.count_by_collection([collection.pk])[collection.pk],
            "bulk_actions": BULK_ACTIONS,
        }


def upload_context() -> dict[str, Any]:
    return {
        "extensions": ",".join(f".{extension}" for extension in EXTENSIONS),
        "file_limit": settings.COLLECTIONS["file_limit"],
        "file_limit_text": presenters.size_text(settings.COLLECTIONS["file_limit"]),
    }


class DocumentFilter(NameFilter):
    def __init__(self, query_params: QueryDict) -> None:
        super().__init__(query_params)
        state = query_params.get("state", "")
        self.state = self.filters["state"] = state if state in VersionState.values else ""

    def filter_documents(self, collection: Collection) -> QuerySet[Document]:
        documents = Document.objects.filter(collection=collection, deleted_at__isnull=True).order_by("-id")
        if self.name:
            # Older file names may be stored in NFD.
            has_decomposed_name = Q(newest__filename__icontains=unicodedata.normalize("NFD", self.name))
            has_name = Q(doc_id__icontains=self.name) | Q(newest__filename__icontains=self.name) | has_decomposed_name
            documents = documents.filter(has_name)
        if self.state:
            documents = documents.filter(newest__state=self.state)
        return documents.select_related("newest")


class DeleteCollection(CollectionPage):
    def post(self, request: HttpRequest, sys_id: str) -> HttpResponse:
        collection = access.open_collection_by_id(self.user(), sys_id, "manage")
        if "confirmed" not in request.POST:
            question = f"Delete the collection “{collection.name}” and all its documents? This cannot be undone."
            return confirmation_page(request, question, collection, tab="collection-settings-page")
        deletion.delete_collection(collection)
        messages.success(request, f"Collection “{collection.name}” deleted.")
        if self.requested_part() is not None:
            return HttpResponse(headers={"HX-Redirect": reverse("collections")})
        return redirect("collections")


def confirmation_page(
    request: HttpRequest, question: str, collection: Collection, button: str = "Delete", tab: str = "documents-page"
) -> HttpResponse:
    """Asks before the request is sent again, with the selected documents and with `confirmed`. *Cancel* leads back to
    a tab of the collection."""
    context = {
        "question": question,
        "button": button,
        "back_url": reverse(tab, args=[collection.pk]),
        "is_selection": "selection" in request.POST,
        "document_ids": request.POST.getlist("document"),
    }
    return render(request, "collections/confirm.html", context)


def open_document(collection: Collection, sys_id: str) -> Document:
    document = Document.objects.filter(collection=collection, pk=sys_id, deleted_at__isnull=True).first()
    if document is None:
        raise NotFound("The document no longer exists.")
    return document
