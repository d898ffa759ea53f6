"""DOCX files: paragraphs, formulas and tables in order, without deleted text; then the notes, headers and footers."""

import posixpath
import re
import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from lxml import etree

from ..common import archive, office_math
from ..common.failures import damaged_error
from ..common.text_writer import TextWriter

NAMESPACE = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def qn(name: str) -> str:  # a qualified name, as in python-docx
    return NAMESPACE + name


PARAGRAPH, TABLE, ROW, CELL = qn("p"), qn("tbl"), qn("tr"), qn("tc")
SUBSTITUTES = {qn("tab"): "\t", qn("br"): "\n", qn("cr"): "\n", qn("noBreakHyphen"): "-"}
# Deleted and moved text, properties, and fallbacks for older programs.
FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
IGNORED_TAGS = {qn("del"), qn("moveFrom"), qn("pPr"), qn("rPr"), qn("sectPr"), FALLBACK}
TEXT, TEXT_BOX = qn("t"), qn("txbxContent")
HEADING_STYLE = re.compile(r"heading (\d)", re.IGNORECASE)
TITLE_LEVEL = 1
# The most columns that Word supports.
MAX_SPAN = 63
# The default name of the document part.
MAIN_PART = "word/document.xml"


def parse(data: bytes, writer: TextWriter, limits: dict[str, Any]) -> None:
    """Only the document part is required; a file without styles has no headings."""
    archive.check_archive(data, limits)
    with zipfile.ZipFile(BytesIO(data)) as file:
        main_part = next(iter(relationship_targets(file, "", "officeDocument")), MAIN_PART)
        document = parse_part(file, main_part)
        body = None if document is None else document.find(qn("body"))
        if body is None:
            raise damaged_error()
        style_parts = [parse_part(file, name) for name in relationship_targets(file, main_part, "styles")]
        levels = heading_levels(style_parts[0]) if style_parts and style_parts[0] is not None else {}
        write_blocks(body, writer, levels)
        write_margins(file, main_part, writer)


def write_margins(file: zipfile.ZipFile, main_part: str, writer: TextWriter) -> None:
    """Writes each note, header and footer once. They come last: a note would interrupt its sentence, and before the
    first heading, a header would be a section without headings."""
    written_texts = set()
    for kind in ("footnotes", "endnotes", "header", "footer"):
        for name in relationship_targets(file, main_part, kind):
            try:
                part = parse_part(file, name)
            except etree.XMLSyntaxError:
                writer.warn(f"The part {name} could not be read.")
                continue
            text = "" if part is None else "".join(text_pieces(part))
            # One without letters is a page number.
            if text not in written_texts and any(character.isalpha() for character in text):
                written_texts.add(text)
                write_blocks(part, writer, {})


def relationship_targets(file: zipfile.ZipFile, source: str, kind: str) -> list[str]:
    """Returns the parts to which `source` ("" is the file itself) has a relationship of this kind."""
    folder, name = posixpath.split(source)
    relationships = parse_part(file, posixpath.join(folder, "_rels", f"{name}.rels"))
    return [
        posixpath.normpath(posixpath.join("/", folder, relationship.get("Target", ""))).lstrip("/")
        for relationship in (() if relationships is None else relationships)
        if isinstance(relationship.tag, str) and relationship.get("Type", "").endswith(f"/relationships/{kind}")
    ]


def parse_part(file: zipfile.ZipFile, name: str) -> Any:
    if name not in file.namelist():
        return None
    # A "huge" tree may be 2048 levels deep instead of 256, which is 80 nested tables.
    parser = etree.XMLParser(remove_blank_text=True, resolve_entities=False, no_network=True, huge_tree=True)
    return etree.fromstring(file.read(name), parser)


def heading_levels(styles: Any) -> dict[str, int]:
    levels = {style.get(qn("styleId"), ""): style_level(style) for style in styles.iter(qn("style"))}
    return {name: level for name, level in levels.items() if level}


def style_level(style: Any) -> int:
    """Returns the heading level of a style, from its name (always English) or its outline level; 0 if it has none."""
    name_element = style.find(qn("name"))
    name = "" if name_element is None else name_element.get(qn("val"), "").lower()
    if match := HEADING_STYLE.fullmatch(name):
        return int(match[1])
    return TITLE_LEVEL if name == "title" else outline_level(style)


def outline_level(element: Any) -> int:
    level_element = element.find(f"{qn('pPr')}/{qn('outlineLvl')}")
    value = "" if level_element is None else level_element.get(qn("val"), "")
    return int(value) + 1 if value.isdecimal() and int(value) < 9 else 0


def write_blocks(element: Any, writer: TextWriter, levels: dict[str, int]) -> None:
    """Writes the blocks of an element, including those in content controls and tracked changes."""
    for child in element:
        if child.tag == PARAGRAPH:
            add_paragraph(child, writer, levels)
        elif child.tag == TABLE:
            rows = list(descendants(child, ROW))
            is_marked = bool(rows) and rows[0].find(f"{qn('trPr')}/{qn('tblHeader')}") is not None
            writer.add_table(map(row_cells, rows), has_header=is_marked or None)
        elif child.tag not in IGNORED_TAGS:
            write_blocks(child, writer, levels)


def add_paragraph(paragraph: Any, writer: TextWriter, levels: dict[str, int]) -> None:
    content = "".join(text_pieces(paragraph))
    style = paragraph.find(f"{qn('pPr')}/{qn('pStyle')}")
    level = outline_level(paragraph) or levels.get("" if style is None else style.get(qn("val"), ""), 0)
    if level and content.strip():
        writer.add_heading(level, content)
    else:
        writer.add(content)
    for box in paragraph.iter(TEXT_BOX):
        if not is_ignored(box):
            write_blocks(box, writer, levels)


def is_ignored(element: Any) -> bool:
    return any(ancestor.tag in IGNORED_TAGS for ancestor in element.iterancestors())


def text_pieces(element: Any) -> Iterator[str]:
    """Yields the text of runs, formulas, links, insertions and content controls. Text boxes follow their paragraph."""
    for child in element:
        if child.tag == TEXT:
            yield child.text or ""
        elif child.tag in SUBSTITUTES:
            yield SUBSTITUTES[child.tag]
        elif child.tag == office_math.FORMULA:
            yield office_math.formula_text(child)
        elif child.tag not in IGNORED_TAGS and child.tag != TEXT_BOX:
            yield from text_pieces(child)


def descendants(element: Any, tag: str) -> Iterator[Any]:
    """Yields rows or cells, including those in content controls, but not those of nested tables."""
    for child in element:
        if child.tag == tag:
            yield child
        elif child.tag not in IGNORED_TAGS and child.tag not in (TABLE, PARAGRAPH):
            yield from descendants(child, tag)


def row_cells(row: Any) -> list[str]:
    """Returns the cells of a row, with an empty one for each further column that a cell covers."""
    cells: list[str] = []
    for cell in descendants(row, CELL):
        span_element = cell.find(f"{qn('tcPr')}/{qn('gridSpan')}")
        span = "" if span_element is None else span_element.get(qn("val"), "")
        cells += [cell_text(cell), *[""] * (min(int(span), MAX_SPAN) - 1 if span.isdecimal() else 0)]
    return cells


def cell_text(cell: Any) -> str:
    paragraphs = (paragraph for paragraph in cell.iter(PARAGRAPH) if not is_ignored(paragraph))
    return " ".join("".join(text_pieces(paragraph)) for paragraph in paragraphs)


def preload() -> None:
    """Parses once, since the library imports some modules when it first reads XML."""
    etree.fromstring(b"<a/>", etree.XMLParser(huge_tree=True))
