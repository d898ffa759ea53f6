"""The program that renders one page of a PDF file in the sandbox (`system.sandbox.child`). It imports no product code.

Arguments: the number of the page, the maximum width and height of the image in pixels, and the folders of the installed
packages. The output is the number of pages in four bytes, then the image as PNG; nothing if there is no such page.
"""

import struct
import sys
import zlib
from collections.abc import Callable
from typing import Any

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PAGE_COUNT_FORMAT = ">I"
# Pixels per point of a page (1/72 inch). Otherwise, a page of the size of a stamp would fill the image.
MAX_SCALE = 3.0


def png(width: int, height: int, rows: list[bytes]) -> bytes:
    """An image of RGB rows, without a library: the sandbox loads no more code than it needs.

    >>> png(1, 1, [bytes(3)])[:16]
    b'\\x89PNG\\r\\n\\x1a\\n\\x00\\x00\\x00\\rIHDR'
    """

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    return PNG_SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def render(pypdfium2: Any, data: bytes, number: int, max_width: int, max_height: int) -> bytes:
    try:
        document = pypdfium2.PdfDocument(data)
        page_count = struct.pack(PAGE_COUNT_FORMAT, len(document))
        page = document[number - 1]
        width, height = page.get_size()
        scale = min(max_width / max(width, 1), max_height / max(height, 1), MAX_SCALE)
        bitmap = page.render(
            scale=scale,
            may_draw_forms=False,
            rev_byteorder=True,
            force_bitmap_format=pypdfium2.raw.FPDFBitmap_BGR,
        )
    except MemoryError:
        raise
    except Exception:  # the library may raise anything for a file that it cannot read
        return b""
    pixels, row_bytes = bytes(bitmap.buffer), bitmap.width * 3
    rows = [pixels[start : start + row_bytes] for start in range(0, bitmap.stride * bitmap.height, bitmap.stride)]
    return page_count + png(bitmap.width, bitmap.height, rows)


def prepare(arguments: list[str]) -> Callable[[bytes], bytes]:
    """Returns the function to run. The library must be loaded first, because no file can be opened later."""
    number, max_width, max_height, *package_folders = arguments
    sys.path += package_folders
    import pypdfium2  # noqa: PLC0415  (not before its folder is known)

    return lambda data: render(pypdfium2, data, int(number), int(max_width), int(max_height))
