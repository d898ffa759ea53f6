"""The pages of collections: the list, one collection with its search and its documents, and a passage in context."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

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
from collections_app.extract.file_formats import ACCEPTED, EXTENSIONS
from collections_app.models import Collection, Document
from collections_app.models.documents import State
from collections_app.pages import passage_context, presenters
from collections_app.pages.forms import MODES, NewCollectionForm, SearchForm
from system.errors import NotFound, ServiceError

A_PAGE = 20
# Address and verb of each action on all listed documents.
BULK_ACTIONS = (("documents-retry", "Retry"), ("documents-reprocess", "Reprocess"), ("documents-delete", "Delete"))


class CollectionPage(LoginRequiredMixin, View):
    """Base of these pages. A part of one is answered to htmx, which says where it will put it; else the whole."""

    def user(self) -> User:
        assert isinstance(self.request.user, User)
        return self.request.user

    def handle_no_permission(self) -> HttpResponseBase:  # type: ignore[override]  # wider than it needs to be
        if self.wanted_part() is None:
            return super().handle_no_permission()
        # The session has ended: the page asks to sign in, not a list inside it.
        return HttpResponse(headers={"HX-Refresh": "true"})

    def wanted_part(self) -> str | None:
        if "HX-Request" not in self.request.headers or "HX-History-Restore-Request" in self.request.headers:
            return None
        return self.request.headers.get("HX-Target", "")

    def asked_page(self, found: Any) -> Page[Any]:
        return Paginator(found, A_PAGE).get_page(self.request.GET.get("page"))


class Listing:
    """What of a list is to be shown: by Part of its name."""

    def __init__(self, asked: QueryDict) -> None:
        # Names are stored composed.
        self.name = unicodedata.normalize("NFC", asked.get("name", "").replace("\x00", "").strip())
        self.asked = {"name": self.name}

    @property
    def address(self) -> str:
        """As it stands in front of the page's number."""
        made = QueryDict(mutable=True)
        made.update({key: value for key, value in self.asked.items() if value})
        return f"{made.urlencode()}&" if made else ""


class Collections(CollectionPage):
    """`/collections/`: what this person may read; making one, for those who may."""

    def get(self, request: HttpRequest) -> HttpResponse:
        return self._show(NewCollectionForm())

    def post(self, request: HttpRequest) -> HttpResponse:
        form = NewCollectionForm(request.POST)
        if not form.is_valid():
            return self._show(form, 400)
        try:
            made = form.make(self.user())
        except ServiceError as error:
            form.add_error("name", error.message)
            return self._show(form, error.status)
        messages.success(request, f"Collection “{made.name}” created.")
        return redirect("collection", made.pk)

    def _show(self, form: NewCollectionForm, status: int = 200) -> HttpResponse:
        listing = Listing(self.request.GET)
        page = self.asked_page(access.readable(self.user()).filter(name__icontains=listing.name))
        found = counts.of([each.pk for each in page])
        seen = {
            "rows": [{"collection": each, "counts": found[each.pk]} for each in page],
            "page": page,
            "listing": listing,
            "is_loading": any(each.unfinished for each in found.values()),
            "may_make": access.may_make(self.user()),
            "form": form,
        }
        part = self.wanted_part() == "collections"
        return render(self.request, f"collections/{'rows' if part else 'list'}.html", seen, status=status)


