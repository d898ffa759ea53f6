"""PPTX files: each slide becomes a page with its title as heading, its text and its notes."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pptx
from pptx.shapes.group import GroupShape

from ..common import archive
from ..common.failures import UnreadableFile, damaged_error
from ..common.text_writer import TextWriter


def parse(data: bytes, writer: TextWriter, limits: dict[str, Any]) -> None:
    archive.check_archive(data, limits)
    slides = pptx.Presentation(BytesIO(data)).slides
    if len(slides) > limits["max_pages"]:
        raise UnreadableFile("limit_pages", f"The file has more than {limits['max_pages']} slides.")
    for number, slide in enumerate(slides, 1):
        writer.begin_page()
        try:
            add_slide(slide, writer)
        except (UnreadableFile, MemoryError, RecursionError):
            raise
        except Exception:  # the library may raise anything
            writer.warn(f"Slide {number} could not be read completely.")
    if writer.warnings and not writer.length:
        raise damaged_error()


def add_slide(slide: Any, writer: TextWriter) -> None:
    title = slide.shapes.title
    if title is not None and title.has_text_frame:
        writer.add_heading(1, restore_line_breaks(title.text_frame.text))
    for shape in leaf_shapes(slide.shapes):
        if title is not None and shape.shape_id == title.shape_id:
            continue
        if getattr(shape, "has_table", False):
            writer.add_table([cell.text for cell in row.cells] for row in shape.table.rows)
        elif shape.has_text_frame:
            writer.add(restore_line_breaks(shape.text_frame.text))
    if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
        writer.add(restore_line_breaks(notes.text))


def leaf_shapes(shapes: Any) -> Iterator[Any]:
    for shape in shapes:
        if isinstance(shape, GroupShape):  # `shape_type` raises for unknown shapes
            yield from leaf_shapes(shape.shapes)
        else:
            yield shape


def restore_line_breaks(text: str) -> str:
    """The library returns a line break within a paragraph as a vertical tab."""
    return text.replace("\v", "\n").strip()


def preload() -> None:
    """Reads the library's empty presentation, since it imports some modules when it first reads one."""
    list(pptx.Presentation().slides)
