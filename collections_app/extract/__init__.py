"""Recognizes the format of a file and extracts its text.

    recognise   content, name and declared type must agree            formats, recognition
    extract     one child process reads one file and is thrown away   child_process, answers
                what runs in that process                             parsers/

A parser is fed by strangers. Limits inside libraries can be escaped (a PDF of 670 KB reached 5.7 GB), so each file is
read in a process without secrets, network and files, with limits on memory, time and output.
"""

from __future__ import annotations

import time

from django.conf import settings

from . import child_output, child_process
from .parsers.common.decoding import is_text
from .parsers.common.failures import ParserRefused
from .parsers.common.text_writer import TextWriter
from .recognition import recognise
from .results import Extracted, Heading, Limits, Unreadable

__all__ = ["Extracted", "Heading", "Limits", "Unreadable", "configured_limits", "extract", "recognise"]

# Which parsers read a format; a later one is tried when the one before takes the file for damaged.
PARSERS = {
    "pdf": ("pdf_by_pdfium", "pdf_by_pypdf"),
    "docx": ("docx",),
    "pptx": ("pptx",),
    "xlsx": ("xlsx",),
    "odt": ("odt",),
    "html": ("html",),
    "markdown": ("markdown",),
    "csv": ("csv",),
    "eml": ("eml",),
    "rtf": ("rtf",),
    "text": ("plain",),
}


def extract(data: bytes, format: str, limits: Limits | None = None) -> Extracted:
    """The text of a file of this format; Unreadable when there will never be one, "" when nothing is written in it."""
    limits = limits or configured_limits()
    if format == "text" and (found := plain(data, limits)):
        return found
    deadline = time.monotonic() + limits.wall_s
    refused = None
    for parser in PARSERS[format]:
        try:
            return child_output.read(child_process.run(parser, data, limits, deadline=deadline), limits.max_characters)
        except Unreadable as error:
            if error.code != "damaged":
                raise
            refused = error
    assert refused is not None
    raise refused


def plain(data: bytes, limits: Limits) -> Extracted | None:
    """Text in UTF-8 needs no parser, so no child; None for whatever else it may be."""
    try:
        content = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    if not is_text(content, may_be_unknown=True):
        return None
    text = TextWriter(limits.max_characters)
    try:
        text.add_as_it_is(content)
    except ParserRefused as error:
        raise Unreadable(error.code, error.message) from None
    return child_output.extracted(text.answer(), limits.max_characters)


def configured_limits() -> Limits:
    """What the operator allows."""
    allowed = settings.COLLECTIONS
    return Limits(
        max_pages=allowed["max_pages"],
        max_cells=allowed["max_cells"],
        max_characters=allowed["max_characters"],
    )
