"""Runs one parser on one file in the sandbox, and validates its output, which is not trusted."""

import json
import sysconfig
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from system import sandbox

from .parsers.common.failures import DAMAGED_MESSAGE, UnreadableFile

PARSER_PROGRAM = Path(__file__).parent / "parsers" / "program.py"
MEGABYTE = 1024 * 1024
# A character takes at most six bytes in JSON. The overhead is for headings and pages, which have their own limits.
BYTES_PER_CHARACTER = 6
OVERHEAD_BYTES = 16 * MEGABYTE
MAX_LABEL_LENGTH = 40


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
    # The printed labels of all pages, if they are not 1, 2, 3, …
    page_labels: tuple[str, ...] | None = None
    # The numbers of pages that are images without text.
    scanned_pages: tuple[int, ...] = ()


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


def run_parser(parser: str, data: bytes, limits: ExtractionLimits, *, deadline: float) -> bytes:
    sandbox_limits = sandbox.RunLimits(
        memory_bytes=limits.memory_bytes,
        cpu_s=limits.cpu_s,
        run_s=limits.wall_s,
        output_bytes=limits.max_characters * BYTES_PER_CHARACTER + OVERHEAD_BYTES,
    )
    arguments = [parser, json.dumps(asdict(limits)), *package_folders()]
    result = sandbox.run(PARSER_PROGRAM, arguments, data, sandbox_limits, deadline=deadline)
    match result.status:
        case sandbox.RunStatus.DONE:
            return result.output
        case sandbox.RunStatus.TIMED_OUT:
            raise UnreadableFile("limit_time", "Reading the file took too long.", is_temporary=result.was_starved)
        case sandbox.RunStatus.OUT_OF_MEMORY:
            raise UnreadableFile("limit_memory", "Reading the file required too much memory.")
        case sandbox.RunStatus.TOO_LARGE:
            raise UnreadableFile("limit_characters", "The file contains too much text.")
    raise UnreadableFile("damaged", DAMAGED_MESSAGE)


def package_folders() -> list[str]:
    paths = sysconfig.get_paths()
    return sorted({paths["purelib"], paths["platlib"]})


def parse_output(output: bytes, max_characters: int) -> ExtractionResult:
    """Returns the extracted text; raises UnreadableFile if the parser reported an error or its output is invalid."""
    try:
        result = json.loads(output)
        if "failed" in result:
            raise UnreadableFile(str(result["failed"])[:40], str(result["message"])[:300])
        return build_result(result, max_characters)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UnreadableFile("damaged", DAMAGED_MESSAGE) from None


def build_result(result: dict[str, Any], max_characters: int) -> ExtractionResult:
    text = result["text"]
    if not isinstance(text, str) or len(text) > max_characters:
        raise ValueError("no text")
    starts = result["page_starts"]
    page_count = len(starts or ())
    labels = result.get("page_labels")
    if labels is not None and len(labels) != page_count:
        raise ValueError("labels")
    scanned_pages = check_ascending(result.get("scanned_pages", ()), page_count)
    return ExtractionResult(
        text=text,
        page_starts=None if starts is None else check_ascending(starts, len(text)),
        headings=build_headings(result["headings"], len(text)),
        warnings=tuple(str(warning)[:300] for warning in result["warnings"][:100]),
        page_labels=None if labels is None else tuple(str(label)[:MAX_LABEL_LENGTH] for label in labels),
        scanned_pages=tuple(number for number in scanned_pages if number),
    )


def check_ascending(offsets: Iterable[Any], end: int) -> tuple[int, ...]:
    positions = tuple(offsets)
    bounded_positions = [0, *positions, end]
    if any(type(offset) is not int for offset in positions) or sorted(bounded_positions) != bounded_positions:
        raise ValueError("offsets")
    return positions


def build_headings(rows: Iterable[tuple[int, int, str]], end: int) -> tuple[Heading, ...]:
    """Returns the headings with the path of headings above each.

    >>> [heading.path for heading in build_headings([(0, 1, "A"), (5, 3, "B"), (7, 2, "C"), (9, 1, "D")], 10)]
    [('A',), ('A', 'B'), ('A', 'C'), ('D',)]
    """
    result: list[Heading] = []
    path: list[tuple[int, str]] = []
    for offset, level, title in rows:
        while path and path[-1][0] >= level:
            path.pop()
        path.append((level, str(title)))
        result.append(Heading(offset=offset, path=tuple(title for _, title in path)))
    check_ascending((heading.offset for heading in result), end)
    return tuple(result)
