"""ODT files: headings, paragraphs, lists and tables in order."""

import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from odf.namespaces import OFFICENS, TABLENS, TEXTNS
from odf.opendocument import OpenDocumentText, load

from ..common import archive
from ..common.failures import damaged, encrypted
from ..common.text_writer import TextWriter

HEADING, BLOCK, ROW = (TEXTNS, "h"), (TEXTNS, "p"), (TABLENS, "table-row")
TABLE, CELLS = (TABLENS, "table"), ((TABLENS, "table-cell"), (TABLENS, "covered-table-cell"))
# Deleted text, comments, and notes, which would interrupt the sentence.
IGNORED = {(TEXTNS, "tracked-changes"), (OFFICENS, "annotation"), (TEXTNS, "note")}
MAX_SPACES = 100
TEXT_NODES = (3, 4)


def parse(data: bytes, text: TextWriter, limits: dict[str, Any]) -> None:
    archive.check(data, limits)
    with zipfile.ZipFile(BytesIO(data)) as file:
        if b"encryption-data" in file.read("META-INF/manifest.xml"):
            raise encrypted()
    body = getattr(load(BytesIO(data)), "text", None)
    if body is None:
        raise damaged()
    walk(body, text)


def walk(element: Any, text: TextWriter) -> None:
    for child in element.childNodes:
        name = getattr(child, "qname", None)
        if name == HEADING:
            level = str(child.attributes.get((TEXTNS, "outline-level"), "1"))
            text.heading(int(level) if level.isdecimal() else 1, content(child))
        elif name == BLOCK:
            text.add(content(child))
            frames(child, text)
        elif name == TABLE:
            text.add_table([" ".join(paragraphs(cell)) for cell in within(row, CELLS)] for row in within(child, (ROW,)))
        elif name and name not in IGNORED:
            walk(child, text)


def frames(paragraph: Any, text: TextWriter) -> None:
    """Write the text boxes of a paragraph, which are not part of its text."""
    for child in paragraph.childNodes:
        if getattr(child, "qname", ("", ""))[1] in ("frame", "text-box", "span", "a"):
            walk(child, text) if child.qname[1] == "text-box" else frames(child, text)


def content(element: Any) -> str:
    return "".join(pieces(element)).strip()


def pieces(element: Any) -> Iterator[str]:
    for child in element.childNodes:
        if child.nodeType in TEXT_NODES:
            yield child.data
            continue
        name = child.qname
        if name == (TEXTNS, "s"):
            yield " " * min(int(child.attributes.get((TEXTNS, "c"), 1)), MAX_SPACES)
        elif name == (TEXTNS, "tab"):
            yield "\t"
        elif name == (TEXTNS, "line-break"):
            yield "\n"
        elif name not in IGNORED and name[1] != "text-box":
            yield from pieces(child)


def within(element: Any, names: tuple[Any, ...]) -> Iterator[Any]:
    for child in element.childNodes:
        name = getattr(child, "qname", None)
        if name in names:
            yield child
        elif name and name not in IGNORED:
            yield from within(child, names)


def paragraphs(cell: Any) -> Iterator[str]:
    for child in cell.childNodes:
        name = getattr(child, "qname", None)
        if name in (BLOCK, HEADING):
            yield content(child)
        elif name and name not in IGNORED:
            yield from paragraphs(child)


def prepare() -> None:
    """Reads a file, since the library imports some modules when it first reads one."""
    file = BytesIO()
    OpenDocumentText().write(file)
    load(file)
