"""The tab on which managers of a collection add and remove web pages and folders to load from."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db.models import OuterRef
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from collections_app import access
from collections_app.models import Collection, Document, Source
from collections_app.models.collections import MAX_NAME_LENGTH
from collections_app.pages.views import CollectionPage, confirmation_page
from collections_app.sources import creation, refresh
from collections_app.sources.folder import WATCHING_IS_OFF
from system.errors import ServiceError
from system.outbound.urls import MAX_URL_LENGTH

URL_NAME = "collection-sources-page"
INTERVALS = {15: "15 minutes", 60: "Hour", 6 * 60: "6 hours", 24 * 60: "Day", 7 * 24 * 60: "Week"}
DELETE_QUESTION = "Delete the source “{}”? The documents that it loaded are kept, but are no longer refreshed."


class SourceForm(forms.Form):
    kind = forms.ChoiceField(choices=Source.Kind.choices)
    address = forms.CharField(label="Address or path", max_length=MAX_URL_LENGTH)
    doc_id = forms.CharField(
        label="Document ID",
        required=False,
        max_length=MAX_NAME_LENGTH,
        help_text="For a web page. Default: its address without https:// and query. Replaces a document with this ID.",
    )
    interval_minutes = forms.TypedChoiceField(
        label="Refresh every", choices=list(INTERVALS.items()), coerce=int, initial=24 * 60
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        allowed_text = ", ".join(map(str, settings.WATCH_DIRS))
        folder_text = f"A folder is one of these, or below: {allowed_text}" if allowed_text else WATCHING_IS_OFF
        self.fields["address"].help_text = f"A web page begins with https:// and needs no sign-in. {folder_text}"


class SourcesPage(CollectionPage):
    """`/collections/{sys_id}/sources/`"""

    def get(self, request: HttpRequest, sys_id: str) -> HttpResponse:
        return self._show(access.open_collection_by_id(self.user(), sys_id, "manage"))

    def post(self, request: HttpRequest, sys_id: str) -> HttpResponse:
        collection = access.open_collection_by_id(self.user(), sys_id, "manage")
        form = SourceForm(request.POST)
        if form.is_valid():
            try:
                creation.create_source(collection, Source(**form.cleaned_data))
                messages.success(request, "The source was added. It will be loaded in a few seconds.")
                return redirect(URL_NAME, collection.pk)
            except ServiceError as error:
                form.add_error(error.field if error.field in form.fields else None, error.message)
        return self._show(collection, form, 400)

    def _show(self, collection: Collection, form: SourceForm | None = None, status: int = 200) -> HttpResponse:
        documents = Document.objects.filter(collection=collection, deleted_at__isnull=True, doc_id=OuterRef("doc_id"))
        sources = list(collection.sources.annotate(document_id=documents.values("pk")[:1]))
        context = self.tab_context(collection, "sources") | {"sources": sources, "form": form or SourceForm()}
        return render(self.request, "collections/sources.html", context, status=status)


class SourceAction(CollectionPage):
    def post(self, request: HttpRequest, sys_id: str, source: str, action: str) -> HttpResponse:
        collection = access.open_collection_by_id(self.user(), sys_id, "manage")
        opened_source = creation.find_source(collection, source)
        if action == "refresh":
            refresh.request_refresh(opened_source)
            messages.success(request, f"“{opened_source}” will be refreshed in a few seconds.")
        elif "confirmed" not in request.POST:
            return confirmation_page(request, DELETE_QUESTION.format(opened_source), collection, tab=URL_NAME)
        else:
            opened_source.delete()
            messages.success(request, f"“{opened_source}” was deleted. Its documents were kept.")
        return redirect(URL_NAME, collection.pk)
