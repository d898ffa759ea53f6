"""Writes the pages of a PDF file, as a library reads them."""

from collections.abc import Callable, Sequence
from typing import Any

from .failures import ParserRefused, damaged_error
from .text_writer import TextWriter


def write_pages(
    pages: Sequence[Any],
    read_text: Callable[[Any], str],
    page_errors: tuple[type[Exception], ...],
    text: TextWriter,
    max_pages: int,
) -> None:
    """Pages that raise one of the errors are left out, with a warning."""
    if len(pages) > max_pages:
        raise ParserRefused("limit_pages", f"The file has more than {max_pages} pages.")
    unreadable_pages = 0
    for page in pages:
        text.page()
        try:
            text.add(read_text(page))
        except page_errors:
            unreadable_pages += 1
    if unreadable_pages == len(pages):
        raise damaged_error()
    if unreadable_pages:
        text.warn(f"{unreadable_pages} of {len(pages)} pages could not be read.")
