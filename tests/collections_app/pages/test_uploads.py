"""Uploads from the pages: forms without scripts, metadata in rows, replacements, and the originals of PDF files."""

import re
from html import escape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from accounts.models import User
from collections_app.documents import storage
from collections_app.ingest import worker
from collections_app.models import Collection, Document, Version
from tests.collections_app import library
from tests.collections_app.test_pages import documents_page_path, page_html
from tests.support.users import signed_in_client

pytestmark = pytest.mark.django_db

PAGE_HEADERS = {"Accept": "text/html"}


def upload_path(collection: Collection) -> str:
    return reverse("documents-upload", args=[collection.pk])


def document_url(document: Document, name: str) -> str:
    return reverse(f"document-{name}", args=[document.collection_id, document.pk])


def file(name: str = "guide.md", content: bytes = b"# Guide\n\nThe lamp.") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


def metadata_rows(*rows: tuple[str, str, str]) -> dict[str, list[str]]:
    return {f"field_{column}": [row[index] for row in rows] for index, column in enumerate(("name", "type", "value"))}


def newest_version(document: Document) -> Version:
    document.refresh_from_db()
    assert document.newest is not None
    return document.newest


def test_form_without_scripts_stores_a_file_with_metadata(as_carl: Client):
    collection = library.make_library_collection()
    rows = metadata_rows(
        ("type", "text", "manual"), ("priority", "number", "2"), ("tags", "list", "a, b"), ("", "text", "")
    )
    response = as_carl.post(upload_path(collection), {"file": file(), **rows}, headers=PAGE_HEADERS, follow=True)
    document = Document.objects.select_related("newest").get()
    assert response.redirect_chain == [(document_url(document, "page"), 302)]
    assert "“guide.md” was uploaded." in page_html(response)
    assert newest_version(document).metadata == {"type": "manual", "priority": 2, "tags": ["a", "b"]}
    second_response = as_carl.post(upload_path(collection), {"file": file(), **rows}, headers=PAGE_HEADERS, follow=True)
    assert "“guide.md” already exists." in page_html(second_response) and Document.objects.count() == 1


def test_scripts_get_the_result_as_json(as_carl: Client):
    collection = library.make_library_collection()
    response = as_carl.post(upload_path(collection), {"file": file()})
    document = Document.objects.get()
    assert response.status_code == 202
    assert response.json() == {"doc_id": document.doc_id, "document_status": "queued", "duplicate": False}
    refused_response = as_carl.post(upload_path(collection), {"file": file("a.exe", b"MZ\x00\x00")})
    assert refused_response.status_code == 415 and "errors" in refused_response.json()


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({}, "Send one file"),
        ({"file": file("empty.md", b"")}, "The file is empty."),
        ({"file": file("a.exe", b"MZ\x00\x00")}, "The extension .exe is not accepted."),
        ({"file": file(), **metadata_rows(("weight", "number", "heavy"))}, "weight: a number is expected"),
        ({"file": file(), **metadata_rows(("priority", "text", "high"))}, "priority must be a whole number"),
    ],
    ids=["no file", "empty", "format", "row", "metadata"],
)
def test_refused_upload_is_reported_on_the_page(as_carl: Client, form: dict[str, Any], message: str):
    collection = library.make_library_collection()
    rows = {"field_name": ["note"], "field_type": ["list"], "field_value": ["<a>, b"], "replaces": "on", **form}
    response = as_carl.post(upload_path(collection), rows, headers=PAGE_HEADERS)
    page = page_html(response)
    assert response.status_code in (400, 415, 422) and message in page and not Document.objects.exists()
    for name, value in zip(rows["field_name"], rows["field_value"], strict=True):
        assert f'placeholder="Name" value="{name}"' in page and f'placeholder="Value" value="{escape(value)}"' in page
    selected_types = re.findall('<option value="([a-z]+)" selected', page)
    assert selected_types == [*rows["field_type"], "text", "text"] and 'name="replaces" checked' in page


def test_many_fields_of_metadata_are_accepted(as_carl: Client):
    rows = metadata_rows(*[(f"field {number}", "text", "x") for number in range(40)])
    assert as_carl.post(upload_path(library.make_library_collection()), {"file": file(), **rows}).status_code == 202


def test_file_of_any_name_replaces_the_document_and_keeps_its_metadata(as_carl: Client):
    document = library.add_document(library.make_library_collection(), metadata={"type": "old"})
    assert f'action="{document_url(document, "replace")}"' in page_html(as_carl.get(document_url(document, "page")))
    response = as_carl.post(document_url(document, "replace"), {"file": file("other.md")}, headers=PAGE_HEADERS)
    assert response["Location"] == document_url(document, "page")
    version = newest_version(document)
    assert (version.generation, version.filename, version.metadata) == (2, "other.md", {"type": "old"})
    form = {"file": file("third.md", b"# Third"), **metadata_rows(("type", "text", "new"))}
    assert as_carl.post(document_url(document, "replace"), form).status_code == 202
    assert newest_version(document).metadata == {"type": "new"} and Document.objects.count() == 1


