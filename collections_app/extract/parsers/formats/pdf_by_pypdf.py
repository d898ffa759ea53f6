"""PDF files that pypdfium2 cannot open, read with pypdf."""

from io import BytesIO
from typing import Any

import pypdf
from pypdf import filters
from pypdf.errors import PyPdfError

from ..common.failures import ParserRefused, damaged_error, encrypted_error
from ..common.text_writer import TextWriter

# Images are not read, so no other program must be started for them.
filters.JBIG2DEC_BINARY = None


def parse(data: bytes, text: TextWriter, limits: dict[str, Any]) -> None:
    reader = pypdf.PdfReader(BytesIO(data), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        raise encrypted_error()
    page_count = len(reader.pages)
    if page_count > limits["max_pages"]:
        raise ParserRefused("limit_pages", f"The file has more than {limits['max_pages']} pages.")
    unreadable_pages = 0
    for page in reader.pages:
        text.page()
        try:
            text.add(page.extract_text().strip())
        except (PyPdfError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
            unreadable_pages += 1
    if unreadable_pages == page_count:
        raise damaged_error()
    if unreadable_pages:
        text.warn(f"{unreadable_pages} of {page_count} pages could not be read.")


def prepare() -> None:
    """Reads a small file, since the library imports some modules when it first reads a page."""
    writer = pypdf.PdfWriter()
    writer.add_blank_page(width=9, height=9)
    file = BytesIO()
    writer.write(file)
    for page in pypdf.PdfReader(file).pages:
        page.extract_text()
