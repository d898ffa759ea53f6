"""Writes the pages of a PDF file, for both PDF parsers."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..common.failures import UnreadableFile, damaged_error, too_much_text_error
from ..common.text_writer import MAX_HEADINGS, TextWriter, is_header
from . import headings
from .hyphens import Hyphens
from .lines import Document, Line, OutlineEntry, Page, page_ranges
from .running_lines import remove_running_lines
from .tables import Table, split_into_blocks

# Chosen: a page of an article that was scanned may have a short line of text that a library added.
MAX_CHARACTERS_OF_SCAN = 300
MAX_REMAINDER_OF_SCAN = 20


def read_document(
    page_count: int,
    read_page: Callable[[int], Page],
    outline: Callable[[], Iterable[OutlineEntry]],
    page_errors: tuple[type[Exception], ...],
    limits: dict[str, Any],
) -> Document:
    """Reads all pages and the outline. Pages that raise one of `page_errors` are empty and not readable."""
    if page_count > limits["max_pages"]:
        raise UnreadableFile("limit_pages", f"The file has more than {limits['max_pages']} pages.")
    document = Document()
    character_count = 0
    for number in range(page_count):
        try:
            page = read_page(number)
        except page_errors:
            page = Page([], label=str(number + 1), is_readable=False)
        document.pages.append(page)
        character_count += sum(len(line.text) for line in page.lines)
        if character_count > limits["max_characters"]:
            raise too_much_text_error(limits["max_characters"])
    if not any(page.is_readable for page in document.pages):
        raise damaged_error()
    try:
        for entry in outline():
            is_on_page = entry.title.strip() and 1 <= entry.page_number <= page_count
            if is_on_page and len(document.outline) < MAX_HEADINGS:
                document.outline.append(entry)
    except page_errors:
        document.outline.clear()
    return document


def write_document(document: Document, writer: TextWriter) -> None:
    pages = document.pages
    body_size = headings.body_size_of(pages)
    remove_running_lines(pages, body_size)
    page_headings, other_entries = headings.headings_of_outline(document)
    if len(document.outline) < headings.MIN_OUTLINE_ENTRIES:
        page_headings = headings.headings_by_size(pages, body_size)
    hyphens = Hyphens("\n".join(line.text for line in page.lines) for page in pages)
    page_writer = PageWriter(writer, hyphens)
    for page, places, entries in zip(pages, page_headings, other_entries, strict=True):
        page_writer.write_page(page, places, entries)
    if any(page.label != str(number) for number, page in enumerate(pages, 1)):
        writer.page_labels = [writer.clean_text(page.label) for page in pages]
    writer.scanned_pages = [number for number, page in enumerate(pages, 1) if is_scan(page)]
    if unreadable := [number for number, page in enumerate(pages, 1) if not page.is_readable]:
        writer.warn(f"{len(unreadable)} of {len(pages)} pages could not be read: {page_ranges(unreadable)}.")


def is_scan(page: Page) -> bool:
    """Whether the page is an image without text, except for a short line that was added to it."""
    return page.has_image and sum(len(line.text.strip()) for line in page.lines) <= MAX_REMAINDER_OF_SCAN


class PageWriter:
    def __init__(self, writer: TextWriter, hyphens: Hyphens) -> None:
        self.writer = writer
        self.hyphens = hyphens
        # The table at the end of the previous page, the one that was just written, and their header.
        self.previous_table: Table | None = None
        self.table: Table | None = None
        self.header: list[str] = []

    def write_page(self, page: Page, places: headings.PageHeadings, entries: Sequence[OutlineEntry]) -> None:
        self.writer.begin_page()
        self.previous_table, self.table = self.table, None
        for entry in entries:
            title = " ".join(self.writer.clean_text(entry.title).split())
            self.writer.record_heading(self.writer.length, entry.level, title)
        index = 0
        for start in [*sorted(places), len(page.lines)]:
            self.write_lines(page.lines[index:start])
            if start in places:
                level, count = places[start]
                index = start + count
                title = "\n".join(line.text for line in page.lines[start:index])
                self.writer.add_heading(level, self.hyphens.join(title))
                self.previous_table = self.table = None

    def write_lines(self, lines: Sequence[Line]) -> None:
        for block in split_into_blocks(lines):
            if isinstance(block, Table):
                self.write_table(block)
            elif text := block.strip():
                self.writer.add(self.hyphens.join(text))
                self.previous_table = self.table = None

    def write_table(self, table: Table) -> None:
        """Writes a table. If it continues the one on the page before, it gets its header."""
        rows = [[" ".join(self.hyphens.join(cell).split()) for cell in row] for row in table.rows]
        if self.previous_table is not None and self.header and table.continues(self.previous_table):
            rows = rows if rows[0] == self.header else [self.header, *rows]
            self.writer.add_table(rows, has_header=True)
        else:
            self.header = rows[0] if is_header(rows[0]) else []
            self.writer.add_table(rows)
        self.previous_table, self.table = None, table