class OneCollection(CollectionPage):
    """`/collections/{sys_id}/`: a search and its passages, adding documents, and the list of them."""

    def get(self, request: HttpRequest, sys_id: str) -> HttpResponse:
        collection = access.open_by_id(self.user(), sys_id, "read")
        part = self.wanted_part()
        if part == "documents":
            return self.show_documents(collection)
        seen = self._search(collection)
        status = seen["asked"].status
        if part == "results":
            return render(request, "collections/results.html", seen, status=status)
        may = access.rights(self.user(), collection)
        seen |= self._documents(collection) | {
            "may_manage": "manage" in may,
            "settings_address": reverse("admin:collections_app_collection_change", args=[collection.pk]),
            "states": [state.value for state in counts.ORDER],
            "upload_address": reverse("collection-documents", args=[collection.pk]) + "?wait=false",
            "modes": MODES,
            "formats": ACCEPTED,
            "endings": ",".join(f".{each}" for each in EXTENSIONS),
            "file_limit": settings.COLLECTIONS["file_limit"],
            "file_limit_shown": presenters.limit(settings.COLLECTIONS["file_limit"]),
        }
        return render(request, "collections/collection.html", seen, status=status)

    def show_documents(self, collection: Collection, problems: Sequence[str] = ()) -> HttpResponse:
        return render(self.request, "collections/documents.html", self._documents(collection) | {"problems": problems})

    def _search(self, collection: Collection) -> dict[str, Any]:
        form = SearchForm(self.request.GET)
        found = form.search(collection) if form.is_asked else None
        return {
            "collection": collection,
            "asked": form,
            "problem": form.problem,
            "hits": None if found is None else [presenters.hit(each) for each in found.hits],
            "is_near_only": found is not None and all(each.scores["text"] == 0 for each in found.hits),
            "is_without_vectors": found is not None and found.is_without_vectors,
            "more_address": form.more_address if found is not None and len(found.hits) == form.k else "",
            "counts": counts.of([collection.pk])[collection.pk],
        }

    def _documents(self, collection: Collection) -> dict[str, Any]:
        listing = DocumentListing(self.request.GET)
        page = self.asked_page(listing.of(collection))
        return {
            "collection": collection,
            "rows": [presenters.document(each) for each in page],
            "page": page,
            "listing": listing,
            "counts": counts.of([collection.pk])[collection.pk],
            "may_write": "write" in access.rights(self.user(), collection),
            "bulk_actions": BULK_ACTIONS,
        }


class DocumentListing(Listing):
    """Which documents are to be shown: by their state too."""

    def __init__(self, asked: QueryDict) -> None:
        super().__init__(asked)
        state = asked.get("state", "")
        self.state = self.asked["state"] = state if state in State.values else ""

    def of(self, collection: Collection) -> QuerySet[Document]:
        found = Document.objects.filter(collection=collection, deleted_at__isnull=True).order_by("-id")
        if self.name:
            # Files that were loaded before November 2026 may be called as they were sent, decomposed.
            older = Q(newest__filename__icontains=unicodedata.normalize("NFD", self.name))
            found = found.filter(Q(doc_id__icontains=self.name) | Q(newest__filename__icontains=self.name) | older)
        if self.state:
            found = found.filter(newest__state=self.state)
        return presenters.documents(found)


class Passage(CollectionPage):
    """`/collections/{sys_id}/documents/{document}/{generation}/passages/{number}/`: a passage that was found, with what
    stands around it. The generation: another content has other passages under the same numbers."""

    def get(self, request: HttpRequest, sys_id: str, document: str, generation: int, number: int) -> HttpResponse:
        collection = access.open_by_id(self.user(), sys_id, "read")
        asked = request.GET.get("around", "")
        count = int(asked) if asked in map(str, range(1, passage_context.MOST + 1)) else passage_context.STEP
        found = passage_context.of(open_document(collection, document), generation, number, count)
        has_more = not found.is_whole and count < passage_context.MOST
        seen = {
            "collection": collection,
            "document_id": document,
            "found": found,
            "place": f"{document}-{number}",
            "more_address": f"{request.path}?around={min(count * 2, passage_context.MOST)}" if has_more else "",
        }
        part = self.wanted_part() is not None
        return render(request, f"collections/{'around' if part else 'passage'}.html", seen)


class DeleteCollection(CollectionPage):
    http_method_names = ["post", "options"]

    def post(self, request: HttpRequest, sys_id: str) -> HttpResponse:
        collection = access.open_by_id(self.user(), sys_id, "manage")
        if "confirmed" not in request.POST:
            return ask(
                request,
                f"Delete the collection “{collection.name}” with all its documents? This cannot be undone.",
                collection,
            )
        deletion.delete_collection(collection)
        messages.success(request, f"Collection “{collection.name}” deleted.")
        if self.wanted_part() is not None:
            return HttpResponse(headers={"HX-Redirect": reverse("collections")})
        return redirect("collections")


def ask(request: HttpRequest, question: str, collection: Collection, button: str = "Delete") -> HttpResponse:
    """The confirmation page for browsers without scripts."""
    back = reverse("collection", args=[collection.pk])
    return render(request, "collections/confirm.html", {"question": question, "button": button, "back": back})


def open_document(collection: Collection, sys_id: str) -> Document:
    document = Document.objects.filter(collection=collection, pk=sys_id, deleted_at__isnull=True).first()
    if document is None:
        raise NotFound("The document no longer exists.")
    return document
