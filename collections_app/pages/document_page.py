"""The page of a document: its properties and the passages of its text."""

from typing import Any

from django.db.models.functions import Substr
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from collections_app import access
from collections_app.http.api.documents import PDF_TYPE, file_response
from collections_app.models import Chunk, Document, ExtractedText, Version
from collections_app.models.documents import searched_document_ids
from collections_app.pages import presenters
from collections_app.pages.passage_html import PassageRenderer
from collections_app.pages.views import CollectionPage, open_document, upload_context

PASSAGES_PER_PAGE = 20
CHANGED_NOTE = "This document has changed since the link was created. The passage may have moved."
MISSING_NOTE = "The document does not contain this passage."


class DocumentPage(CollectionPage):
    """`/collections/{sys_id}/documents/{document}/`: with `passage` and `version`, a passage is highlighted."""

    def get(self, request: HttpRequest, sys_id: str, document: str) -> HttpResponse:
        collection = access.open_collection_by_id(self.user(), sys_id, "read")
        opened_document = open_document(collection, document)
        version = Version.objects.filter(document=opened_document, is_searched=True).first()
        # The search that linked here; never the URL of anything else.
        results_url = request.GET.get("results", "")
        search_urls = reverse("collection", args=[collection.pk]) + "?", reverse("search-collections") + "?"
        context = self.tab_context(collection, "documents") | {
            "row": presenters.document_context(opened_document, bool(searched_document_ids([opened_document]))),
            "metadata": presenters.metadata_values(opened_document.displayed_version().metadata),
            "results_url": results_url if results_url.startswith(search_urls) else "",
            **upload_context(),
            **(self._preview(opened_document, version) if version else {}),
        }
        return render(request, "collections/document.html", context)

    def _preview(self, document: Document, version: Version) -> dict[str, Any]:
        cited_number, note = self._number("passage"), ""
        if cited_number and self._number("version") not in (None, version.generation):
            cited_number, note = None, CHANGED_NOTE
        elif cited_number and cited_number > version.chunks_count:
            cited_number, note = None, MISSING_NOTE
        page_count = max(1, -(-version.chunks_count // PASSAGES_PER_PAGE))
        page = (cited_number - 1) // PASSAGES_PER_PAGE + 1 if cited_number else self._number("page") or 1
        page = min(page, page_count)
        return {
            "passages": read_passages(document, version, (page - 1) * PASSAGES_PER_PAGE, cited_number),
            "note": note,
            "page": page,
            "page_count": page_count,
            "pdf_url": reverse("document-pdf", args=[document.collection_id, document.pk]) if is_pdf(version) else "",
        }

    def _number(self, name: str) -> int | None:
        text = self.request.GET.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 and int(text) else None


class PdfFile(CollectionPage):
    """`/collections/{sys_id}/documents/{document}/pdf/`: the file with the searched text, for the browser's viewer."""

    def get(self, request: HttpRequest, sys_id: str, document: str) -> HttpResponse:
        opened_document = open_document(access.open_collection_by_id(self.user(), sys_id, "read"), document)
        version = Version.objects.filter(document=opened_document, is_searched=True).first()
        if version is None or not is_pdf(version):
            return redirect("document-page", sys_id, document)
        return file_response(request, version, PDF_TYPE, version.filename or f"{document}.pdf")


class FormerPassagePage(CollectionPage):
    """Redirects `…/documents/{document}/{generation}/passages/{number}/`, to which earlier releases linked."""

    def get(self, request: HttpRequest, sys_id: str, document: str, generation: int, number: int) -> HttpResponse:
        open_document(access.open_collection_by_id(self.user(), sys_id, "read"), document)
        return redirect(presenters.passage_url(sys_id, document, generation, number), permanent=True)


def is_pdf(version: Version) -> bool:
    return version.format == "pdf"


def read_passages(document: Document, version: Version, first: int, cited_number: int | None) -> list[dict[str, Any]]:
    """Returns a page of passages. Together they are the text of the document: a passage ends where the next one begins,
    although it overlaps with it, except the cited one, which is complete. One that continues a table repeats its
    header."""
    following = version.chunks.filter(number__gte=first, number__lte=first + PASSAGES_PER_PAGE).order_by("number")
    chunks = list(following)
    if not chunks:
        return []
    starts = [chunk.char_start for chunk in chunks] + [chunks[-1].char_end]
    cited_index = (cited_number or 0) - 1 - first
    if 0 <= cited_index < len(chunks) - 1:
        starts[cited_index + 1] = max(starts[cited_index + 1], chunks[cited_index].char_end)
    text_part = Substr("text", starts[0] + 1, starts[-1] - starts[0])
    text = ExtractedText.objects.filter(version=version).values_list(text_part, flat=True).first() or ""
    renderer = PassageRenderer()
    passages = []
    for index, (chunk, start, end) in enumerate(zip(chunks, starts, starts[1:], strict=False)):
        part = text[start - starts[0] : end - starts[0]]
        html = renderer.render(chunk.table_header() + part.lstrip("\n"), version.format)
        passages.append(_passage(document, version, chunk, html) | {"is_cited": index == cited_index})
    return passages[:PASSAGES_PER_PAGE]


def _passage(document: Document, version: Version, chunk: Chunk, html: str) -> dict[str, Any]:
    return {
        "number": chunk.number + 1,
        "page": chunk.page,
        "pages": presenters.page_range(chunk.page, chunk.page_end, chunk.page_label, chunk.page_label_end),
        "is_ocr": chunk.is_ocr,
        "headings": " > ".join(chunk.heading_path),
        "url": presenters.passage_url(document.collection_id, document.pk, version.generation, chunk.number),
        "html": html,
    }
