"""Reads the lines of a page with pdfium, with their positions."""

import ctypes
import re
from collections.abc import Callable, Sequence
from math import hypot
from typing import Any

from pypdfium2 import raw

from .lines import LINE_END_HYPHENS, Line, Segment

LINE = re.compile(f"[^\r\n{LINE_END_HYPHENS}]*(?:\r\n|[{LINE_END_HYPHENS}]|\r|\n|$)")
SPACES = re.compile(r"\s+")
# Leaders in a table of contents.
LEADERS = re.compile(r"(?:[.·…_] ?){4}")
# The widths of gaps between cells, relative to the type size, within one text object and between two.
MIN_CELL_GAP = 1.0
MIN_OBJECT_GAP = 0.45
# Lines of prose are narrower than this, relative to their size and number of characters.
MAX_PROSE_WIDTH = 0.56
# Rows with narrow gaps are shorter than most lines of prose.
MAX_SHORT_LINE = 80
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")
# Lam-alef, and "Allah" with and without alef.
REVERSED_LIGATURES = re.compile("[\u0622\u0623\u0625\u0627\u0671]\u0644|\u0647\u0644\u0644\u0627?")
SIZE_STEP = 0.5


class LineReader:
    def __init__(self) -> None:
        # Allocated once: the calls for each line take a third of the time of the whole extraction.
        self.x, self.y = ctypes.c_double(), ctypes.c_double()
        self.origin = ctypes.byref(self.x), ctypes.byref(self.y)
        self.right = ctypes.c_double()
        unused = ctypes.byref(ctypes.c_double())
        self.box = unused, ctypes.byref(self.right), unused, unused
        self.matrix = raw.FS_MATRIX()
        self.matrix_reference = ctypes.byref(self.matrix)
        self.last_size = 0.0
        self.unit_count: Callable[[str], int] = len
        self.has_same_offsets = True

    def read_lines(self, page: Any) -> list[Line]:
        text_page = page.get_textpage()
        self.text_page = text_page.raw
        _, page_bottom, _, page_top = page.get_bbox()
        text: str = text_page.get_text_range()
        # pdfium counts in units of UTF-16.
        self.unit_count = utf16_length if not text.isascii() and max(text) > "\uffff" else len
        self.has_same_offsets = text_page.count_chars() == self.unit_count(text)
        lines = []
        offset = 0
        for content in LINE.findall(text):
            if content:
                lines.append(self.read_line(content.rstrip("\r\n"), offset, page_bottom, page_top))
            offset += self.unit_count(content)
        return lines

    def read_line(self, text: str, offset: int, page_bottom: float, page_top: float) -> Line:
        last_offset = offset + self.unit_count(text.rstrip(" " + LINE_END_HYPHENS)) - 1
        if last_offset < offset:
            return Line(text)
        first, last = self.index_of(offset), self.index_of(last_offset)
        size = self.size_of(first)
        if size != self.last_size:  # a large initial does not make a heading
            size = min(size, self.size_of(last))
        self.last_size = size
        raw.FPDFText_GetCharBox(self.text_page, last, *self.box)
        raw.FPDFText_GetCharOrigin(self.text_page, first, *self.origin)
        left, right, baseline = self.x.value, self.right.value, self.y.value
        segments: Sequence[Segment]
        if not text.isascii() and RIGHT_TO_LEFT.search(text):
            text, segments = self.order_ligatures(text, offset), ()
        elif size and self.may_have_cells(text, (right - left) / size, first, last):
            segments = self.split_at_gaps(text, offset, size, right)
        else:
            segments = (Segment(text, left, right, baseline),)
        return Line(text, size, page_top - baseline, baseline - page_bottom, segments)

    def index_of(self, offset: int) -> int:
        """Returns the index of a character on the page, which may have characters that are not in its text."""
        if self.has_same_offsets:
            return offset
        return raw.FPDFText_GetCharIndexFromTextIndex(self.text_page, offset)  # type: ignore[no-any-return]

    def size_of(self, index: int) -> float:
        """Returns the type size of a character, 0 if it is not horizontal."""
        raw.FPDFText_GetMatrix(self.text_page, index, self.matrix_reference)
        if self.matrix.b or self.matrix.a < 0:
            return 0.0
        size: float = raw.FPDFText_GetFontSize(self.text_page, index) * hypot(self.matrix.c, self.matrix.d)
        return round(size / SIZE_STEP) * SIZE_STEP

    def may_have_cells(self, text: str, width: float, first: int, last: int) -> bool:
        """Whether a line may have wide gaps. To find them takes as long as to read the page."""
        if " " not in text or self.unit_count is utf16_length:
            return False
        is_wide = width > MAX_PROSE_WIDTH * len(text)
        may_be_narrow = len(text) <= MAX_SHORT_LINE and self.object_of(first) != self.object_of(last)
        return (is_wide or may_be_narrow) and not LEADERS.search(text)

    def split_at_gaps(self, text: str, offset: int, size: float, line_right: float) -> list[Segment]:
        """Returns the parts of a line between gaps that are wider than between words."""
        starts, rights = [0], []
        for gap in SPACES.finditer(text):
            if gap.start() and gap.end() < len(text):
                before, after = self.index_of(offset + gap.start() - 1), self.index_of(offset + gap.end())
                raw.FPDFText_GetCharBox(self.text_page, before, *self.box)
                raw.FPDFText_GetCharOrigin(self.text_page, after, *self.origin)
                width = self.x.value - self.right.value
                if width >= MIN_CELL_GAP * size or (
                    width >= MIN_OBJECT_GAP * size and self.object_of(before) != self.object_of(after)
                ):
                    starts.append(gap.end())
                    rights.append(self.right.value)
        segments = []
        for start, end, right in zip(starts, [*starts[1:], len(text)], [*rights, line_right], strict=True):
            raw.FPDFText_GetCharOrigin(self.text_page, self.index_of(offset + start), *self.origin)
            segments.append(Segment(text[start:end].rstrip(" "), self.x.value, right, self.y.value))
        return segments

    def object_of(self, index: int) -> int:
        text_object = raw.FPDFText_GetTextObject(self.text_page, index)
        return ctypes.addressof(text_object.contents) if text_object else 0

    def order_ligatures(self, text: str, offset: int) -> str:
        """Restores the order of letters in ligatures such as lam-alef, if pdfium has reversed them with the text.

        It reverses the letters that a font gives for a ligature, but not those of a ligature in Unicode. "Alef, lam" is
        a frequent sequence, so only the common position of the letters shows that they are a ligature.
        """

        def restore(match: re.Match[str]) -> str:
            start = offset + self.unit_count(text[: match.start()])
            positions = {self.position_of(start + number) for number in range(len(match[0]))}
            return match[0][::-1] if len(positions) == 1 else match[0]

        return REVERSED_LIGATURES.sub(restore, text)

    def position_of(self, offset: int) -> tuple[float, float]:
        raw.FPDFText_GetCharOrigin(self.text_page, self.index_of(offset), *self.origin)
        return self.x.value, self.y.value


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "replace")) // 2
