"""DOCX files: paragraphs and tables in order, without headers, footers and deleted text."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from lxml import etree

from ..common import archive
from ..common.failures import damaged
from ..common.text_writer import LINE, TextWriter

NAMESPACE = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def qn(name: str) -> str:
    return NAMESPACE + name


PARAGRAPH, TABLE, ROW, CELL = qn("p"), qn("tbl"), qn("tr"), qn("tc")
SHOWN = {qn("tab"): "\t", qn("br"): "\n", qn("cr"): "\n", qn("noBreakHyphen"): "-"}
# Deleted and moved text, properties, and what an older program would show instead.
LEFT_OUT = {
    qn("del"),
    qn("moveFrom"),
    qn("pPr"),
    qn("rPr"),
    qn("sectPr"),
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
}
TEXT, TEXT_BOX = qn("t"), qn("txbxContent")
HEADING_STYLE = re.compile(r"heading (\d)", re.IGNORECASE)
TITLE_LEVEL = 1
# Where nothing says where the document is.
MAIN = "word/document.xml"


def parse(data: bytes, text: TextWriter, limits: dict[str, Any]) -> None:
    """Of its parts only the document itself must be there: a file without styles has paragraphs, and no headings."""
    archive.check(data, limits)
    with zipfile.ZipFile(BytesIO(data)) as file:
        main = target(file, "", "officeDocument") or MAIN
        document = tree(file, main)
        body = None if document is None else document.find(qn("body"))
        if body is None:
            raise damaged()
        styles = tree(file, target(file, main, "styles"))
    walk(body, text, {} if styles is None else heading_levels(styles))


def target(file: zipfile.ZipFile, source: str, kind: str) -> str:
    """The name of the part that this one ("" for the file itself) is related to in this way; "" if there is none."""
    folder, name = posixpath.split(source)
    relations = tree(file, posixpath.join(folder, "_rels", f"{name}.rels"))
    for each in () if relations is None else relations:
        if isinstance(each.tag, str) and each.get("Type", "").endswith(f"/relationships/{kind}"):
            return posixpath.normpath(posixpath.join("/", folder, each.get("Target", ""))).lstrip("/")
    return ""


def tree(file: zipfile.ZipFile, name: str) -> Any:
    """The part as a tree, None if there is no such part."""
    if name not in file.namelist():
        return None
    # A tree that may be "huge" is 2048 elements deep, others 256: 80 tables in one another.
    reader = etree.XMLParser(remove_blank_text=True, resolve_entities=False, no_network=True, huge_tree=True)
    return etree.fromstring(file.read(name), reader)


def heading_levels(styles: Any) -> dict[str, int]:
    """Which heading each style makes, by its id."""
    found = {style.get(qn("styleId"), ""): level_of(style) for style in styles.iter(qn("style"))}
    return {name: level for name, level in found.items() if level}


def level_of(style: Any) -> int:
    """By its name (which is English in every language) or its outline; 0 if none."""
    named = style.find(qn("name"))
    name = "" if named is None else named.get(qn("val"), "").lower()
    if found := HEADING_STYLE.fullmatch(name):
        return int(found[1])
    return TITLE_LEVEL if name == "title" else outline(style)


def outline(element: Any) -> int:
    found = element.find(f"{qn('pPr')}/{qn('outlineLvl')}")
    value = "" if found is None else found.get(qn("val"), "")
    return int(value) + 1 if value.isdecimal() and int(value) < 9 else 0


def walk(element: Any, text: TextWriter, levels: dict[str, int]) -> None:
    """Blocks may lie in content controls and marks of changes."""
    for child in element:
        if child.tag == PARAGRAPH:
            add_paragraph(child, text, levels)
        elif child.tag == TABLE:
            add_table(child, text)
        elif child.tag not in LEFT_OUT:
            walk(child, text, levels)


def add_paragraph(paragraph: Any, text: TextWriter, levels: dict[str, int]) -> None:
    content = "".join(pieces(paragraph))
    style = paragraph.find(f"{qn('pPr')}/{qn('pStyle')}")
    level = outline(paragraph) or levels.get("" if style is None else style.get(qn("val"), ""), 0)
    if level and content.strip():
        text.heading(level, content)
    else:
        text.add(content)
    for box in paragraph.iter(TEXT_BOX):
        if not any(each.tag in LEFT_OUT for each in box.iterancestors()):
            walk(box, text, levels)


def pieces(element: Any) -> Iterator[str]:
    """The text of runs, hyperlinks, inserted text and content controls; text boxes come after their paragraph."""
    for child in element:
        if child.tag == TEXT:
            yield child.text or ""
        elif child.tag in SHOWN:
            yield SHOWN[child.tag]
        elif child.tag not in LEFT_OUT and child.tag != TEXT_BOX:
            yield from pieces(child)


def add_table(table: Any, text: TextWriter) -> None:
    for number, row in enumerate(within(table, ROW)):
        cells = [" ".join(content_of(cell).split()) for cell in within(row, CELL)]
        text.add(" | ".join(cells) if any(cells) else "", LINE if number else "\n\n")


def within(element: Any, tag: str) -> Iterator[Any]:
    """Rows or cells, also inside content controls; not those of tables further inside."""
    for child in element:
        if child.tag == tag:
            yield child
        elif child.tag not in LEFT_OUT and child.tag not in (TABLE, PARAGRAPH):
            yield from within(child, tag)


def content_of(cell: Any) -> str:
    return " ".join("".join(pieces(paragraph)) for paragraph in cell.iter(PARAGRAPH))


def prepare() -> None:
    """The library imports some of itself when it first reads XML."""
    etree.fromstring(b"<a/>", etree.XMLParser(huge_tree=True))
