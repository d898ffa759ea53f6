"""A folder of mixed files: each is loaded, or refused with its reason, and none fails because of the service."""

import json
import zipfile
from email.message import EmailMessage

import docx
import openpyxl
import pptx
import pytest
from odf.opendocument import OpenDocumentText

from collections_app.extract import extract
from collections_app.models import Version
from tests.collections_app.extract.hostile_archives import with_patched_headers, zip_of
from tests.collections_app.extract.hostile_pdfs import encrypted_pdf
from tests.collections_app.extract.limits import limits_for_tests
from tests.collections_app.extract.samples import (
    EML,
    FILENAMES,
    MARKDOWN,
    SAMPLE_FILES,
    epub_file,
    pdf_file,
    saved_bytes,
    xlsx_file,
    zip_file,
)
from tests.collections_app.extract.test_formats import ENCODED_TEXTS
from tests.collections_app.http.calls import SEARCH_PATH, KeyCaller

pytestmark = [pytest.mark.django_db, pytest.mark.nightly]

RUSSIAN = "Заявка закрыта, потому что принтер снова печатает. Спасибо за ожидание.\n"


def workbook(*rows: list[object]) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    return saved_bytes(book.save)


def mail(body: str, *, subtype: str = "plain", charset: str = "utf-8") -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "ann@example.com", "bob@example.com", "Принтер"
    message.set_content(body, subtype=subtype, charset=charset)
    message.add_attachment(b"%PDF-1.7", maintype="application", subtype="pdf", filename="план.pdf")
    return message.as_bytes()


def with_password(archive: bytes, entry: str) -> bytes:
    return with_patched_headers(archive, entry, local={6: b"\1\0"}, central={8: b"\1\0"})


READY: dict[str, bytes] = {
    **{f"sample-{name}": SAMPLE_FILES[format] for format, name in FILENAMES.items()},
    **{f"{number} {encoding}.txt": text.encode(encoding) for number, (text, encoding) in enumerate(ENCODED_TEXTS[:14])},
    "UPPER.TXT": b"Upper case.",
    "имя файла.md": RUSSIAN.encode(),
    "名前.csv": "名前,市\n花子,東京\n".encode("shift_jis"),
    "tabs.tsv": RUSSIAN.replace(" ", "\t").encode("utf-16"),
    "crlf.md": MARKDOWN.replace("\n", "\r\n").encode(),
    "long table.xlsx": xlsx_file(3_000),
    "wide.xlsx": workbook([f"Column {number}" for number in range(300)], list(range(300))),
    "titles.xlsx": workbook(["Report"], [], ["Part", 2023, 2024], ["a|b", 1.5, None]),
    "page.htm": b"<p>Only <b>a fragment",
    "old.html": f"<html><meta charset=windows-1251><p>{RUSSIAN * 20}".encode("cp1251"),
    "layout.html": b"<html><table><tr><td><h1>Head</h1><td><table><tr><td>a<td>b</table></table>",
    "html mail.eml": mail("<table><tr><th>a<th>b<tr><td>1<td>2</table>", subtype="html"),
    "koi8 mail.eml": mail(RUSSIAN, charset="koi8-r"),
    "mbox.eml": b"From ann@example.com Mon Jan  1 10:00:00 2024\n" + EML,
    "large page.pdf": pdf_file(["word " * 300] * 30),
    "book.epub": epub_file({f"{number}.xhtml": f"<h2>Chapter {number}</h2><p>Text." for number in range(30)}),
    "old notebook.ipynb": json.dumps({"nbformat": 3, "worksheets": [{"cells": [
        {"cell_type": "heading", "level": 2, "source": ["Old"]}, {"cell_type": "code", "input": "1", "outputs": []},
    ]}]}).encode(),
    "sphinx.rst": b"Title\n=====\n\n.. toctree::\n\n   a\n\n.. _x:\n\nPart\n----\n:ref:`x`\n",
    "some.zip": zip_file({"a.txt": b"A note.", "b.exe": b"MZ\0\0", "c.docx": b"broken"}),
}  # fmt: skip
EMPTY: dict[str, bytes] = {
    "blank.txt": b" \n\t\n",
    "scan.pdf": pdf_file([""]),
    "blank.docx": saved_bytes(docx.Document().save),
    "blank.pptx": saved_bytes(pptx.Presentation().save),
    "blank.odt": saved_bytes(OpenDocumentText().write),
    "blank.csv": b";;\n;;\n",
    "blank.zip": zip_file({}),
    "script.html": b"<html><script>x()</script></html>",
}
FAILED: dict[str, tuple[bytes, str]] = {
    "half.docx": (SAMPLE_FILES["docx"][:9_000], "damaged"),
    "half.odt": (SAMPLE_FILES["odt"][:-200], "damaged"),
    "broken.pdf": (b"%PDF-1.7\nbroken", "damaged"),
    "notes.ipynb": (b'{"not": "a notebook"}', "damaged"),
    "locked.docx": (with_password(SAMPLE_FILES["docx"], "word/document.xml"), "encrypted"),
    "locked.zip": (with_password(zip_file({"a.txt": b"A note."}), "a.txt"), "encrypted"),
    "locked.pdf": (encrypted_pdf("secret", "secret"), "encrypted"),
    "nothing.zip": (zip_file({"a.png": b"x", "b.zip": zip_file({})}), "damaged"),
    "lzma.zip": (zip_of([("a.txt", b"A note.")], zipfile.ZIP_LZMA), "damaged"),
}
REFUSED: dict[str, bytes] = {
    "empty.txt": b"",
    "old.doc": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500),
    "locked.xlsx": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500),
    "picture.png": b"\x89PNG\r\n\x1a\n\0",
    "renamed.pdf": SAMPLE_FILES["docx"],
    "renamed.zip": SAMPLE_FILES["xlsx"],
    "program.txt": b"\x7fELF\2\1\1" + bytes(range(256)),
    "sheet.ods": zip_file({"mimetype": b"application/vnd.oasis.opendocument.spreadsheet"}),
}


