"""In charge of DOCX files: paragraphs and tables in their order, without headers, footers and deleted text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import docx
from docx.oxml.ns import qn

from ..common import archive
from ..common.text_writer import LINE, TextWriter

PARAGRAPH, TABLE, ROW, CELL = qn("w:p"), qn("w:tbl"), qn("w:tr"), qn("w:tc")
SHOWN = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
# Deleted and moved text, properties, and what an older program would show instead.
LEFT_OUT = {
    qn("w:del"),
    qn("w:moveFrom"),
    qn("w:pPr"),
    qn("w:rPr"),
    qn("w:sectPr"),
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
}
TEXT, TEXT_BOX = qn("w:t"), qn("w:txbxContent")
HEADING_STYLE = re.compile(r"heading (\d)", re.IGNORECASE)
TITLE_LEVEL = 1


def parse(data: bytes, text: TextWriter, limits: dict[str, Any]) -> None:
    archive.check(data, limits)
    document = docx.Document(BytesIO(data))
    levels = {style.style_id: level for style in document.styles if (level := level_of(style))}
    walk(document.element.body, text, levels)


def level_of(style: Any) -> int:
    """Which heading the style makes, by its name (which is English in every language) or its outline; 0 if none."""
    name = (style.name or "").lower()
    if found := HEADING_STYLE.fullmatch(name):
        return int(found[1])
    if name == "title":
        return TITLE_LEVEL
    return outline(style.element)


def outline(element: Any) -> int:
    found = element.find(f"{qn('w:pPr')}/{qn('w:outlineLvl')}")
    value = "" if found is None else found.get(qn("w:val"), "")
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
    style = paragraph.find(f"{qn('w:pPr')}/{qn('w:pStyle')}")
    level = outline(paragraph) or levels.get("" if style is None else style.get(qn("w:val"), ""), 0)
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
    """It imports some of itself when it first reads a file: here its own empty one."""
    walk(docx.Document().element.body, TextWriter(1000), {})
