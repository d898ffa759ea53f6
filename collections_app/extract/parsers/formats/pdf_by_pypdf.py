"""PDF files that pypdfium2 cannot open, read with pypdf."""

from io import BytesIO
from typing import Any

import pypdf
from pypdf import filters
from pypdf.errors import PyPdfError

from ..common.failures import encrypted_error
from ..common.pdf_pages import write_pages
from ..common.text_writer import TextWriter

# Images are not read, so the library must not start another program for them.
filters.JBIG2DEC_BINARY = None
PAGE_ERRORS = (PyPdfError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)


def parse(data: bytes, writer: TextWriter, limits: dict[str, Any]) -> None:
    reader = pypdf.PdfReader(BytesIO(data), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        raise encrypted_error()
    write_pages(reader.pages, lambda page: page.extract_text().strip(), PAGE_ERRORS, writer, limits["max_pages"])


def preload() -> None:
    """Reads a small file, since the library imports some modules when it first reads a page."""
    writer = pypdf.PdfWriter()
    writer.add_blank_page(width=9, height=9)
    file = BytesIO()
    writer.write(file)
    for page in pypdf.PdfReader(file).pages:
        page.extract_text()
