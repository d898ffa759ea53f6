"""PDF files, read with pypdfium2."""

import re
from typing import Any

import pypdfium2
from pypdfium2 import raw

from ..common.failures import ParserRefused, damaged_error, encrypted_error
from ..common.text_writer import TextWriter

# The library's characters for a hyphen at the end of a line.
LINE_END_HYPHEN = re.compile("[\x02\ufffe]\n?")
PROTECTION_ERRORS = (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY)


def parse(data: bytes, text: TextWriter, limits: dict[str, Any]) -> None:
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) in PROTECTION_ERRORS:
            raise encrypted_error() from None
        raise damaged_error() from None
    page_count = len(document)
    if page_count > limits["max_pages"]:
        raise ParserRefused("limit_pages", f"The file has more than {limits['max_pages']} pages.")
    if not page_count:
        raise damaged_error()
    unreadable_pages = 0
    for number in range(page_count):
        text.page()
        try:
            text.add(page_text(document, number))
        except pypdfium2.PdfiumError:
            unreadable_pages += 1
    if unreadable_pages == page_count:
        raise damaged_error()
    if unreadable_pages:
        text.warn(f"{unreadable_pages} of {page_count} pages could not be read.")


def page_text(document: Any, number: int) -> str:
    page = document[number]
    try:
        lines: str = page.get_textpage().get_text_range()
    finally:
        page.close()
    return LINE_END_HYPHEN.sub("", lines.replace("\r\n", "\n")).strip()


def prepare() -> None:
    """The library opens no files later."""
