"""The page of a document's metadata, for those who may write in its collection."""

from __future__ import annotations

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
    """`/collections/{sys_id}/documents/{document}/metadata/`: all of them, as a text."""

    http_method_names = ["get", "head", "post", "options"]

    def get(self, request: HttpRequest, sys_id: str, document: str) -> HttpResponse:
        collection, found = self._open(sys_id, document)
        return self._show(collection, found, {"text": pretty(found), "tag": etag_of(newest(found))})

    def post(self, request: HttpRequest, sys_id: str, document: str) -> HttpResponse:
        collection, found = self._open(sys_id, document)
        typed = {"text": request.POST.get("metadata", ""), "tag": request.POST.get("tag", "")}

        def check(sent: Version) -> None:
            if not typed["tag"]:
                raise BadRequest("The form is incomplete. Reload the page and try again.")
            if etag_of(sent) != typed["tag"]:
                raise PreconditionFailed

        try:
            with_metadata(found, validation.read(typed["text"].strip() or "{}"), check)
        except PreconditionFailed as error:
            typed["stored"] = pretty(find(collection, document))
            return self._show(collection, found, {**typed, "errors": [STALE]}, error.status)
        except BadRequest as error:
            said = [each.message for each in (error, *error.others)]
            return self._show(collection, found, {**typed, "errors": said}, error.status)
        messages.success(request, f"Metadata of “{found.page_title()}” saved.")
        return redirect(self._list_of(collection))

    def _open(self, sys_id: str, document: str) -> tuple[Collection, Document]:
        collection = access.open_by_id(self.user(), sys_id, "write")
        return collection, find(collection, document)

    def _list_of(self, collection: Collection) -> str:
        """The page of the list that led here, which stands in this address too."""
        address, asked = reverse("collection", args=[collection.pk]), self.request.GET.urlencode()
        return f"{address}?{asked}" if asked else address

    def _show(self, collection: Collection, found: Document, seen: dict[str, Any], status: int = 200) -> HttpResponse:
        seen |= {"collection": collection, "called": found.page_title(), "back": self._list_of(collection)}
        return render(self.request, "collections/metadata.html", seen, status=status)


def pretty(document: Document) -> str:
    return json.dumps(newest(document).metadata, indent=2, ensure_ascii=False)
