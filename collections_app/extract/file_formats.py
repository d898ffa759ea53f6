"""The supported file formats, with their extensions and media types."""

from dataclasses import dataclass

OFFICE_PREFIX = "application/vnd.openxmlformats-officedocument."


@dataclass(frozen=True, slots=True)
class FileFormat:
    """`content_kinds` are the kinds of content (see `recognition`) that a file of this format may have."""

    # Tried in this order until one does not report a damaged file.
    parsers: tuple[str, ...]
    label: str
    extensions: tuple[str, ...]
    media_types: tuple[str, ...]
    content_kinds: tuple[str, ...]


FORMATS = {
    "pdf": FileFormat(
        ("pdf_by_pdfium", "pdf_by_pypdf"), "PDF", ("pdf",), ("application/pdf", "application/x-pdf"), ("pdf",)
    ),
    "docx": FileFormat(("docx",), "DOCX", ("docx",), (OFFICE_PREFIX + "wordprocessingml.document",), ("docx", "ooxml")),
    "pptx": FileFormat(
        ("pptx",), "PPTX", ("pptx",), (OFFICE_PREFIX + "presentationml.presentation",), ("pptx", "ooxml")
    ),
    "xlsx": FileFormat(("xlsx",), "XLSX", ("xlsx",), (OFFICE_PREFIX + "spreadsheetml.sheet",), ("xlsx", "ooxml")),
    "odt": FileFormat(("odt",), "ODT", ("odt",), ("application/vnd.oasis.opendocument.text",), ("odt",)),
    "epub": FileFormat(("epub",), "EPUB", ("epub",), ("application/epub+zip",), ("epub",)),
    "html": FileFormat(
        ("html",), "HTML", ("html", "htm", "xhtml"), ("text/html", "application/xhtml+xml"), ("html", "text")
    ),
    # A text may begin with lines that look like email headers.
    "markdown": FileFormat(
        ("markdown",), "Markdown", ("md", "markdown"), ("text/markdown", "text/x-markdown"), ("text", "eml")
    ),
    "rst": FileFormat(
        ("rst",), "reStructuredText", ("rst", "rest"), ("text/x-rst", "text/prs.fallenstein.rst"), ("text", "eml")
    ),
    "ipynb": FileFormat(("ipynb",), "Jupyter notebook", ("ipynb",), ("application/x-ipynb+json",), ("text",)),
    # Windows declares the media type of the program that opens CSV files.
    "csv": FileFormat(
        ("csv",),
        "CSV",
        ("csv", "tsv"),
        ("text/csv", "application/csv", "text/x-csv", "text/tab-separated-values", "application/vnd.ms-excel"),
        ("text", "eml"),
    ),
    "eml": FileFormat(("eml",), "EML", ("eml",), ("message/rfc822",), ("eml",)),
    "rtf": FileFormat(("rtf",), "RTF", ("rtf",), ("application/rtf", "text/rtf", "application/x-rtf"), ("rtf",)),
    # Its files are extracted one by one; see `zip_archive`.
    "zip": FileFormat((), "ZIP", ("zip",), (), ("zip",)),
    "text": FileFormat(("plain",), "plain text", ("txt", "text", "log"), (), ("text", "eml")),
}
EXTENSIONS = {extension: name for name, format in FORMATS.items() for extension in format.extensions}
MEDIA_TYPES = {content_type: name for name, format in FORMATS.items() for content_type in format.media_types}

# Media types that do not identify a format; the archive types only say that the file is an archive.
GENERIC_TYPES = {
    "", "text/plain", "application/octet-stream", "binary/octet-stream", "application/x-download",
    "application/force-download", "application/unknown",
}  # fmt: skip
ARCHIVE_TYPES = {"application/zip", "application/x-zip-compressed", "application/x-zip"}
ARCHIVE_FORMATS = {"docx", "pptx", "xlsx", "odt", "epub", "zip"}

FORMAT_LABELS = ", ".join(format.label for format in FORMATS.values())
