"""HTML pages: the article without menus, or all visible text if there is no article."""

from __future__ import annotations

import re
from typing import Any

import trafilatura

from ..common import decoding, visible_html
from ..common.decoding import NotText, decode
from ..common.failures import damaged
from ..common.text_writer import LINE, PARAGRAPH, TextWriter

DECLARED = re.compile(
    rb"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})|<\?xml[^>]*encoding=[\"']([A-Za-z0-9_.:-]{1,40})"
)
LOOKED_AT = 4096
# What trafilatura calls what it keeps.
KEPT_BLOCKS = {"p", "item", "quote", "code", "head", "row", "list", "table", "div", "graphic"}


def parse(data: bytes, text: TextWriter, limits: dict[str, Any]) -> None:
    found = DECLARED.search(data[:LOOKED_AT])
    declared = (found[1] or found[2]).decode() if found else ""
    try:
        page = decode(data, declared=declared)
    except NotText:
        raise damaged("The file is not text in any common encoding.") from None
    write_page(page, text)


def write_page(page: str, text: TextWriter) -> None:
    if not visible_html.fits_tree(page):
        visible_html.write(page, text)
        return
    article = trafilatura.bare_extraction(page, include_comments=False, favor_recall=True, with_metadata=False)
    body = getattr(article, "body", None)
    if body is not None and "".join(body.itertext()).strip():
        write_article(body, text)
    if not text.length:
        visible_html.write(page, text)


def write_article(element: Any, text: TextWriter) -> None:
    """trafilatura's own tree: head, p, list with item, table with row and cell."""
    for child in element:
        kind = str(child.tag)
        if kind == "head":
            text.heading(visible_html.HEADINGS.get(child.get("rend", ""), 2), inline(child))
        elif kind == "table":
            for number, row in enumerate(child.iter("row")):
                cells = [" ".join("".join(cell.itertext()).split()) for cell in row.iter("cell")]
                text.add(" | ".join(cells) if any(cells) else "", LINE if number else PARAGRAPH)
        elif any(each.tag in KEPT_BLOCKS for each in child.iterdescendants()):
            text.add(" ".join((child.text or "").split()))
            write_article(child, text)
        else:
            text.add(inline(child), LINE if kind == "item" and child.getprevious() is not None else PARAGRAPH)
        text.add(" ".join((child.tail or "").split()))


def inline(element: Any) -> str:
    for each in element.iter("lb"):
        each.text = "\n"
    content = "".join(element.itertext())
    if element.tag == "code":
        return content.strip("\n")
    return "\n".join(" ".join(each.split()) for each in content.split("\n")).strip()


def prepare() -> None:
    """trafilatura opens lists of words when it first reads a page."""
    sample = "<html><body><article><h1>One</h1><p>" + "Some words in a sentence. " * 30 + "</p></article></body></html>"
    write_page(sample, TextWriter(len(sample)))
    write_page("<html><body><nav>One</nav></body></html>", TextWriter(len(sample)))
    decoding.prepare(is_declared=True)
