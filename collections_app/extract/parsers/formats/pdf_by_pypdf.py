"""PDF files that pypdfium2 cannot open, read with pypdf."""

import codecs
import re
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from typing import Any
from unicodedata import normalize

import pypdf
from pypdf import filters
from pypdf.errors import PyPdfError

from ..common.failures import encrypted_error
from ..common.text_writer import TextWriter
from ..pdf.lines import OutlineEntry, Page, lines_without_positions
from ..pdf.pages import read_document, write_document

# Images are not read, so the library must not start another program for them.
filters.JBIG2DEC_BINARY = None
# Those of fonts, in addition to the codecs of all parsers.
CODECS = ("charmap", "gbk", "gb2312", "gb18030", "cp950", "cp932", "euc_jp", "shift_jis", "cp949", "euc_kr", "johab")
# The shapes of Arabic letters and ligatures.
PRESENTATION_FORMS = re.compile("[\ufb50-\ufdff\ufe70-\ufefc]+")
PAGE_ERRORS = (PyPdfError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)


def parse(data: bytes, writer: TextWriter, limits: dict[str, Any]) -> None:
    reader = pypdf.PdfReader(BytesIO(data), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        raise encrypted_error()
    labels = read_labels(reader)

    def read_page(number: int) -> Page:
        text = PRESENTATION_FORMS.sub(lambda match: normalize("NFKC", match[0]), reader.pages[number].extract_text())
        lines = lines_without_positions(text.strip())
        return Page(lines, label=labels[number] if number < len(labels) else str(number + 1))

    outline = partial(read_outline, reader)
    write_document(read_document(len(reader.pages), read_page, outline, PAGE_ERRORS, limits), writer)


def read_labels(reader: pypdf.PdfReader) -> list[str]:
    try:
        return reader.page_labels if "/PageLabels" in reader.root_object else []
    except PAGE_ERRORS:
        return []


def read_outline(reader: pypdf.PdfReader) -> Iterator[OutlineEntry]:
    remaining: list[tuple[int, Any]] = [(0, reader.outline)]
    while remaining:
        level, entry = remaining.pop()
        if isinstance(entry, list):
            remaining += [(level + 1, child) for child in reversed(entry)]
        elif (page_index := reader.get_destination_page_number(entry)) is not None:
            yield OutlineEntry(level, str(entry.title), page_index + 1)


def preload() -> None:
    """Reads a small file, since the library imports some modules when it first reads a page."""
    for encoding in CODECS:
        codecs.lookup(encoding)
    writer = pypdf.PdfWriter()
    writer.add_blank_page(width=9, height=9)
    file = BytesIO()
    writer.write(file)
    for page in pypdf.PdfReader(file).pages:
        page.extract_text()
