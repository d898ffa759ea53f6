"""The limits and the result of an extraction."""

from __future__ import annotations

from dataclasses import dataclass

MEGABYTE = 1024 * 1024


class Unreadable(Exception):
    """No text can be taken from this file, now or later; the text is a sentence for the caller.

    `may_pass`: unless it was the machine that had no time for it.
    `code` is damaged, encrypted, or limit_ with archive, cells, characters, memory, pages or time.
    """

    def __init__(self, code: str, message: str, *, may_pass: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.may_pass = may_pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """From this character on the text stands under these headings, outermost first."""

    offset: int
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """The text of a file. Offsets are characters of it; a page that holds nothing begins where the next does."""

    text: str
    page_starts: tuple[int, ...] | None
    headings: tuple[Heading, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one file may need. "CPU 20 s, wall 30 s, 1 GB"; archives: "entries 2000, total 200 MB, ratio 100"."""

    max_pages: int
    max_cells: int
    max_characters: int
    cpu_s: int = 20
    wall_s: float = 30.0
    memory: int = 1024 * MEGABYTE
    archive_entries: int = 2000
    archive_bytes: int = 200 * MEGABYTE
    archive_ratio: int = 100
