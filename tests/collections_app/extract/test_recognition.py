"""Recognition of formats: content, name and declared type must agree."""

import random
import struct
import time
import tracemalloc
import zipfile
from io import BytesIO

import pytest

from collections_app.extract import recognition, recognize_format
from collections_app.extract.file_formats import FORMATS
from system.errors import UnsupportedMediaType
from tests.collections_app.extract.samples import FILES, NAMES, changed, entries_of

OFFICE = "application/vnd.openxmlformats-officedocument."
DECLARED = {
    "pdf": "application/pdf",
    "docx": OFFICE + "wordprocessingml.document",
    "pptx": OFFICE + "presentationml.presentation",
    "xlsx": OFFICE + "spreadsheetml.sheet",
    "odt": "application/vnd.oasis.opendocument.text",
    "html": "text/html; charset=utf-8",
    "markdown": "text/markdown",
    "csv": "application/vnd.ms-excel",  # as browsers on Windows call it
    "eml": "message/rfc822",
    "rtf": "application/rtf",
    "text": "text/plain",
}


def message(head: bytes, name: str, declared: str = "") -> str:
    with pytest.raises(UnsupportedMediaType) as exc_info:
        recognize_format(head, name, declared)
    assert exc_info.value.status == 415
    return exc_info.value.message


# Formats that are text. Only their names tell them apart, except HTML, which is recognized.
TEXTUAL = {name for name, format in FORMATS.items() if "text" in format.content_kinds}


def test_every_format_has_a_sample_and_a_media_type():
    assert set(FILES) == set(DECLARED) == set(FORMATS)


@pytest.mark.parametrize("format", FILES)
def test_valid_file_is_recognized(format: str):
    data, name = FILES[format], NAMES[format]

    for declared in (DECLARED[format], "", "application/octet-stream", "text/plain"):
        assert recognize_format(data, name, declared) == format
    assert recognize_format(data, name.upper()) == format
    assert recognize_format(data[: 64 * 1024], name) == format
    assert recognize_format(data, "", DECLARED[format]) == format


@pytest.mark.parametrize("format", sorted(set(FILES) - TEXTUAL | {"html", "text"}))
def test_file_without_a_name_is_recognized_by_its_content(format: str):
    assert recognize_format(FILES[format], "") == format


@pytest.mark.parametrize("format", FILES)
@pytest.mark.parametrize("other", FILES)
def test_file_named_like_another_format_is_refused(format: str, other: str):  # C16
    is_text = {format, other} <= TEXTUAL and format != "html"
    is_mail_as_text = format == "eml" and "eml" in FORMATS[other].content_kinds
    if format == other or is_text or is_mail_as_text:
        assert recognize_format(FILES[format], NAMES[other]) == other
    else:
        assert f"has the extension .{NAMES[other].partition('.')[2]}, but its content is" in message(
            FILES[format], NAMES[other]
        )


@pytest.mark.parametrize("format", FILES)
def test_declared_type_that_disagrees_is_refused(format: str):  # C16
    for declared in ("image/png", "application/x-msdownload", DECLARED["pdf" if format != "pdf" else "html"]):
        assert "declared as" in message(FILES[format], NAMES[format], declared)


def test_html_named_pdf_is_refused():  # C16
    assert message(b"<!DOCTYPE html><p>Hi", "report.pdf") == "The file has the extension .pdf, but its content is HTML."


POLYGLOTS = {
    "a PDF behind an archive": (FILES["docx"] + FILES["pdf"], "a.docx", "docx"),
    "an archive behind a PDF": (FILES["pdf"] + FILES["docx"], "a.pdf", "pdf"),
    "HTML behind a PDF": (FILES["pdf"] + FILES["html"], "a.pdf", "pdf"),
    "a PDF behind text": (b"Hello\n" + FILES["pdf"].split(b"%\xe2")[0], "a.txt", "text"),
}


@pytest.mark.parametrize("name", POLYGLOTS)
def test_polyglot_file_has_the_format_it_begins_with(name: str):  # C16
    data, filename, format = POLYGLOTS[name]

    assert recognize_format(data, filename) == format
    if format != "docx":
        message(data, "a.docx")
    if format != "pdf":
        message(data, "a.pdf")


def test_archives_are_distinguished_by_their_content():  # C16
    plain = changed(FILES["docx"], {})
    assert recognize_format(plain, "a.docx", "application/zip") == "docx"
    renamed = dict(entries_of(FILES["docx"]))
    both = changed(FILES["docx"], {}, added={"xl/workbook.xml": renamed["word/document.xml"]})
    for name in ("a.docx", "a.xlsx"):
        assert "an archive" in message(both, name) or "not one" in message(both, name)
    assert "XLSX" in message(FILES["xlsx"], "a.docx")


