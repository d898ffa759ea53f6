"""The visible text of an HTML page, block by block."""

from __future__ import annotations

from typing import Any

import lxml.etree
import lxml.html

from .text_writer import TextWriter

UNSEEN = {"script", "style", "noscript", "template", "head", "title", "svg", "math", "iframe", "object", "select"}
BLOCKS = {
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html", "li", "main",
    "nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
}  # fmt: skip
HEADINGS = {f"h{level}": level for level in range(1, 7)}


# How the library says that a tree of the page ends before the page does: 256 elements deep, or at a text of 10 MB.
CUT = "XML_PARSE_HUGE"


def write(page: str, text: TextWriter) -> None:
    """The whole page, block by block."""
    reader = parser(target=Visible(text))
    reader.feed(page.encode("utf-8", "replace"))
    reader.close()


def fits_tree(page: str) -> bool:
    """Whether a tree holds the whole page. Libraries that work on trees lose the rest without a word."""
    reader = parser()
    try:
        lxml.html.document_fromstring(page.encode("utf-8", "replace"), parser=reader)
    except lxml.etree.ParserError:
        return True  # nothing is in it
    return not any(CUT in each.message for each in reader.error_log)


def parser(**options: Any) -> lxml.html.HTMLParser:
    return lxml.html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, **options)


class Visible:
    """Told of tags and text as they come, without a tree: so no page is nested too deeply."""

    def __init__(self, text: TextWriter) -> None:
        self.text = text
        self.held: list[str] = []
        # Elements that are open from the outermost unseen one on.
        self.unseen = 0

    def start(self, kind: str, attributes: Any) -> None:
        if self.unseen or kind in UNSEEN:
            self.unseen += 1
            return
        if kind in BLOCKS:
            self.flush()
        if kind == "br":
            self.held.append("\n")

    def data(self, content: str) -> None:
        if not self.unseen:
            self.held.append(content)

    def end(self, kind: str) -> None:
        if self.unseen:
            self.unseen -= 1
        elif kind in HEADINGS:
            title, self.held = "".join(self.held), []
            self.text.heading(HEADINGS[kind], " ".join(title.split()))
        elif kind in ("td", "th"):
            self.held.append(" ")
        elif kind in BLOCKS:
            self.flush()

    def close(self) -> None:
        self.flush()

    def flush(self) -> None:
        lines = "".join(self.held).split("\n")
        self.held = []
        self.text.add(" ".join(" ".join(each.split()) for each in lines if each.strip()))
