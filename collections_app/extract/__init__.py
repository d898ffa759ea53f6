"""Recognizes the format of a file and extracts its text.

    recognise   content, name and declared type must agree   file_formats, recognition
    extract     one child process reads one file             child_process, child_output
                what runs in that process                    parsers/

Files are untrusted, and limits inside libraries can be bypassed (a PDF of 670 KB reached 5.7 GB). So each file is read
in a process without secrets, network and files, with limits on memory, time and output.
"""

import time

from django.conf import settings

from . import child_output, child_process
from .file_formats import FORMATS
from .parsers.common.decoding import is_text
from .parsers.common.failures import ParserRefused
from .parsers.common.text_writer import TextWriter
from .recognition import recognise
from .results import Extracted, Heading, Limits, Unreadable

__all__ = ["Extracted", "Heading", "Limits", "Unreadable", "configured_limits", "extract", "recognise"]


def extract(data: bytes, format: str, limits: Limits | None = None) -> Extracted:
    """Returns the text of a file, which may be empty; raises Unreadable if it cannot be read."""
    limits = limits or configured_limits()
    if format == "text" and (result := plain(data, limits)):
        return result
    deadline = time.monotonic() + limits.wall_s
    failure = None
    for parser in FORMATS[format].parsers:
        try:
            return child_output.read(child_process.run(parser, data, limits, deadline=deadline), limits.max_characters)
        except Unreadable as error:
            if error.code != "damaged":
                raise
            failure = error
    assert failure is not None
    raise failure


def plain(data: bytes, limits: Limits) -> Extracted | None:
    """Reads UTF-8 text, which needs no child process; None for any other content."""
    try:
        content = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    if not is_text(content, may_be_unknown=True):
        return None
    text = TextWriter(limits.max_characters)
    try:
        text.add_verbatim(content)
    except ParserRefused as error:
        raise Unreadable(error.code, error.message) from None
    return child_output.extracted(text.answer(), limits.max_characters)


def configured_limits() -> Limits:
    allowed = settings.COLLECTIONS
    return Limits(
        max_pages=allowed["max_pages"], max_cells=allowed["max_cells"], max_characters=allowed["max_characters"]
    )
