"""PPTX files: a slide is a page, its title a heading, followed by its notes."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pptx
from pptx.shapes.group import GroupShape

from ..common import archive
from ..common.failures import ParserRefused
from ..common.text_writer import LINE, PARAGRAPH, TextWriter


def parse(data: bytes, text: TextWriter, limits: dict[str, Any]) -> None:
    archive.check(data, limits)
    slides = pptx.Presentation(BytesIO(data)).slides
    if len(slides) > limits["max_pages"]:
        raise ParserRefused("limit_pages", f"The file has more than {limits['max_pages']} slides.")
    for slide in slides:
        text.page()
        add_slide(slide, text)


def add_slide(slide: Any, text: TextWriter) -> None:
    title = slide.shapes.title
    if title is not None and title.has_text_frame:
        text.heading(1, shown(title.text_frame.text))
    for shape in leaves(slide.shapes):
        if title is not None and shape.shape_id == title.shape_id:
            continue
        if getattr(shape, "has_table", False):
            add_table(shape.table, text)
        elif shape.has_text_frame:
            text.add(shown(shape.text_frame.text))
    if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
        text.add(shown(notes.text))


def leaves(shapes: Any) -> Iterator[Any]:
    for shape in shapes:
        if isinstance(shape, GroupShape):  # `shape_type` throws for shapes that it does not know
            yield from leaves(shape.shapes)
        else:
            yield shape


def add_table(table: Any, text: TextWriter) -> None:
    for number, row in enumerate(table.rows):
        cells = [" ".join(cell.text.split()) for cell in row.cells]
        text.add(" | ".join(cells) if any(cells) else "", LINE if number else PARAGRAPH)


def shown(text: str) -> str:
    """A line break within a paragraph comes as a vertical tab."""
    return text.replace("\v", "\n").strip()


def prepare() -> None:
    """It imports some of itself when it first reads a file: here its own empty one."""
    list(pptx.Presentation().slides)