REFUSED = {
    "a program": (b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 8, "a.txt"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + random.Random(1).randbytes(3000), "a.txt"),
    "rubbish": (random.Random(2).randbytes(5000), "a.md"),
    "rubbish without NUL": (random.Random(3).randbytes(5000).replace(b"\0", b""), "a.csv"),
    "an old Word file": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 500, "a.docx"),
    "an archive": (b"PK\x03\x04" + b"\0" * 100, "a.docx"),
    "a name that is not accepted": (b"hello", "a.exe"),
    "two extensions": (b"hello", "a.txt.exe"),
    "rubbish without a name": (random.Random(4).randbytes(5000), ""),
    "text that is no mail": (b"hello\nworld\n", "a.eml"),
    "text that is no RTF": (b"hello", "a.rtf"),
    "bytes before a PDF": (b"GIF89a\0\0" + FILES["pdf"], "a.pdf"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_formats_are_refused(name: str):  # C16
    text = message(*REFUSED[name])

    assert text.endswith(".") and "\0" not in text


def test_text_is_recognized_in_other_encodings():
    for encoding in ("cp1251", "koi8_r", "utf-16", "utf-16-le", "utf-32"):
        assert recognize_format("Это обычный русский текст о работе.\n".encode(encoding) * 3, "a.txt") == "text"
    assert recognize_format("日本語の文章です。\n".encode("shift_jis") * 9000, "a.txt") == "text"
    assert recognize_format("漢字".encode() * 20_000, "a.md") == "markdown"


def test_readme_may_begin_with_a_tag():
    assert recognize_format(b'<h1 align="center">Tool</h1>\n\n# Use\n', "README.md") == "markdown"


COMMENTS = {
    "HTML after many comments": (b"<!--x-->\n" * 7_000 + b"<html>", "html"),
    "many comments and no HTML": (b"<!--x-->" * 10_000 + b"<p>", "text"),
    "the last is not closed": (b"<!--x-->" * 7_000 + b"<!-- x - y" * 900, "text"),
    "none is closed": (b"<!--" * 16_000, "text"),
    "dashes": (b"<!--" + b"-" * 60_000, "text"),
    "a comment ends with more dashes": (b"<?xml version='1'?><!-- - -- ---><!---->\n<!DOCTYPE  html>", "html"),
}


@pytest.mark.parametrize("name", COMMENTS)
def test_comments_before_the_first_tag_are_read_in_linear_time(name: str):
    data, format = COMMENTS[name]
    started_at = time.process_time()

    assert recognize_format(data, "") == format
    assert time.process_time() - started_at < 1


def directory(entries: int, *, name: str = "{}", is_large: bool = False) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(entries):
            archive.writestr(name.format(number), b"")
    if not is_large:
        return file.getvalue()
    # As for archives of 4 GB: another record says where the list of entries is, and how long.
    data, end = file.getvalue()[:-22], file.getvalue()[-22:]
    *_, size, offset, _ = struct.unpack("<4s4H2LH", end)
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, entries, entries, size, offset)
    return data + record + struct.pack("<4sLQL", b"PK\x06\x07", 0, len(data), 1) + end[:12] + b"\0" * 10


CROWDED = {
    "too many entries": directory(2001),
    "too long a list": directory(300, name="{}" + "x" * 4000),
    "too long a list, in the other record": directory(300, name="{}" + "x" * 4000, is_large=True),
}


@pytest.mark.parametrize("name", CROWDED)
def test_archive_with_many_entries_is_refused(name: str):
    assert "an archive of more than 2,000 entries" in message(CROWDED[name], "a.docx")


def test_part_of_an_archive_is_read_once():
    """Overlapping names of entries would turn 256 KB into half a gigabyte of names."""
    tracemalloc.start()
    try:
        message((b"PK\x03\x04" + b"a" * 22 + b"\xff\xff\0\0") * 9_000, "a.docx")
        message((b"PK\x03\x04" + b"a" * 22 + b"\xc8\0\0\0" + b"n" * 200) * 1_200, "a.docx")
        message((b"PK\x03\x04" + b"a" * 22 + b"\0\0\0\0") * 9_000, "a.docx")
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    assert len(recognition.partial_entry_names((b"PK\x03\x04" + b"a" * 22 + b"\1\0\0\0" + b"n") * 9_000)) == 2_000
