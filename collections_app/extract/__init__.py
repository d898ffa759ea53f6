"""Recognizes the format of a file and extracts its text.

    recognize   content, name and declared type must agree   file_formats, recognition
    extract     one child process reads one file             child_process, zip_archive
                what runs in that process                    parsers/

Files are untrusted, and limits inside libraries can be bypassed (a PDF of 670 KB used 5.7 GB). So each file is read in
a process without access to secrets, network and files, with limits on memory, time and output.
"""

import time

from django.conf import settings

from . import child_process
from .child_process import ExtractionLimits, ExtractionResult, Heading
from .file_formats import FORMATS
from .parsers.common.decoding import is_text
from .parsers.common.failures import UnreadableFile
from .parsers.common.text_writer import TextWriter
from .recognition import recognize_format
from .zip_archive import extract_archive

__all__ = [
    "ExtractionLimits", "ExtractionResult", "Heading", "UnreadableFile", "configured_limits", "extract",
    "recognize_format",
]  # fmt: skip


def extract(data: bytes, format: str, limits: ExtractionLimits | None = None) -> ExtractionResult:
    """Returns the text of a file, which may be empty; raises UnreadableFile if it cannot be read."""
    limits = limits or configured_limits()
    if format == "zip":
        return extract_archive(data, limits, extract)
    if format == "text" and (result := read_plain_text(data, limits)):
        return result
    deadline = time.monotonic() + limits.wall_s
    failure = None
    for parser in FORMATS[format].parsers:
        try:
            output = child_process.run_parser(parser, data, limits, deadline=deadline)
            return child_process.parse_output(output, limits.max_characters)
        except UnreadableFile as error:
            if error.code != "damaged":
                raise
            failure = error
    assert failure is not None
    raise failure


def read_plain_text(data: bytes, limits: ExtractionLimits) -> ExtractionResult | None:
    """Reads UTF-8 text, which needs no child process; None for any other content."""
    try:
        content = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    if not is_text(content, allows_unassigned=True):
        return None
    writer = TextWriter(limits.max_characters)
    writer.add_verbatim(content)
    return child_process.build_result(writer.result(), limits.max_characters)


def configured_limits() -> ExtractionLimits:
    names = ("max_pages", "max_cells", "max_characters")
    return ExtractionLimits(**{name: settings.COLLECTIONS[name] for name in names})
