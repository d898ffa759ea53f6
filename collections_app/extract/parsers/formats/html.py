"""HTML pages: the article without menus, or all visible text if there is no article."""

import re
from typing import Any

import trafilatura

from ..common import decoding, visible_html
from ..common.text_writer import LINE_GAP, PARAGRAPH_GAP, TextWriter
from .plain import decode_text

DECLARED_ENCODING = re.compile(
    rb"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})|<\?xml[^>]*encoding=[\"']([A-Za-z0-9_.:-]{1,40})"
)
HEAD_BYTES = 4096
# The block elements of trafilatura's result.
ARTICLE_BLOCKS = {"p", "item", "quote", "code", "head", "row", "list", "table", "div", "graphic"}


def parse(data: bytes, writer: TextWriter, limits: dict[str, Any]) -> None:
    write_page(decode_page(data), writer)


def decode_page(data: bytes) -> str:
    match = DECLARED_ENCODING.search(data[:HEAD_BYTES])
    declared_encoding = (match[1] or match[2]).decode() if match else ""
    return decode_text(data, declared_encoding)


def write_page(page: str, writer: TextWriter) -> None:
    if visible_html.fits_in_tree(page):
        article = trafilatura.bare_extraction(page, include_comments=False, favor_recall=True, with_metadata=False)
        body = getattr(article, "body", None)
        if body is not None and "".join(body.itertext()).strip():
            write_article(body, writer)
    if not writer.length:
        visible_html.write_visible_text(page, writer)


def write_article(element: Any, writer: TextWriter) -> None:
    """Writes trafilatura's tree: head, p, list with item, table with row and cell."""
    for child in element:
        tag = str(child.tag)
        if tag == "head":
            writer.add_heading(visible_html.HEADING_LEVELS.get(child.get("rend", ""), 2), inline_text(child))
        elif tag == "table":
            rows = [list(row.iter("cell")) for row in child.iter("row")]
            is_marked = bool(rows) and all(cell.get("role") == "head" for cell in rows[0])
            writer.add_table((["".join(cell.itertext()) for cell in row] for row in rows), has_header=is_marked or None)
        elif any(element.tag in ARTICLE_BLOCKS for element in child.iterdescendants()):
            writer.add(" ".join((child.text or "").split()))
            write_article(child, writer)
        else:
            writer.add(
                inline_text(child), LINE_GAP if tag == "item" and child.getprevious() is not None else PARAGRAPH_GAP
            )
        writer.add(" ".join((child.tail or "").split()))


def inline_text(element: Any) -> str:
    for line_break in element.iter("lb"):
        line_break.text = "\n"
    content = "".join(element.itertext())
    if element.tag == "code":
        return content.strip("\n")
    return "\n".join(" ".join(line.split()) for line in content.split("\n")).strip()


def preload() -> None:
    """Reads pages, since trafilatura opens word lists when it first reads one."""
    sample = "<html><body><article><h1>One</h1><p>" + "Some words in a sentence. " * 30 + "</p></article></body></html>"
    write_page(sample, TextWriter(len(sample)))
    write_page("<html><body><nav>One</nav></body></html>", TextWriter(len(sample)))
    decoding.preload(loads_all=True)
