"""The page of a document's metadata, for writers of its collection."""

import json
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from collections_app import access
from collections_app.http.api.documents import etag_of, find, newest, with_metadata
from collections_app.metadata import validation
from collections_app.models import Collection, Document, Version
from collections_app.pages.views import CollectionPage
from system.errors import BadRequest, PreconditionFailed

STALE = "Not saved: the metadata was changed since you opened this page. The current values are shown below."


class DocumentMetadata(CollectionPage):
    """`/collections/{sys_id}/documents/{document}/metadata/`: the metadata as JSON text."""

    http_method_names = ["get", "head", "post", "options"]

    def get(self, request: HttpRequest, sys_id: str, document: str) -> HttpResponse:
        collection, opened = self._open(sys_id, document)
        return self._show(collection, opened, {"text": pretty(opened), "tag": etag_of(newest(opened))})

    def post(self, request: HttpRequest, sys_id: str, document: str) -> HttpResponse:
        collection, opened = self._open(sys_id, document)
        sent = {"text": request.POST.get("metadata", ""), "tag": request.POST.get("tag", "")}

        def check(version: Version) -> None:
            if not sent["tag"]:
                raise BadRequest("The form is incomplete. Reload the page and try again.")
            if etag_of(version) != sent["tag"]:
                raise PreconditionFailed

        try:
            with_metadata(opened, validation.read(sent["text"].strip() or "{}"), check)
        except PreconditionFailed as error:
            sent["stored"] = pretty(find(collection, document))
            return self._show(collection, opened, {**sent, "errors": [STALE]}, error.status)
        except BadRequest as error:
            errors = [problem.message for problem in (error, *error.others)]
            return self._show(collection, opened, {**sent, "errors": errors}, error.status)
        messages.success(request, f"Metadata of “{opened.page_title()}” saved.")
        return redirect(self._list_of(collection))

    def _open(self, sys_id: str, document: str) -> tuple[Collection, Document]:
        collection = access.open_by_id(self.user(), sys_id, "write")
        return collection, find(collection, document)

    def _list_of(self, collection: Collection) -> str:
        """The address of the list that led here; its filter is in the query string of this page."""
        address, query = reverse("collection", args=[collection.pk]), self.request.GET.urlencode()
        return f"{address}?{query}" if query else address

    def _show(self, collection: Collection, opened: Document, page: dict[str, Any], status: int = 200) -> HttpResponse:
        page |= {"collection": collection, "title": opened.page_title(), "back": self._list_of(collection)}
        return render(self.request, "collections/metadata.html", page, status=status)


def pretty(document: Document) -> str:
    return json.dumps(newest(document).metadata, indent=2, ensure_ascii=False)
