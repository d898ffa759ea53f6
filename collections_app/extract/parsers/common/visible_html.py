"""In charge of all that is visible in an HTML page, block by block."""

from __future__ import annotations

from typing import Any

import lxml.html

from .text_writer import TextWriter

UNSEEN = {"script", "style", "noscript", "template", "head", "title", "svg", "math", "iframe", "object", "select"}
BLOCKS = {
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html", "li", "main",
    "nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
}  # fmt: skip
HEADINGS = {f"h{level}": level for level in range(1, 7)}


def write(page: str, text: TextWriter) -> None:
    """The whole page, block by block."""
    if not page.strip():
        return
    reader = parser()
    root = lxml.html.document_fromstring(page.encode("utf-8", "replace"), parser=reader)
    if any("depth" in each.message for each in reader.error_log):
        text.warn("Parts that are nested too deeply were left out.")
    Visible(text).walk(root)


def parser() -> lxml.html.HTMLParser:
    return lxml.html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True)


class Visible:
    def __init__(self, text: TextWriter) -> None:
        self.text = text
        self.held: list[str] = []

    def walk(self, root: Any) -> None:
        """Without recursion: pages may be nested deeper than Python goes."""
        steps: list[tuple[Any, bool]] = [(root, True)]
        while steps:
            element, is_entering = steps.pop()
            kind = element.tag if isinstance(element.tag, str) else ""
            if not is_entering:
                self.end(kind)
                self.held.append(element.tail or "")
                continue
            steps.append((element, False))
            if kind in BLOCKS:
                self.flush()
            if kind == "br":
                self.held.append("\n")
            if kind and kind not in UNSEEN:
                self.held.append(element.text or "")
                steps += [(child, True) for child in reversed(element)]
        self.flush()

    def end(self, kind: str) -> None:
        if kind in HEADINGS:
            title, self.held = "".join(self.held), []
            self.text.heading(HEADINGS[kind], " ".join(title.split()))
        elif kind in ("td", "th"):
            self.held.append(" ")
        elif kind in BLOCKS:
            self.flush()

    def flush(self) -> None:
        lines = "".join(self.held).split("\n")
        self.held = []
        self.text.add(" ".join(" ".join(each.split()) for each in lines if each.strip()))
