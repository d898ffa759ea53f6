"""The supported formats: file name extensions and media types."""

from dataclasses import dataclass

OFFICE = "application/vnd.openxmlformats-officedocument."


@dataclass(frozen=True, slots=True)
class Format:
    """`sniffed` are the kinds of content (see `recognition`) that a file of this format may have."""

    # Tried in this order while the file seems damaged.
    parsers: tuple[str, ...]
    label: str
    extensions: tuple[str, ...]
    types: tuple[str, ...]
    sniffed: tuple[str, ...]


FORMATS = {
    "pdf": Format(
        ("pdf_by_pdfium", "pdf_by_pypdf"), "PDF", ("pdf",), ("application/pdf", "application/x-pdf"), ("pdf",)
    ),
    "docx": Format(("docx",), "DOCX", ("docx",), (OFFICE + "wordprocessingml.document",), ("docx", "zip")),
    "pptx": Format(("pptx",), "PPTX", ("pptx",), (OFFICE + "presentationml.presentation",), ("pptx", "zip")),
    "xlsx": Format(("xlsx",), "XLSX", ("xlsx",), (OFFICE + "spreadsheetml.sheet",), ("xlsx", "zip")),
    "odt": Format(("odt",), "ODT", ("odt",), ("application/vnd.oasis.opendocument.text",), ("odt",)),
    "html": Format(
        ("html",), "HTML", ("html", "htm", "xhtml"), ("text/html", "application/xhtml+xml"), ("html", "text")
    ),
    # A README may begin with a tag, such as <p>.
    "markdown": Format(
        ("markdown",), "Markdown", ("md", "markdown"), ("text/markdown", "text/x-markdown"), ("text", "eml")
    ),
    # Windows declares the program that opens CSV files.
    "csv": Format(
        ("csv",),
        "CSV",
        ("csv", "tsv"),
        ("text/csv", "application/csv", "text/x-csv", "text/tab-separated-values", "application/vnd.ms-excel"),
        ("text", "eml"),
    ),
    "eml": Format(("eml",), "EML", ("eml",), ("message/rfc822",), ("eml",)),
    "rtf": Format(("rtf",), "RTF", ("rtf",), ("application/rtf", "text/rtf", "application/x-rtf"), ("rtf",)),
    "text": Format(("plain",), "plain text", ("txt", "text", "log"), (), ("text", "eml")),
}
EXTENSIONS = {extension: name for name, format in FORMATS.items() for extension in format.extensions}
TYPES = {content_type: name for name, format in FORMATS.items() for content_type in format.types}

# Generic types, and those that only say that the file is an archive.
GENERIC_TYPES = {
    "", "text/plain", "application/octet-stream", "binary/octet-stream", "application/x-download",
    "application/force-download", "application/unknown",
}  # fmt: skip
ARCHIVE_TYPES = {"application/zip", "application/x-zip-compressed", "application/x-zip"}
ARCHIVES = {"docx", "pptx", "xlsx", "odt"}

ACCEPTED = ", ".join(format.label for format in FORMATS.values())
