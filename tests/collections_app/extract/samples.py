"""Generates valid files of every format."""

import json
import zipfile
from collections.abc import Callable
from io import BytesIO

import docx
import openpyxl
import pptx
from docx.shared import Pt
from odf import table, text
from odf.opendocument import OpenDocumentText

LOREM = "The quick brown fox jumps over the lazy dog near the bank of the river while nobody looks. "


def pdf_file(
    pages: list[str], *, trailer: dict[bytes, bytes] | None = None, media_box: bytes = b"0 0 612 792"
) -> bytes:
    """A PDF with one page for each text."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids = []
    for page in pages:
        lines = b" T* ".join(b"(" + escaped_pdf_text(line) + b") Tj" for line in page.split("\n"))
        content = b"BT /F1 10 Tf 12 TL 40 750 Td " + lines + b" ET"
        kids.append(b"%d 0 R" % (len(objects) + 1))
        objects += [
            b"<</Type/Page/Parent 2 0 R/MediaBox[" + media_box + b"]/Resources<</Font<</F1 3 0 R>>>>"
            b"/Contents %d 0 R>>" % (len(objects) + 2),
            pdf_stream(content),
        ]
    objects[1] = b"<</Type/Pages/Count %d/Kids[%b]>>" % (len(kids), b" ".join(kids))
    return pdf_of(objects, trailer)


def escaped_pdf_text(line: str) -> bytes:
    return line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)").encode("latin-1")


def pdf_stream(content: bytes, entries: bytes = b"") -> bytes:
    return b"<</Length %d%b>>stream\n%b\nendstream" % (len(content), entries, content)


def pdf_of(objects: list[bytes], trailer: dict[bytes, bytes] | None = None) -> bytes:
    """A PDF of these objects, numbered from 1; the first is the catalogue."""
    document = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(document))
        document += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    xref_offset = len(document)
    document += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    document += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    trailer_entries = b"".join(b"/%b %b" % pair for pair in (trailer or {}).items())
    document += b"trailer<</Size %d/Root 1 0 R%b>>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        trailer_entries,
        xref_offset,
    )
    return bytes(document)


def saved_bytes(save: Callable[[BytesIO], object]) -> bytes:
    file = BytesIO()
    save(file)
    return file.getvalue()


def docx_file() -> bytes:
    document = docx.Document()
    document.sections[0].header.paragraphs[0].text = "A header on every page"
    document.sections[0].footer.paragraphs[0].text = "A footer on every page"
    document.add_heading("Printers", 1)
    document.add_paragraph("Before anything else, plug it in.").runs[0].font.size = Pt(12)
    document.add_heading("Paper", 2)
    paper_table = document.add_table(rows=2, cols=2)
    for index, word in enumerate(("Tray", "Size", "Two", "A4")):
        paper_table.cell(index // 2, index % 2).text = word
    document.add_paragraph("Пожалуйста, не забывайте бумагу.")
    document.add_heading("Scanners", 1)
    document.add_paragraph("They see.")
    return saved_bytes(document.save)


def pptx_file() -> bytes:
    presentation = pptx.Presentation()
    for title, body, notes in (("Goals", "Faster answers", "Say it slowly"), ("Plan", "Buy\nBuild", "")):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = body
        if notes:
            slide.notes_slide.notes_text_frame.text = notes
    cost_table = presentation.slides[1].shapes.add_table(1, 2, 0, 0, 100, 100).table
    cost_table.cell(0, 0).text, cost_table.cell(0, 1).text = "Cost", "12"
    return saved_bytes(presentation.save)


def xlsx_file(rows: int = 2) -> bytes:
    workbook = openpyxl.Workbook()
    people_sheet = workbook.active
    people_sheet.title = "People"
    people_sheet.append(["Name", "City", "Age"])
    for number in range(rows):
        people_sheet.append([("Ann", "Bob")[number % 2], "Riga", 41.0 + number])
    stock_sheet = workbook.create_sheet("Stock & more")
    stock_sheet.append([7, "screws", True])
    return saved_bytes(workbook.save)


def odt_file() -> bytes:
    document = OpenDocumentText()
    document.text.addElement(text.H(outlinelevel=1, text="Leave"))
    paragraph = text.P(text="Everybody has")
    paragraph.addElement(text.S(c=2))
    paragraph.addText("thirty days.")
    document.text.addElement(paragraph)
    document.text.addElement(text.H(outlinelevel=2, text="Sick leave"))
    bullet_list = text.List()
    for word in ("Call us", "Sleep"):
        item = text.ListItem()
        item.addElement(text.P(text=word))
        bullet_list.addElement(item)
    document.text.addElement(bullet_list)
    doctor_table = table.Table(name="t")
    row = table.TableRow()
    for word in ("Doctor", "Dr. Who"):
        cell = table.TableCell()
        cell.addElement(text.P(text=word))
        row.addElement(cell)
    doctor_table.addElement(row)
    document.text.addElement(doctor_table)
    return saved_bytes(document.write)


def html_file() -> bytes:
    menu = "".join(f'<li><a href="/{number}">Menu {number}</a></li>' for number in range(30))
    return (
        "<!DOCTYPE html><html><head><meta charset='utf-8'><title>Guide</title><script>var secret = 1</script></head>"
        f"<body><nav><ul>{menu}</ul></nav><article><h1>Guide</h1><p>{LOREM * 4}</p><h2>Second part</h2>"
        f"<p>{LOREM * 3} Größe.</p><table><tr><th>Kind</th><th>Price</th></tr><tr><td>Small</td><td>5</td></tr></table>"
        "</article><footer>Imprint and cookies</footer></body></html>"
    ).encode()


MARKDOWN = (
    "---\ntitle: x\n---\n# Guide\n\nText *as it is*.\n\n## Set up ##\n\n```\n# no heading\n```\nSecond\n---\nEnd.\n"
)
CSV = 'Name;City;Note\nAnn;Riga;"two\nlines; one cell"\nBob;Oslo;\n'
EML = (
    b"Subject: =?utf-8?q?Gr=C3=B6=C3=9Fe?=\r\nFrom: Ann <ann@example.com>\r\nTo: bob@example.com\r\n"
    b"Date: Mon, 1 Jan 2024 10:00:00 +0000\r\nMIME-Version: 1.0\r\n"
    b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n--b\r\nContent-Type: text/plain; charset=koi8-r\r\n'
    b"Content-Transfer-Encoding: 8bit\r\n\r\n" + "Привет, Боб.".encode("koi8_r") + b"\r\n--b\r\n"
    b'Content-Type: application/pdf; name="plan.pdf"\r\nContent-Disposition: attachment; filename="plan.pdf"\r\n'
    b"Content-Transfer-Encoding: base64\r\n\r\nJVBERi0=\r\n--b--\r\n"
)
RST = "=====\nGuide\n=====\n\nText *as it is*.\n\nThe :ref:`set up`\n-----------------\n\n.. note:: End.\n"
NOTEBOOK = {
    "nbformat": 4, "nbformat_minor": 5, "metadata": {},
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Prices\n", "They *rise*."]},
        {"cell_type": "code", "metadata": {}, "execution_count": 1, "source": "print(2)\n2 + 3", "outputs": [
            {"output_type": "stream", "name": "stdout", "text": ["2\n"]},
            {"output_type": "execute_result", "execution_count": 1, "metadata": {},
             "data": {"text/plain": "5", "image/png": "iVBORw0KGgo="}},
        ]},
        {"cell_type": "raw", "metadata": {}, "source": ""},
        {"cell_type": "markdown", "metadata": {}, "source": "## End\n\nThey fall."},
    ],
}  # fmt: skip


def zip_file(entries: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(name, content, zipfile.ZIP_STORED if name == "mimetype" else method)
    return file.getvalue()


def epub_file(chapters: dict[str, str], *, additions: dict[str, bytes] | None = None) -> bytes:
    """A book with a table of contents, and with these chapters in this order."""
    items = "".join(
        f'<item id="c{number}" href="text/{name.replace(" ", "%20")}" media-type="application/xhtml+xml"/>'
        for number, name in enumerate(chapters)
    )
    references = "".join(f'<itemref idref="c{number}"/>' for number in range(len(chapters)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><manifest><item id="toc" href="toc.xhtml" '
        f'media-type="application/xhtml+xml" properties="nav"/>{items}</manifest>'
        f'<spine><itemref idref="toc"/>{references}</spine></package>'
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles><rootfile '
        'full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    pages = {
        f"OEBPS/text/{name}": f'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title>'
        f"</head><body>{body}</body></html>".encode()
        for name, body in chapters.items()
        if body
    }
    return zip_file(
        {"mimetype": b"application/epub+zip", "META-INF/container.xml": container.encode(),
         "OEBPS/book.opf": package.encode(), "OEBPS/toc.xhtml": b"<html><body>Contents</body></html>", **pages}
        | (additions or {})
    )  # fmt: skip


EPUB_CHAPTERS = {
    "one 1.xhtml": "<h1>The <i>key</i></h1><p>It was lost.</p><script>x()</script>",
    "a.xhtml": "<h1>Rooms</h1><table><tr><th>Room</th><th>Floor</th></tr><tr><td>Hall</td><td>1</td></tr></table>",
}
RTF = (
    rb"{\rtf1\ansi\ansicpg1251{\fonttbl{\f0\fcharset204 Arial;}}\f0 Hello \b bold\b0\par \'cf\'f0\'e8\'e2\'e5\'f2\par}"
)

SAMPLE_FILES = {
    "pdf": pdf_file(["First page\nof the report", "Second page"]),
    "docx": docx_file(),
    "pptx": pptx_file(),
    "xlsx": xlsx_file(),
    "odt": odt_file(),
    "epub": epub_file(EPUB_CHAPTERS),
    "html": html_file(),
    "markdown": MARKDOWN.encode(),
    "rst": RST.encode(),
    "ipynb": json.dumps(NOTEBOOK).encode(),
    "csv": CSV.encode(),
    "eml": EML,
    "rtf": RTF,
    "zip": zip_file(
        {
            "docs/Übersicht.md": b"# Guide\n\nText.",
            "report.pdf": pdf_file(["Page of the report", "Second page"]),
            "notes.txt": b"A note.",
        }
    ),
    "text": "Just text. Größe.".encode(),
}
FILENAMES = {"markdown": "a.md", "text": "a.txt"} | {
    name: f"a.{name}" for name in SAMPLE_FILES if name not in ("markdown", "text")
}


def changed_archive(
    archive: bytes, replacements: dict[str, bytes], *, additions: dict[str, bytes] | None = None
) -> bytes:
    """The archive with replaced entries, and with others appended."""
    file = BytesIO()
    with (
        zipfile.ZipFile(BytesIO(archive)) as old_archive,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new_archive,
    ):
        for entry in old_archive.infolist():
            new_archive.writestr(entry, replacements.get(entry.filename, old_archive.read(entry)))
        for name, content in (additions or {}).items():
            new_archive.writestr(name, content)
    return file.getvalue()


def entries_of(archive: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(BytesIO(archive)) as file:
        return [(entry.filename, file.read(entry)) for entry in file.infolist()]
