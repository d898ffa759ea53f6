"""Jupyter notebooks: Markdown cells, code cells as blocks of code, and their output as text."""

import json
from typing import Any

from ..common.failures import damaged_error
from ..common.text_writer import PARAGRAPH_GAP, TextWriter
from .markdown import find_headings
from .plain import decode_text
from .plain import preload as preload


def parse(data: bytes, writer: TextWriter, limits: dict[str, Any]) -> None:
    notebook = json.loads(decode_text(data))
    # Notebooks before version 4 have worksheets.
    worksheets = notebook.get("worksheets", []) if "cells" not in notebook else [notebook]
    if not isinstance(notebook.get("nbformat"), int):
        raise damaged_error("The file is not a Jupyter notebook.")
    for cell in (cell for worksheet in worksheets for cell in worksheet["cells"]):
        add_cell(cell, writer)


def add_cell(cell: dict[str, Any], writer: TextWriter) -> None:
    source = writer.clean_text(joined(cell.get("source", cell.get("input", ""))))
    if cell["cell_type"] == "code":
        add_code(source, writer)
        for output in filter(None, map(output_text, cell.get("outputs", []))):
            add_code(output, writer)
        return
    if cell["cell_type"] == "heading":
        source = "#" * min(int(cell["level"]), 6) + f" {source}"
    offset = writer.length + len(PARAGRAPH_GAP) * bool(writer.length)
    writer.add(source)
    for heading_offset, level, title in find_headings(source):
        writer.record_heading(offset + heading_offset, level, title)


def add_code(code: str, writer: TextWriter) -> None:
    if code.strip():
        fence = "````" if "```" in code else "```"
        writer.add(f"{fence}\n{code.strip(chr(10))}\n{fence}")


def output_text(output: dict[str, Any]) -> str:
    """Returns what the cell printed, or its result as text; nothing of pictures and errors."""
    return joined(output.get("text", output.get("data", {}).get("text/plain", "")))


def joined(text: Any) -> str:
    """
    >>> joined(["a\\n", "b"]), joined("c")
    ('a\\nb', 'c')
    """
    return text if isinstance(text, str) else "".join(text)
