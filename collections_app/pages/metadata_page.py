"""Edits the metadata of a document, as fields or as JSON."""

import json
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from collections_app import access
from collections_app.http.api.documents import content_etag, find_document, replace_metadata
from collections_app.metadata import validation
from collections_app.models import Collection, Document, Version
from collections_app.pages.metadata_rows import rows_context, rows_json, submitted_rows, to_rows
from collections_app.pages.views import CollectionPage
from system.errors import BadRequest, PreconditionFailed

STALE_MESSAGE = "The metadata was not saved because it was changed in the meantime. The current values are shown below."


class MetadataPage(CollectionPage):
    """`/collections/{sys_id}/documents/{document}/metadata/`"""

    def get(self, request: HttpRequest, sys_id: str, document: str) -> HttpResponse:
        collection, opened_document = self._open(sys_id, document)
        version = opened_document.displayed_version()
        form_values = {"text": metadata_json(opened_document), "rows": to_rows(version.metadata)}
        return self._show(collection, opened_document, {**form_values, "tag": content_etag(version)})

    def post(self, request: HttpRequest, sys_id: str, document: str) -> HttpResponse:
        collection, opened_document = self._open(sys_id, document)
        is_json = "metadata" in request.POST
        form_values: dict[str, Any] = {"tag": request.POST.get("tag", ""), "is_json": is_json}
        form_values["text"] = request.POST.get("metadata", "") if is_json else metadata_json(opened_document)
        stored_metadata = opened_document.displayed_version().metadata
        form_values["rows"] = to_rows(stored_metadata) if is_json else submitted_rows(request.POST)

        def check(version: Version) -> None:
            if not form_values["tag"]:
                raise BadRequest("The form is incomplete. Reload the page and try again.")
            if content_etag(version) != form_values["tag"]:
                raise PreconditionFailed(STALE_MESSAGE)

        try:
            text = (form_values["text"].strip() or "{}") if is_json else rows_json(form_values["rows"])
            replace_metadata(opened_document, validation.parse_metadata(text), check)
        except (PreconditionFailed, BadRequest) as error:
            if isinstance(error, PreconditionFailed):
                form_values["stored"] = metadata_json(find_document(collection, document))
            form_values["errors"] = [problem.message for problem in (error, *error.other_errors)]
            return self._show(collection, opened_document, form_values, error.status)
        messages.success(request, f"Metadata of “{opened_document.page_title()}” saved.")
        return redirect(self._list_url(collection))

    def _open(self, sys_id: str, document: str) -> tuple[Collection, Document]:
        collection = access.open_collection_by_id(self.user(), sys_id, "write")
        return collection, find_document(collection, document)

    def _list_url(self, collection: Collection) -> str:
        """Returns the URL of the document list. Its filter is in the query string of this page."""
        url, query = reverse("documents-page", args=[collection.pk]), self.request.GET.urlencode()
        return f"{url}?{query}" if query else url

    def _show(
        self, collection: Collection, opened_document: Document, context: dict[str, Any], status: int = 200
    ) -> HttpResponse:
        context |= {"collection": collection, "title": opened_document.page_title()}
        context |= {"back_url": self._list_url(collection), **rows_context(context["rows"])}
        return render(self.request, "collections/metadata.html", context, status=status)


def metadata_json(document: Document) -> str:
    return json.dumps(document.displayed_version().metadata, indent=2, ensure_ascii=False)
