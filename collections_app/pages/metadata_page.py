"""The page on which writers edit a document's metadata."""

import json
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from collections_app import access
from collections_app.http.api.documents import content_etag, find_document, newest_version, replace_metadata
from collections_app.metadata import validation
from collections_app.models import Collection, Document, Version
from collections_app.pages.views import CollectionPage
from system.errors import BadRequest, PreconditionFailed

STALE_MESSAGE = "The metadata was not saved because it was changed in the meantime. The current values are shown below."


class MetadataPage(CollectionPage):
    """`/collections/{sys_id}/documents/{document}/metadata/`: edits the metadata as JSON."""

    http_method_names = ["get", "head", "post", "options"]

    def get(self, request: HttpRequest, sys_id: str, document: str) -> HttpResponse:
        collection, opened_document = self._open(sys_id, document)
        tag = content_etag(newest_version(opened_document))
        return self._show(collection, opened_document, {"text": metadata_json(opened_document), "tag": tag})

    def post(self, request: HttpRequest, sys_id: str, document: str) -> HttpResponse:
        collection, opened_document = self._open(sys_id, document)
        form_values = {"text": request.POST.get("metadata", ""), "tag": request.POST.get("tag", "")}

        def check(version: Version) -> None:
            if not form_values["tag"]:
                raise BadRequest("The form is incomplete. Reload the page and try again.")
            if content_etag(version) != form_values["tag"]:
                raise PreconditionFailed

        try:
            replace_metadata(opened_document, validation.parse_metadata(form_values["text"].strip() or "{}"), check)
        except PreconditionFailed as error:
            form_values["stored"] = metadata_json(find_document(collection, document))
            return self._show(collection, opened_document, {**form_values, "errors": [STALE_MESSAGE]}, error.status)
        except BadRequest as error:
            errors = [problem.message for problem in (error, *error.other_errors)]
            return self._show(collection, opened_document, {**form_values, "errors": errors}, error.status)
        messages.success(request, f"Metadata of “{opened_document.page_title()}” saved.")
        return redirect(self._list_url(collection))

    def _open(self, sys_id: str, document: str) -> tuple[Collection, Document]:
        collection = access.open_collection_by_id(self.user(), sys_id, "write")
        return collection, find_document(collection, document)

    def _list_url(self, collection: Collection) -> str:
        """Returns the URL of the document list. Its filter is in the query string of this page."""
        url, query = reverse("collection", args=[collection.pk]), self.request.GET.urlencode()
        return f"{url}?{query}" if query else url

    def _show(
        self, collection: Collection, opened_document: Document, context: dict[str, Any], status: int = 200
    ) -> HttpResponse:
        title, back_url = opened_document.page_title(), self._list_url(collection)
        context |= {"collection": collection, "title": title, "back_url": back_url}
        return render(self.request, "collections/metadata.html", context, status=status)


def metadata_json(document: Document) -> str:
    return json.dumps(newest_version(document).metadata, indent=2, ensure_ascii=False)
