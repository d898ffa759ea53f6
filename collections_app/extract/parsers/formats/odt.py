"""ODT files: headings, paragraphs, lists and tables in order, then the notes."""

import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from odf.namespaces import OFFICENS, TABLENS, TEXTNS
from odf.opendocument import OpenDocumentText, load
from odf.text import NoteBody

from ..common import archive
from ..common.failures import damaged_error, encrypted_error
from ..common.text_writer import TextWriter

HEADING, PARAGRAPH, ROW = (TEXTNS, "h"), (TEXTNS, "p"), (TABLENS, "table-row")
TEXT_BLOCKS = (HEADING, PARAGRAPH)
TABLE, CELLS = (TABLENS, "table"), ((TABLENS, "table-cell"), (TABLENS, "covered-table-cell"))
# Deleted text, comments and notes. A note would interrupt the sentence around it, so it is written last.
IGNORED_ELEMENTS = {(TEXTNS, "tracked-changes"), (OFFICENS, "annotation"), (TEXTNS, "note")}
MAX_SPACES = 100
TEXT_NODE_TYPES = (3, 4)


def parse(data: bytes, writer: TextWriter, limits: dict[str, Any]) -> None:
    archive.check_archive(data, limits)
    with zipfile.ZipFile(BytesIO(data)) as file:
        if b"encryption-data" in file.read("META-INF/manifest.xml"):
            raise encrypted_error()
    body = getattr(load(BytesIO(data)), "text", None)
    if body is None:
        raise damaged_error()
    write_blocks(body, writer)
    for note in body.getElementsByType(NoteBody):
        write_blocks(note, writer)


def write_blocks(element: Any, writer: TextWriter) -> None:
    for child in element.childNodes:
        qname = getattr(child, "qname", None)
        if qname == HEADING:
            level = str(child.attributes.get((TEXTNS, "outline-level"), "1"))
            writer.add_heading(int(level) if level.isdecimal() else 1, element_text(child))
        elif qname == PARAGRAPH:
            writer.add(element_text(child))
            write_text_boxes(child, writer)
        elif qname == TABLE:
            writer.add_table(
                [" ".join(map(element_text, descendants(cell, TEXT_BLOCKS))) for cell in descendants(row, CELLS)]
                for row in descendants(child, (ROW,))
            )
        elif qname and qname not in IGNORED_ELEMENTS:
            write_blocks(child, writer)


def write_text_boxes(paragraph: Any, writer: TextWriter) -> None:
    """Writes the text boxes of a paragraph, which are not part of its text."""
    for child in paragraph.childNodes:
        if getattr(child, "qname", ("", ""))[1] in ("frame", "text-box", "span", "a"):
            write_blocks(child, writer) if child.qname[1] == "text-box" else write_text_boxes(child, writer)


def element_text(element: Any) -> str:
    return "".join(text_pieces(element)).strip()


def text_pieces(element: Any) -> Iterator[str]:
    for child in element.childNodes:
        if child.nodeType in TEXT_NODE_TYPES:
            yield child.data
            continue
        qname = child.qname
        if qname == (TEXTNS, "s"):
            yield " " * min(int(child.attributes.get((TEXTNS, "c"), 1)), MAX_SPACES)
        elif qname == (TEXTNS, "tab"):
            yield "\t"
        elif qname == (TEXTNS, "line-break"):
            yield "\n"
        elif qname not in IGNORED_ELEMENTS and qname[1] != "text-box":
            yield from text_pieces(child)


def descendants(element: Any, qnames: tuple[Any, ...]) -> Iterator[Any]:
    for child in element.childNodes:
        qname = getattr(child, "qname", None)
        if qname in qnames:
            yield child
        elif qname and qname not in IGNORED_ELEMENTS:
            yield from descendants(child, qnames)


def preload() -> None:
    """Reads a file, since the library imports some modules when it first reads one."""
    file = BytesIO()
    OpenDocumentText().write(file)
    load(file)
