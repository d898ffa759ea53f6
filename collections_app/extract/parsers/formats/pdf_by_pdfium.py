"""PDF files, read with pypdfium2."""

import re
from functools import partial
from typing import Any

import pypdfium2
from pypdfium2 import raw

from ..common.failures import damaged_error, encrypted_error
from ..common.pdf_pages import write_pages
from ..common.text_writer import TextWriter

# The library's characters for a hyphen at the end of a line.
LINE_END_HYPHEN = re.compile("[\x02\ufffe]\n?")
PROTECTION_ERRORS = (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY)


def parse(data: bytes, writer: TextWriter, limits: dict[str, Any]) -> None:
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) in PROTECTION_ERRORS:
            raise encrypted_error() from None
        raise damaged_error() from None
    read_text = partial(page_text, document)
    write_pages(range(len(document)), read_text, (pypdfium2.PdfiumError,), writer, limits["max_pages"])


def page_text(document: Any, number: int) -> str:
    page = document[number]
    try:
        lines: str = page.get_textpage().get_text_range()
    finally:
        page.close()
    return LINE_END_HYPHEN.sub("", lines.replace("\r\n", "\n")).strip()


def preload() -> None:
    """Does nothing, because the library opens no files later."""
