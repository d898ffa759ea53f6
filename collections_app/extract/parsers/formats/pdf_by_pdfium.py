"""PDF files, read with pypdfium2."""

import re
from typing import Any

import pypdfium2
from pypdfium2 import raw

from ..common.failures import ParserRefused, damaged, encrypted
from ..common.text_writer import TextWriter

# The library's characters for a hyphen at the end of a line.
BROKEN_WORD = re.compile("[\x02\ufffe]\n?")
PROTECTED = (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY)


def parse(data: bytes, text: TextWriter, limits: dict[str, Any]) -> None:
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) in PROTECTED:
            raise encrypted() from None
        raise damaged() from None
    pages = len(document)
    if pages > limits["max_pages"]:
        raise ParserRefused("limit_pages", f"The file has more than {limits['max_pages']} pages.")
    if not pages:
        raise damaged()
    unread = 0
    for number in range(pages):
        text.page()
        try:
            text.add(text_of(document, number))
        except pypdfium2.PdfiumError:
            unread += 1
    if unread == pages:
        raise damaged()
    if unread:
        text.warn(f"{unread} of {pages} pages could not be read.")


def text_of(document: Any, number: int) -> str:
    page = document[number]
    try:
        lines: str = page.get_textpage().get_text_range()
    finally:
        page.close()
    return BROKEN_WORD.sub("", lines.replace("\r\n", "\n")).strip()


def prepare() -> None:
    """The library opens no files later."""
