"""Receives files from the pages, as new documents or as the new content of a document."""

import unicodedata

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from collections_app import access
from collections_app.http import load_requests
from collections_app.ingest import loading
from collections_app.metadata import validation
from collections_app.models import Collection, Document
from collections_app.pages.metadata_rows import rows_json, submitted_rows
from collections_app.pages.views import DocumentsPage, open_document
from system.errors import Conflict, ServiceError
from system.http import uploads

AMBIGUOUS_NAME = "Several documents have this name. Delete all but the one that you want to replace, then try again."


@method_decorator(csrf_exempt, name="dispatch")  # otherwise, the check reads the body of people who are not signed in
class UploadView(DocumentsPage):
    """`/collections/{sys_id}/documents/upload/` and `…/documents/{document}/replace/`: respond to scripts in JSON."""

    body_limit = settings.COLLECTIONS["file_limit"] + uploads.FORM_OVERHEAD_BYTES

    def get(self, request: HttpRequest, sys_id: str, document: str = "") -> HttpResponse:
        """The address of a page that reported a refused upload."""
        access.open_collection_by_id(self.user(), sys_id, "read")
        return redirect("document-page", sys_id, document) if document else redirect("documents-page", sys_id)

    def post(self, request: HttpRequest, sys_id: str, document: str = "") -> HttpResponse:
        collection = access.open_collection_by_id(self.user(), sys_id, "write")
        replaced_document = open_document(collection, document) if document else None
        limits = (settings.COLLECTIONS["file_limit"], settings.DATA_UPLOAD_MAX_NUMBER_FIELDS)
        try:
            with uploads.receive_upload(request, *limits) as upload:
                return self._load(request, collection, replaced_document, upload)
        except ServiceError as error:
            if "text/html" not in request.headers.get("Accept", ""):
                raise
            messages.error(request, error.message)
            if not document:
                return self.show_page(collection, submitted_rows(request.POST), error.status)
        return redirect("document-page", sys_id, document)

    @method_decorator(csrf_protect)
    def _load(
        self, request: HttpRequest, collection: Collection, document: Document | None, upload: uploads.Upload
    ) -> HttpResponse:
        if document is None and "replaces" in request.POST:
            document = find_by_filename(collection, upload.filename)
        metadata = validation.parse_metadata(rows_json(submitted_rows(request.POST)))
        # A replaced document keeps its metadata unless there is new metadata.
        options: loading.LoadOptions = {
            "metadata": metadata or (document.displayed_version().metadata if document else {}),
            "doc_id": document.doc_id if document else None,
            "on_duplicate": "replace" if document else None,
            "wants_to_wait": False,
        }
        load_request = load_requests.from_upload(upload, options)
        result = loading.load_document(self.user(), collection, **load_request)
        if "text/html" not in request.headers.get("Accept", ""):
            state = {"document_status": result.version.state, "duplicate": result.is_duplicate}
            return JsonResponse({"doc_id": result.document.doc_id, **state}, status=200 if result.is_duplicate else 202)
        text = "“{}” already exists." if result.is_duplicate else "“{}” was uploaded."
        messages.success(request, text.format(result.version.filename or result.document.doc_id))
        return redirect("document-page", collection.pk, result.document.pk)


def find_by_filename(collection: Collection, filename: str) -> Document | None:
    """Returns the document with this name, or None; raises Conflict if there are several."""
    name = uploads.clean_filename(filename)
    names = {name, unicodedata.normalize("NFD", name)}  # older names may be stored in NFD
    documents = Document.objects.filter(collection=collection, deleted_at__isnull=True, newest__filename__in=names)
    found = list(documents.select_related("newest").order_by("id")[:2]) if name else []
    if len(found) > 1:
        raise Conflict(AMBIGUOUS_NAME, field=uploads.FILE_FIELD)
    return found[0] if found else None
