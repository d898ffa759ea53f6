"""The program that reads one scanned page with Tesseract in the sandbox (`system.sandbox.child`).

Arguments: the library's file, the languages joined by `+` (empty: those that are installed), the number of the page and
the folders of the installed packages. The library is loaded into this process rather than started as a program, because
the sandbox cannot start programs or open files. The output is JSON: the text, or what is missing.
"""

import ctypes
import json
import os
import sys
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import Any

# The resolution that Tesseract recommends. Larger pages are scaled down.
RESOLUTION = 300
POINTS_PER_INCH = 72
MAX_PIXELS = 25_000_000
# Chosen: with less confidence (in percent), the page is a photo or handwriting, and its text is noise.
MIN_CONFIDENCE = 35
# Each language takes time and memory. If more are installed, and none are configured, only English is used.
MAX_DEFAULT_LANGUAGES = 4
# PSM_AUTO, which reads column by column.
COLUMNS_AND_BLOCKS = 3
NOT_LANGUAGES = {"osd", "equ"}


class Engine:
    def __init__(self, library_file: str, languages: str) -> None:
        os.putenv("OMP_THREAD_LIMIT", "1")  # the sandbox has no threads
        self.library = ctypes.CDLL(library_file)
        self.library.TessBaseAPICreate.restype = ctypes.c_void_p
        self.library.TessBaseAPIGetDatapath.restype = ctypes.c_char_p
        self.library.TessBaseAPIGetUTF8Text.restype = ctypes.c_char_p
        self.handle = ctypes.c_void_p(self.library.TessBaseAPICreate())
        self.is_ready = self.load(languages or "+".join(self.default_languages()))

    def load(self, languages: str) -> bool:
        return bool(languages) and self.library.TessBaseAPIInit3(self.handle, None, languages.encode()) == 0

    def default_languages(self) -> list[str]:
        self.load("none")  # fails, but then the library knows its folder
        folder = Path(self.library.TessBaseAPIGetDatapath(self.handle).decode())
        languages = sorted({path.stem for path in folder.glob("*.traineddata")} - NOT_LANGUAGES)
        if len(languages) > MAX_DEFAULT_LANGUAGES:
            return ["eng"] if "eng" in languages else languages[:1]
        return languages

    def read(self, bitmap: Any, resolution: int) -> str:
        self.library.TessBaseAPISetPageSegMode(self.handle, COLUMNS_AND_BLOCKS)
        pixels = bytes(bitmap.buffer)
        self.library.TessBaseAPISetImage(self.handle, pixels, bitmap.width, bitmap.height, 1, bitmap.stride)
        self.library.TessBaseAPISetSourceResolution(self.handle, resolution)
        text: bytes = self.library.TessBaseAPIGetUTF8Text(self.handle) or b""
        is_certain = self.library.TessBaseAPIMeanTextConf(self.handle) >= MIN_CONFIDENCE
        return text.decode(errors="replace").strip() if is_certain else ""


def read_page(pypdfium2: Any, engine: Engine, data: bytes, number: int) -> bytes:
    if not engine.is_ready:
        return json.dumps({"missing": "languages"}).encode()
    page = pypdfium2.PdfDocument(data)[number - 1]
    width, height = page.get_size()
    scale = min(RESOLUTION / POINTS_PER_INCH, sqrt(MAX_PIXELS / max(width * height, 1)))
    bitmap = page.render(scale=scale, grayscale=True, may_draw_forms=False)
    return json.dumps({"text": engine.read(bitmap, round(scale * POINTS_PER_INCH))}).encode()


def prepare(arguments: list[str]) -> Callable[[bytes], bytes]:
    """Returns the function to run. The library reads its languages here, because no file can be opened later."""
    library_file, languages, number, *package_folders = arguments
    sys.path += package_folders
    import pypdfium2  # noqa: PLC0415  (not before its folder is known)

    engine = Engine(library_file, languages)
    return lambda data: read_page(pypdfium2, engine, data, int(number))
