"""Writes the pages of a PDF file, for both PDF parsers."""

from collections.abc import Callable, Sequence
from typing import Any

from .failures import UnreadableFile, damaged_error
from .text_writer import TextWriter


def write_pages(
    pages: Sequence[Any],
    read_text: Callable[[Any], str],
    page_errors: tuple[type[Exception], ...],
    writer: TextWriter,
    max_pages: int,
) -> None:
    """Writes the text of all pages. Pages that raise one of `page_errors` are skipped with a warning."""
    if len(pages) > max_pages:
        raise UnreadableFile("limit_pages", f"The file has more than {max_pages} pages.")
    unreadable_count = 0
    for page in pages:
        writer.begin_page()
        try:
            writer.add(read_text(page))
        except page_errors:
            unreadable_count += 1
    if unreadable_count == len(pages):
        raise damaged_error()
    if unreadable_count:
        writer.warn(f"{unreadable_count} of {len(pages)} pages could not be read.")
