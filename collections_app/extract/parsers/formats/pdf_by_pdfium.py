"""PDF files, read with pypdfium2."""

from typing import Any

import pypdfium2
from pypdfium2 import raw

from ..common.failures import damaged_error, encrypted_error
from ..common.text_writer import TextWriter
from ..pdf.lines import OutlineEntry, Page
from ..pdf.pages import MAX_CHARACTERS_OF_SCAN, read_document, write_document
from ..pdf.pdfium_lines import LineReader

PROTECTION_ERRORS = (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY)
MAX_OUTLINE_LEVELS = 6
# Images that cover less of a page are logos or decorations.
MIN_IMAGE_SHARE = 0.2
# A hostile page could have millions of objects.
MAX_IMAGES = 100


def parse(data: bytes, writer: TextWriter, limits: dict[str, Any]) -> None:
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) in PROTECTION_ERRORS:
            raise encrypted_error() from None
        raise damaged_error() from None
    reader = LineReader()

    def read_page(number: int) -> Page:
        page = document[number]
        try:
            lines = reader.read_lines(page)
            label = document.get_page_label(number) or str(number + 1)
            is_short = sum(len(line.text) for line in lines) <= MAX_CHARACTERS_OF_SCAN
            return Page(lines, label, has_image=is_short and has_large_image(page))
        finally:
            page.close()

    def outline() -> Any:
        for bookmark in document.get_toc(MAX_OUTLINE_LEVELS):
            target = bookmark.get_dest()
            page_index = target.get_index() if target else None
            if page_index is not None:
                yield OutlineEntry(bookmark.level + 1, bookmark.get_title(), page_index + 1)

    write_document(read_document(len(document), read_page, outline, (pypdfium2.PdfiumError,), limits), writer)


def has_large_image(page: Any) -> bool:
    width, height = page.get_size()
    for image, _ in zip(page.get_objects([raw.FPDF_PAGEOBJ_IMAGE]), range(MAX_IMAGES), strict=False):
        left, bottom, right, top = image.get_bounds()
        if (right - left) * (top - bottom) >= width * height * MIN_IMAGE_SHARE:
            return True
    return False


def preload() -> None:
    """Does nothing, because the library opens no files later."""
