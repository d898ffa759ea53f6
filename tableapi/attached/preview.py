"""Previews of attached PDF files: images of their pages, rendered in the sandbox, which gets one file and no access."""

import struct
import sysconfig
import threading
import time
from pathlib import Path

from system import sandbox
from system.errors import NotFound, TooManyRequests, Unavailable
from tableapi.models import Attachment

from . import pdf_page
from .attachments import content_of

PDF_TYPE = "application/pdf"
PROGRAM = Path(pdf_page.__file__)
MAX_PREVIEW_PAGES = 20
MAX_PREVIEW_FILE_BYTES = 50 * 1024 * 1024
MAX_IMAGE_WIDTH = 1200
MAX_IMAGE_HEIGHT = 1700
MAX_START_S = 10
MAX_CPU_S = 10
MAX_RUN_S = 15
MAX_MEMORY_BYTES = 512 * 1024 * 1024
MAX_OUTPUT_BYTES = 16 * 1024 * 1024
LIMITS = sandbox.RunLimits(
    memory_bytes=MAX_MEMORY_BYTES, cpu_s=MAX_CPU_S, run_s=MAX_RUN_S, output_bytes=MAX_OUTPUT_BYTES
)
PAGE_COUNT_BYTES = struct.calcsize(pdf_page.PAGE_COUNT_FORMAT)
# Concurrent previews per web process, whose threads other requests need too.
PREVIEW_SLOTS = threading.BoundedSemaphore(1)


def has_preview(content_type: str, size: int) -> bool:
    return content_type == PDF_TYPE and size <= MAX_PREVIEW_FILE_BYTES


def render_page(attachment: Attachment, number: int) -> tuple[bytes, int]:
    """Return the image of a page, and the number of pages that have one. Raises NotFound if there is no image, and 429
    or 503 if a retry may succeed."""
    if not has_preview(attachment.content_type, attachment.size) or not 1 <= number <= MAX_PREVIEW_PAGES:
        raise no_preview()
    if not PREVIEW_SLOTS.acquire(blocking=False):
        raise TooManyRequests("Another preview is being created. Try again shortly.", retry_after_s=1)
    try:
        return _run_program(b"".join(content_of(attachment)), number)
    finally:
        PREVIEW_SLOTS.release()


def _run_program(data: bytes, number: int) -> tuple[bytes, int]:
    paths = sysconfig.get_paths()
    arguments = [number, MAX_IMAGE_WIDTH, MAX_IMAGE_HEIGHT, *sorted({paths["purelib"], paths["platlib"]})]
    deadline = time.monotonic() + MAX_START_S + LIMITS.run_s
    try:
        result = sandbox.run(PROGRAM, [str(argument) for argument in arguments], data, LIMITS, deadline=deadline)
    except OSError:
        raise Unavailable from None
    if result.was_starved or not result.was_ready:
        raise Unavailable
    # The output is not trusted either: a hostile file could control the child.
    image = result.output[PAGE_COUNT_BYTES:]
    if result.status is not sandbox.RunStatus.DONE or not image.startswith(pdf_page.PNG_SIGNATURE):
        raise no_preview()
    (page_count,) = struct.unpack(pdf_page.PAGE_COUNT_FORMAT, result.output[:PAGE_COUNT_BYTES])
    return image, min(page_count, MAX_PREVIEW_PAGES)


def no_preview() -> NotFound:
    return NotFound("There is no preview of this file.", code="no_preview")
