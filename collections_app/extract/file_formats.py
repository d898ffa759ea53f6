"""The supported formats: file name extensions and media types."""

from __future__ import annotations

from dataclasses import dataclass

OFFICE = "application/vnd.openxmlformats-officedocument."


@dataclass(frozen=True, slots=True)
class Format:
    """`sniffed` are the kinds of content (see `recognition`) that a file of this format may show."""

    label: str
    extensions: tuple[str, ...]
    types: tuple[str, ...]
    sniffed: tuple[str, ...]


FORMATS = {
    "pdf": Format("PDF", ("pdf",), ("application/pdf", "application/x-pdf"), ("pdf",)),
    "docx": Format("DOCX", ("docx",), (OFFICE + "wordprocessingml.document",), ("docx", "zip")),
    "pptx": Format("PPTX", ("pptx",), (OFFICE + "presentationml.presentation",), ("pptx", "zip")),
    "xlsx": Format("XLSX", ("xlsx",), (OFFICE + "spreadsheetml.sheet",), ("xlsx", "zip")),
    "odt": Format("ODT", ("odt",), ("application/vnd.oasis.opendocument.text",), ("odt",)),
    "html": Format("HTML", ("html", "htm", "xhtml"), ("text/html", "application/xhtml+xml"), ("html", "text")),
    # A README may well begin with a tag.
    "markdown": Format("Markdown", ("md", "markdown"), ("text/markdown", "text/x-markdown"), ("text", "eml")),
    # Windows calls CSV what opens it.
    "csv": Format(
        "CSV",
        ("csv", "tsv"),
        ("text/csv", "application/csv", "text/x-csv", "text/tab-separated-values", "application/vnd.ms-excel"),
        ("text", "eml"),
    ),
    "eml": Format("EML", ("eml",), ("message/rfc822",), ("eml",)),
    "rtf": Format("RTF", ("rtf",), ("application/rtf", "text/rtf", "application/x-rtf"), ("rtf",)),
    "text": Format("plain text", ("txt", "text", "log"), (), ("text", "eml")),
}
EXTENSIONS = {extension: name for name, format in FORMATS.items() for extension in format.extensions}
TYPES = {content_type: name for name, format in FORMATS.items() for content_type in format.types}

# Types that say nothing about a file, and those that say only that it is an archive.
SILENT_TYPES = {
    "",
    "text/plain",
    "application/octet-stream",
    "binary/octet-stream",
    "application/x-download",
    "application/force-download",
    "application/unknown",
}
ARCHIVE_TYPES = {"application/zip", "application/x-zip-compressed", "application/x-zip"}
ARCHIVES = {"docx", "pptx", "xlsx", "odt"}

ACCEPTED = ", ".join(format.label for format in FORMATS.values())