@pytest.mark.parametrize("stored_name", ["caf\u00e9.md", "cafe\u0301.md"])
def test_document_with_the_same_name_is_replaced(as_carl: Client, stored_name: str):
    collection = library.make_library_collection()
    document = library.add_document(collection, metadata={"type": "old"})
    Version.objects.update(filename=stored_name)
    other_document = library.add_document(library.make_library_collection("Other"), "Other", filename="café.md")
    for name in ("caf\u00e9.md", "new.md"):
        form = {"file": file(name), "replaces": "on"}
        assert as_carl.post(upload_path(collection), form).status_code == 202
    assert newest_version(document).generation == 2 and newest_version(document).metadata == {"type": "old"}
    assert newest_version(other_document).generation == 1 and collection.documents.count() == 2


def test_ambiguous_name_is_refused(as_carl: Client):
    collection = library.make_library_collection()
    for text in ("One", "Two"):
        library.add_document(collection, text, filename="guide.md")
    response = as_carl.post(upload_path(collection), {"file": file(), "replaces": "on"})
    assert response.status_code == 409 and "Several documents have this name" in page_html(response)
    assert collection.documents.count() == 2


def test_only_writers_upload_and_replace(as_rita: Client, as_bob: Client):  # C02
    document = library.add_document(library.make_library_collection(readers=("itil",)))
    assert "Replace the file" not in page_html(as_rita.get(document_url(document, "page")))
    for path in (upload_path(document.collection), document_url(document, "replace")):
        assert as_rita.post(path, {"file": file()}).status_code == 403
        assert as_bob.post(path, {"file": file()}).status_code == 404
        response = Client().post(path, {"file": file()})
        assert response.status_code == 302 and response["Location"].startswith("/login/")
    assert newest_version(document).generation == 1


def test_document_of_another_collection_cannot_be_replaced(as_carl: Client):  # C12
    document = library.add_document(library.make_library_collection())
    other_collection = library.make_library_collection("Other")
    path = reverse("document-replace", args=[other_collection.pk, document.pk])
    assert as_carl.post(path, {"file": file()}).status_code == 404 and newest_version(document).generation == 1


def test_forged_uploads_are_refused(carl: User):
    collection = library.make_library_collection()
    browser = signed_in_client(carl, enforce_csrf_checks=True)
    assert browser.post(upload_path(collection), {"file": file()}).status_code == 403
    browser.get(documents_page_path(collection))
    form = {"file": file(), "csrfmiddlewaretoken": browser.cookies["servicebase_csrf"].value}
    assert browser.post(upload_path(collection), form).status_code == 202


class TestPdfFile:
    def add_pdf(self, collection: Collection, *pages: str, doc_id: str = "manual") -> Document:
        result = storage.store_document(
            collection=collection, data=library.pdf(*pages), filename="manual.pdf", format="pdf", metadata={},
            doc_id=doc_id, on_duplicate="replace", user_id="", takes_lease=True,
        )  # fmt: skip
        worker.process_in_request(result, timeout_s=30)
        return result.document

    def test_passage_leads_to_its_page_of_the_pdf(self, as_rita: Client):
        collection = library.make_library_collection(readers=("itil",))
        Collection.objects.filter(pk=collection.pk).update(chunk_size=100, chunk_overlap=0)
        long_text = "The toner is red and the lamp is green, or so it seems to be in this manual"
        document = self.add_pdf(collection.refreshed(), long_text, long_text.replace("red", "blue"))
        page = page_html(as_rita.get(document_url(document, "page")))
        pdf_url = document_url(document, "pdf")
        for number in (1, 2):
            link = f'<a href="{pdf_url}#page={number}" aria-label="Open the PDF at page {number}">page {number}</a>'
            assert link in page
        response = as_rita.get(pdf_url)
        assert response["Content-Type"] == "application/pdf" and response.content.startswith(b"%PDF-")
        assert response["Content-Disposition"] == 'inline; filename="manual.pdf"'
        assert response["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert response["X-Content-Type-Options"] == "nosniff" and response["X-Frame-Options"] == "DENY"

    def test_it_is_the_version_whose_text_is_shown(self, as_carl: Client):
        collection = library.make_library_collection()
        document = self.add_pdf(collection, "First edition")
        first_file = as_carl.get(document_url(document, "pdf")).content
        as_carl.post(document_url(document, "replace"), {"file": file("second.pdf", library.pdf("Second"))})
        assert newest_version(document).generation == 2
        assert as_carl.get(document_url(document, "pdf")).content == first_file

    def test_other_formats_are_never_opened(self, as_carl: Client, as_bob: Client):
        document = library.add_document(library.make_library_collection(), filename="fake.pdf")
        assert document_url(document, "pdf") not in page_html(as_carl.get(document_url(document, "page")))
        assert as_carl.get(document_url(document, "pdf"))["Location"] == document_url(document, "page")
        assert as_bob.get(document_url(document, "pdf")).status_code == 404
