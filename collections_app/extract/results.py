"""The limits and the result of an extraction."""

from dataclasses import dataclass

MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A heading at an offset in the text; `path` starts with the outermost heading."""

    offset: int
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionResult:
    """The text of a file. Offsets are in characters; an empty page starts where the next one does."""

    text: str
    page_starts: tuple[int, ...] | None
    headings: tuple[Heading, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionLimits:
    """The limits for the extraction of one file. The specification says "CPU 20 s, wall 30 s, 1 GB"; archives: "entries
    2000, total 200 MB, ratio 100"."""

    max_pages: int
    max_cells: int
    max_characters: int
    cpu_s: int = 20
    wall_s: float = 30.0
    memory_bytes: int = 1024 * MEGABYTE
    archive_entries: int = 2000
    archive_bytes: int = 200 * MEGABYTE
    archive_ratio: int = 100
