"""Reads the text of scanned pages (OCR) with Tesseract, if the machine has it."""

import json
import time
from ctypes.util import find_library
from functools import cache
from pathlib import Path

from django.conf import settings

from system import sandbox

from . import child_process
from .parsers.common.failures import UnreadableFile
from .parsers.common.text_writer import TextWriter
from .parsers.pdf.hyphens import Hyphens

PROGRAM = Path(__file__).parent / "parsers" / "ocr_program.py"
# Less than a lease. The first is for the start of the process, which reads the file and the languages.
MAX_START_S = 10
MAX_PAGE_S = 40
MAX_CPU_S = 45
MAX_MEMORY_BYTES = 1024 * 1024 * 1024
MAX_PAGE_CHARACTERS = 100_000
INSTALL_HINT = (
    "To read scanned pages, install Tesseract on the server (on Debian: apt-get install tesseract-ocr, and a package "
    "such as tesseract-ocr-deu for each language), and reprocess the document."
)
LANGUAGES_HINT = "Tesseract does not have the languages of SVC_OCR_LANGUAGES. Install them, and reprocess the document."


class OcrUnavailable(Exception):
    """No page can be read; the message says what to install."""


@cache
def library_file() -> str | None:
    return find_library("tesseract")


def is_available() -> bool:
    return library_file() is not None


def read_page(data: bytes, number: int) -> str | None:
    """Returns the text of a page, which may be empty; None if it could not be read within the limits.

    Raises OcrUnavailable, and UnreadableFile if the machine is too busy.
    """
    library = library_file()
    if library is None:
        raise OcrUnavailable(INSTALL_HINT)
    languages = "+".join(settings.OCR_LANGUAGES)
    limits = sandbox.RunLimits(
        memory_bytes=MAX_MEMORY_BYTES,
        cpu_s=MAX_CPU_S,
        run_s=MAX_PAGE_S,
        output_bytes=MAX_PAGE_CHARACTERS * child_process.BYTES_PER_CHARACTER,
    )
    arguments = [library, languages, str(number), *child_process.package_folders()]
    deadline = time.monotonic() + MAX_START_S + MAX_PAGE_S
    result = sandbox.run(PROGRAM, arguments, data, limits, deadline=deadline)
    if result.was_starved or (result.was_killed and not result.was_ready):
        raise UnreadableFile("limit_time", "Reading a scanned page took too long.", is_temporary=True)
    if result.status is not sandbox.RunStatus.DONE:
        return None
    return parse_output(result.output)


def parse_output(output: bytes) -> str | None:
    """Returns the text; None if the output, which is not trusted, is invalid."""
    try:
        page = json.loads(output)
        if "missing" in page:
            raise OcrUnavailable(LANGUAGES_HINT)
        text = TextWriter(MAX_PAGE_CHARACTERS).clean_text(page["text"])[:MAX_PAGE_CHARACTERS]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return Hyphens([text]).join(text).strip()