def test_folder_has_sixty_files():
    assert len(READY) + len(EMPTY) + len(FAILED) + len(REFUSED) >= 60


@pytest.mark.parametrize("name", READY)
def test_readable_file_is_found(name: str, manager: KeyCaller):
    response = manager.upload(READY[name], name, collection_name="folder")

    assert (response.status_code, response.json()["document_status"]) == (201, "ready"), response.json()
    assert len(response.json()["warnings"]) == (2 if name == "some.zip" else 0)
    (hit,) = manager.get(SEARCH_PATH, collection_names="folder", query="text", k=1).json()
    assert hit["filename"] == name and len(hit["page_content"]) <= 1000


@pytest.mark.parametrize("name", EMPTY)
def test_file_without_text_is_empty(name: str, manager: KeyCaller):
    body = manager.upload(EMPTY[name], name, collection_name="folder").json()

    assert body["document_status"] == "empty" and "No text was found" in body["warnings"][-1]


@pytest.mark.parametrize("name", FAILED)
def test_file_that_cannot_be_read_fails_with_the_reason(name: str, manager: KeyCaller):
    data, reason = FAILED[name]
    response = manager.upload(data, name, collection_name="folder")

    assert (response.status_code, Version.objects.get().error_code) == (422, reason), response.json()


@pytest.mark.parametrize("name", REFUSED)
def test_file_of_another_format_is_refused(name: str, manager: KeyCaller):
    response = manager.upload(REFUSED[name], name, collection_name="folder")

    assert response.status_code == (400 if name == "empty.txt" else 415), response.json()
    assert not Version.objects.exists()


def test_files_of_an_archive_are_read_or_named():
    files = {name: data for name, data in READY.items() if not name.endswith(".zip")}
    others = {name: data for name, (data, _) in FAILED.items()} | REFUSED | EMPTY
    result = extract(zip_file(files | others), "zip", limits_for_tests(wall_s=300.0))

    assert [warning.split(": ")[0] for warning in result.warnings] == list(others)
    assert {heading.path[0] for heading in result.headings} == set(files)
