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
from tests.collections_app.extract.samples import FILENAMES, SAMPLE_FILES, changed_archive, entries_of

OFFICE_PREFIX = "application/vnd.openxmlformats-officedocument."
MEDIA_TYPES = {
    "pdf": "application/pdf",
    "docx": OFFICE_PREFIX + "wordprocessingml.document",
    "pptx": OFFICE_PREFIX + "presentationml.presentation",
    "xlsx": OFFICE_PREFIX + "spreadsheetml.sheet",
    "odt": "application/vnd.oasis.opendocument.text",
    "epub": "application/epub+zip",
    "html": "text/html; charset=utf-8",
    "markdown": "text/markdown",
    "rst": "text/x-rst",
    "ipynb": "application/x-ipynb+json",
    "csv": "application/vnd.ms-excel",  # the type that browsers on Windows send
    "eml": "message/rfc822",
    "rtf": "application/rtf",
    "zip": "application/zip",
    "text": "text/plain",
}


def refusal_message(content: bytes, name: str, declared_type: str = "") -> str:
    with pytest.raises(UnsupportedMediaType) as exc_info:
        recognize_format(content, name, declared_type)
    assert exc_info.value.status == 415
    return exc_info.value.message


# Text formats. Apart from HTML, they are distinguished only by the file name.
TEXT_FORMATS = {name for name, format in FORMATS.items() if "text" in format.content_kinds}


def test_every_format_has_a_sample_and_a_media_type():
    assert set(SAMPLE_FILES) == set(MEDIA_TYPES) == set(FORMATS)


@pytest.mark.parametrize("format", SAMPLE_FILES)
def test_valid_file_is_recognized(format: str):
    data, name = SAMPLE_FILES[format], FILENAMES[format]

    for declared_type in (MEDIA_TYPES[format], "", "application/octet-stream", "text/plain"):
        assert recognize_format(data, name, declared_type) == format
    assert recognize_format(data, name.upper()) == format
    assert recognize_format(data[: 64 * 1024], name) == format
    assert recognize_format(data, "", MEDIA_TYPES[format]) == format


@pytest.mark.parametrize("format", sorted(set(SAMPLE_FILES) - TEXT_FORMATS | {"html", "text"}))
def test_file_without_a_name_is_recognized_by_its_content(format: str):
    assert recognize_format(SAMPLE_FILES[format], "") == format


@pytest.mark.parametrize("format", SAMPLE_FILES)
@pytest.mark.parametrize("other_format", SAMPLE_FILES)
def test_file_named_like_another_format_is_refused(format: str, other_format: str):  # C16
    are_text_formats = {format, other_format} <= TEXT_FORMATS and format != "html"
    is_mail_named_as_text = format == "eml" and "eml" in FORMATS[other_format].content_kinds
    if format == other_format or are_text_formats or is_mail_named_as_text:
        assert recognize_format(SAMPLE_FILES[format], FILENAMES[other_format]) == other_format
    else:
        assert f"has the extension .{FILENAMES[other_format].partition('.')[2]}, but its content is" in refusal_message(
            SAMPLE_FILES[format], FILENAMES[other_format]
        )


@pytest.mark.parametrize("format", SAMPLE_FILES)
def test_declared_type_that_disagrees_is_refused(format: str):  # C16
    for declared_type in ("image/png", "application/x-msdownload", MEDIA_TYPES["pdf" if format != "pdf" else "html"]):
        assert "declared as" in refusal_message(SAMPLE_FILES[format], FILENAMES[format], declared_type)


def test_html_named_pdf_is_refused():  # C16
    assert (
        refusal_message(b"<!DOCTYPE html><p>Hi", "report.pdf")
        == "The file has the extension .pdf, but its content is HTML."
    )


POLYGLOTS = {
    "a PDF behind an archive": (SAMPLE_FILES["docx"] + SAMPLE_FILES["pdf"], "a.docx", "docx"),
    "an archive behind a PDF": (SAMPLE_FILES["pdf"] + SAMPLE_FILES["docx"], "a.pdf", "pdf"),
    "HTML behind a PDF": (SAMPLE_FILES["pdf"] + SAMPLE_FILES["html"], "a.pdf", "pdf"),
    "a PDF behind text": (b"Hello\n" + SAMPLE_FILES["pdf"].split(b"%\xe2")[0], "a.txt", "text"),
}


@pytest.mark.parametrize("name", POLYGLOTS)
def test_polyglot_file_has_the_format_of_its_first_bytes(name: str):  # C16
    data, filename, format = POLYGLOTS[name]

    assert recognize_format(data, filename) == format
    if format != "docx":
        refusal_message(data, "a.docx")
    if format != "pdf":
        refusal_message(data, "a.pdf")


def test_archives_are_distinguished_by_their_content():  # C16
    docx = changed_archive(SAMPLE_FILES["docx"], {})
    assert recognize_format(docx, "a.docx", "application/zip") == "docx"
    entries = dict(entries_of(SAMPLE_FILES["docx"]))
    docx_and_xlsx = changed_archive(
        SAMPLE_FILES["docx"], {}, additions={"xl/workbook.xml": entries["word/document.xml"]}
    )
    for name in ("a.docx", "a.xlsx"):
        assert "an archive" in refusal_message(docx_and_xlsx, name) or "not one" in refusal_message(docx_and_xlsx, name)
    assert "XLSX" in refusal_message(SAMPLE_FILES["xlsx"], "a.docx")


