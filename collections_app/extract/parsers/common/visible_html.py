"""Extracts the visible text of an HTML page, block by block."""

from typing import Any

import lxml.etree
import lxml.html

from .text_writer import TextWriter

INVISIBLE_ELEMENTS = {
    "script", "style", "noscript", "template", "head", "title", "svg", "math", "iframe", "object", "select",
}  # fmt: skip
BLOCK_ELEMENTS = {
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html",
    "li", "main", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
}  # fmt: skip
# Chosen: larger ones are mistakes or attacks.
MAX_SPAN = 100
CELL_ELEMENTS = {"td", "th"}
HEADING_LEVELS = {f"h{level}": level for level in range(1, 7)}


# The error for a page that a tree truncates: it has more than 256 levels, or a text of more than 10 MB.
TOO_LARGE_ERROR = "XML_PARSE_HUGE"


def write_visible_text(page: str, writer: TextWriter) -> None:
    parser = html_parser(target=VisibleTextTarget(writer))
    parser.feed(page.encode("utf-8", "replace"))
    parser.close()


def fits_in_tree(page: str) -> bool:
    """Whether a tree can hold the whole page. Libraries that use trees would silently lose some of a larger one."""
    parser = html_parser()
    try:
        lxml.html.document_fromstring(page.encode("utf-8", "replace"), parser=parser)
    except lxml.etree.ParserError:
        return True  # the page is empty
    return not any(TOO_LARGE_ERROR in error.message for error in parser.error_log)


def html_parser(**options: Any) -> lxml.html.HTMLParser:
    return lxml.html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, **options)


class VisibleTextTarget:
    """Handles tags and text as events, without a tree and therefore without a limit on nesting."""

    def __init__(self, writer: TextWriter) -> None:
        self.writer = writer
        self.block: list[str] = []
        # The number of open elements, counted from the outermost invisible one.
        self.invisible_depth = 0
        # The rows of the open table; None outside tables, and in tables that only arrange blocks.
        self.rows: list[list[str]] | None = None
        self.is_in_cell = False
        self.column_span = 1
        self.first_row_tags: set[str] = set()

    def start(self, tag: str, attributes: Any) -> None:
        if self.invisible_depth or tag in INVISIBLE_ELEMENTS:
            self.invisible_depth += 1
            return
        if tag in HEADING_LEVELS or tag == "table":
            self.end_table()
        if tag == "br" or (self.is_in_cell and tag in BLOCK_ELEMENTS):
            self.block.append("\n")
        elif tag in BLOCK_ELEMENTS:
            self.flush()
        if tag == "table":
            self.rows, self.first_row_tags = [], set()
        elif tag == "tr" and self.rows is not None:
            self.rows.append([])
        elif tag in CELL_ELEMENTS and self.rows:
            self.is_in_cell = True
            span = (attributes.get("colspan") or "").strip()
            self.column_span = min(int(span), MAX_SPAN) if span.isdecimal() else 1

    def data(self, content: str) -> None:
        if not self.invisible_depth:
            self.block.append(content)

    def end(self, tag: str) -> None:
        if self.invisible_depth:
            self.invisible_depth -= 1
        elif tag in HEADING_LEVELS:
            title, self.block = "".join(self.block), []
            self.writer.add_heading(HEADING_LEVELS[tag], " ".join(title.split()))
        elif tag in CELL_ELEMENTS and self.rows and self.is_in_cell:
            self.rows[-1] += ["".join(self.block), *[""] * (self.column_span - 1)]
            if len(self.rows) == 1:
                self.first_row_tags.add(tag)
            self.block, self.is_in_cell = [], False
        elif tag in CELL_ELEMENTS:
            self.block.append(" ")
        elif tag == "table":
            self.end_table()
        elif tag in BLOCK_ELEMENTS and not self.is_in_cell:
            self.flush()

    def end_table(self) -> None:
        """Writes the rows of the open table. After a heading or a table in a cell, its other cells are blocks."""
        rows, self.rows, self.is_in_cell = self.rows, None, False
        self.writer.add_table(rows or (), has_header=self.first_row_tags == {"th"} or None)
        self.flush()

    def flush(self) -> None:
        lines = "".join(self.block).split("\n")
        self.block = []
        self.writer.add(" ".join(" ".join(line.split()) for line in lines if line.strip()))

    close = end_table