OTHER_FORMATS = {
    "a program": (b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 8, "a.txt"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + random.Random(1).randbytes(3000), "a.txt"),
    "random bytes": (random.Random(2).randbytes(5000), "a.md"),
    "random bytes without NUL": (random.Random(3).randbytes(5000).replace(b"\0", b""), "a.csv"),
    "an old Word file": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 500, "a.docx"),
    "an archive": (b"PK\x03\x04" + b"\0" * 100, "a.docx"),
    "a name that is not accepted": (b"hello", "a.exe"),
    "two extensions": (b"hello", "a.txt.exe"),
    "random bytes without a name": (random.Random(4).randbytes(5000), ""),
    "text that is not an email": (b"hello\nworld\n", "a.eml"),
    "text that is not RTF": (b"hello", "a.rtf"),
    "bytes before a PDF": (b"GIF89a\0\0" + SAMPLE_FILES["pdf"], "a.pdf"),
}


@pytest.mark.parametrize("name", OTHER_FORMATS)
def test_other_formats_are_refused(name: str):  # C16
    message = refusal_message(*OTHER_FORMATS[name])

    assert message.endswith(".") and "\0" not in message


def test_text_is_recognized_in_other_encodings():
    for encoding in ("cp1251", "koi8_r", "utf-16", "utf-16-le", "utf-32"):
        assert recognize_format("Это обычный русский текст о работе.\n".encode(encoding) * 3, "a.txt") == "text"
    assert recognize_format("日本語の文章です。\n".encode("shift_jis") * 9000, "a.txt") == "text"
    assert recognize_format("漢字".encode() * 20_000, "a.md") == "markdown"


def test_markdown_may_begin_with_a_tag():
    assert recognize_format(b'<h1 align="center">Tool</h1>\n\n# Use\n', "README.md") == "markdown"


LEADING_COMMENTS = {
    "HTML after many comments": (b"<!--x-->\n" * 7_000 + b"<html>", "html"),
    "many comments and no HTML": (b"<!--x-->" * 10_000 + b"<p>", "text"),
    "the last is not closed": (b"<!--x-->" * 7_000 + b"<!-- x - y" * 900, "text"),
    "none is closed": (b"<!--" * 16_000, "text"),
    "dashes": (b"<!--" + b"-" * 60_000, "text"),
    "a comment ends with more dashes": (b"<?xml version='1'?><!-- - -- ---><!---->\n<!DOCTYPE  html>", "html"),
}


@pytest.mark.parametrize("name", LEADING_COMMENTS)
def test_comments_before_the_first_tag_are_read_in_linear_time(name: str):
    data, format = LEADING_COMMENTS[name]
    started_at = time.process_time()

    assert recognize_format(data, "") == format
    assert time.process_time() - started_at < 1


def zip_with_entries(entry_count: int, *, name: str = "{}", is_zip64: bool = False) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(entry_count):
            archive.writestr(name.format(number), b"")
    if not is_zip64:
        return file.getvalue()
    # As in archives over 4 GB, a separate record has the position and length of the directory.
    data, end_record = file.getvalue()[:-22], file.getvalue()[-22:]
    *_, size, offset, _ = struct.unpack("<4s4H2LH", end_record)
    zip64_record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, entry_count, entry_count, size, offset)
    return data + zip64_record + struct.pack("<4sLQL", b"PK\x06\x07", 0, len(data), 1) + end_record[:12] + b"\0" * 10


ARCHIVES_WITH_MANY_ENTRIES = {
    "too many entries": zip_with_entries(2001),
    "a list that is too long": zip_with_entries(300, name="{}" + "x" * 4000),
    "a list that is too long, in the zip64 record": zip_with_entries(300, name="{}" + "x" * 4000, is_zip64=True),
}


@pytest.mark.parametrize("name", ARCHIVES_WITH_MANY_ENTRIES)
def test_archive_with_many_entries_is_refused(name: str):
    assert "an archive with more than 2,000 entries" in refusal_message(ARCHIVES_WITH_MANY_ENTRIES[name], "a.docx")


def test_overlapping_archive_entries_are_read_once():
    """Overlapping entry names would expand 256 KB to half a gigabyte."""
    tracemalloc.start()
    try:
        refusal_message((b"PK\x03\x04" + b"a" * 22 + b"\xff\xff\0\0") * 9_000, "a.docx")
        refusal_message((b"PK\x03\x04" + b"a" * 22 + b"\xc8\0\0\0" + b"n" * 200) * 1_200, "a.docx")
        refusal_message((b"PK\x03\x04" + b"a" * 22 + b"\0\0\0\0") * 9_000, "a.docx")
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    assert len(recognition.partial_entry_names((b"PK\x03\x04" + b"a" * 22 + b"\1\0\0\0" + b"n") * 9_000)) == 2_000
