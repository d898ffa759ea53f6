"""Extracts the files of a ZIP archive one by one, as sections of one text under their paths.

Nothing is written to disk, so the paths are only labels. A file that cannot be read becomes a warning.
"""

import stat
import time
import zipfile
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from operator import attrgetter, itemgetter

from system.errors import UnsupportedMediaType

from . import child_process
from .child_process import MEGABYTE, ExtractionLimits, ExtractionResult
from .parsers.common import archive
from .parsers.common.decoding import NotText, decode
from .parsers.common.failures import UnreadableFile, damaged_error, too_much_text_error
from .parsers.common.text_writer import PARAGRAPH_GAP, TextWriter
from .parsers.pdf.lines import page_ranges
from .recognition import LimitedReader, recognize_format

Extract = Callable[[bytes, str, ExtractionLimits], ExtractionResult]
# One file must not use up the time of all.
MAX_FILE_S = 10.0
MAX_FILE_BYTES = 32 * MEGABYTE
PARALLEL_FILES = 2
MAX_WARNINGS = 100
MAX_NAME_LENGTH = 200
# Files that systems add to archives.
SYSTEM_FILES = {"__MACOSX", "Thumbs.db", "desktop.ini"}
UTF_8_FLAG = 0x800
FILE_LEVEL, PAGE_LEVEL = 1, 2


def extract_archive(data: bytes, limits: ExtractionLimits, extract_file: Extract) -> ExtractionResult:
    try:
        file = zipfile.ZipFile(LimitedReader(data))
    except UnsupportedMediaType as error:
        raise UnreadableFile("limit_archive", error.message) from None
    except archive.ARCHIVE_ERRORS:
        raise damaged_error("The file is damaged: it cannot be opened as an archive.") from None
    with file:
        return ArchiveReader(file, len(data), limits, extract_file).read()


class ArchiveReader:
    def __init__(self, file: zipfile.ZipFile, size: int, limits: ExtractionLimits, extract_file: Extract) -> None:
        self.file = file
        self.size = size
        self.limits = limits
        self.extract_file = extract_file
        self.deadline = time.monotonic() + limits.wall_s
        self.archive_limits = asdict(limits)
        self.unpacked_bytes = 0
        self.character_count = 0

    def read(self) -> ExtractionResult:
        entries = [entry for entry in self.file.infolist() if not entry.is_dir() and not is_system_file(entry.filename)]
        if len(entries) > self.limits.archive_entries:
            raise UnreadableFile("limit_archive", f"The archive has more than {self.limits.archive_entries} files.")
        writer = TextWriter(self.limits.max_characters)
        failures, page_count = [], 0
        with ThreadPoolExecutor(PARALLEL_FILES) as pool:
            try:
                results = pool.map(self.read_entry, entries)
                for name, result in zip(file_names(entries), results, strict=True):
                    archive.check_total_bytes(self.unpacked_bytes, self.size, self.archive_limits)
                    if isinstance(result, UnreadableFile):
                        failures.append(result)
                        writer.warn(f"{name}: {result.message}")
                        continue
                    page_count += len(result.page_starts or ())
                    if page_count > self.limits.max_pages:
                        raise UnreadableFile("limit_pages", f"The files have more than {self.limits.max_pages} pages.")
                    write_file(name, result, writer)
            finally:
                pool.shutdown(cancel_futures=True)
        if failures and len(failures) == len(entries):
            raise common_failure(failures)
        if (excess := len(writer.warnings) - MAX_WARNINGS) > 0:
            writer.warnings[MAX_WARNINGS - 1 :] = [f"There are {excess + 1} more warnings."]
        return child_process.build_result(writer.result(), self.limits.max_characters)

    def read_entry(self, entry: zipfile.ZipInfo) -> ExtractionResult | UnreadableFile:
        """Returns the text of a file, or why it cannot be read; raises UnreadableFile if this ends the whole."""
        # Checked here, so that all texts that wait for a slow file before them fit into memory.
        if self.character_count > self.limits.max_characters:
            raise too_much_text_error(self.limits.max_characters)
        remaining_s = self.deadline - time.monotonic()
        if remaining_s <= 0:
            raise UnreadableFile("limit_time", "Reading the files of the archive took too long.")
        try:
            content = self.unpack(entry)
            format = recognize_format(content, entry.filename)
            if format == "zip":
                raise damaged_error("Archives within an archive are not read.")
            result = self.extract_file(content, format, replace(self.limits, wall_s=min(remaining_s, MAX_FILE_S)))
        except UnsupportedMediaType as error:
            return UnreadableFile("unsupported", error.message)
        except UnreadableFile as error:
            if error.is_temporary or (error.code == "limit_time" and remaining_s < MAX_FILE_S):
                raise
            return error
        self.character_count += len(result.text)
        return result

    def unpack(self, entry: zipfile.ZipInfo) -> bytes:
        archive.check_entry(entry)
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise damaged_error("Links are not followed.")
        try:
            with self.file.open(entry) as stream:
                content = stream.read(MAX_FILE_BYTES + 1)
        except archive.ARCHIVE_ERRORS:
            raise damaged_error() from None
        self.unpacked_bytes += len(content)
        if len(content) > MAX_FILE_BYTES:
            raise UnreadableFile("limit_archive", f"It has more than {MAX_FILE_BYTES // MEGABYTE} MB.")
        if not content:
            raise UnreadableFile("empty", "The file is empty.")
        return content


def is_system_file(path: str) -> bool:
    """
    >>> is_system_file("__MACOSX/a.txt"), is_system_file("a/.DS_Store"), is_system_file("../a.txt")
    (True, True, False)
    """
    return any(part in SYSTEM_FILES or (part[:1] == "." and part.strip(".")) for part in path.split("/"))


def file_names(entries: Sequence[zipfile.ZipInfo]) -> Iterator[str]:
    """Yields the paths without control characters. Archives of older programs do not state the encoding of names."""
    raw_names = [entry.filename.encode("cp437", "replace") for entry in entries if not entry.flag_bits & UTF_8_FLAG]
    try:
        old_names = iter(decode(b"\n".join(raw_names)).split("\n"))
    except NotText:
        old_names = iter(())
    for entry in entries:
        name = entry.filename if entry.flag_bits & UTF_8_FLAG else next(old_names, entry.filename)
        yield "".join(filter(str.isprintable, name))[-MAX_NAME_LENGTH:]


def common_failure(failures: Sequence[UnreadableFile]) -> UnreadableFile:
    if len(failures) == 1 or {failure.code for failure in failures} == {"encrypted"}:
        return failures[0]
    return damaged_error(f"None of the {len(failures)} files in the archive can be read.")


def write_file(name: str, result: ExtractionResult, writer: TextWriter) -> None:
    for warning in result.warnings:
        writer.warn(f"{name}: {warning}")
    if result.scanned_pages:
        writer.warn(f"{name}: Scans in archives are not read: {page_ranges(result.scanned_pages)}.")
    if not result.text:
        writer.warn(f"{name}: No text was found.")
        return
    writer.add_heading(FILE_LEVEL, name)
    writer.write(PARAGRAPH_GAP)
    start = writer.length
    writer.write(result.text)
    for offset, level, title in page_and_text_headings(result):
        writer.record_heading(start + offset, level, title)


def page_and_text_headings(result: ExtractionResult) -> list[tuple[int, int, str]]:
    """Returns headings for the pages, since the pages of an archive are those of several files. The headings that apply
    at the beginning of a page follow the page.

    >>> heading = child_process.Heading(offset=2, path=("A", "B"))
    >>> result = ExtractionResult(text="a b c", page_starts=(0, 4), headings=(heading,), warnings=())
    >>> page_and_text_headings(result)
    [(0, 2, 'Page 1'), (2, 4, 'B'), (4, 2, 'Page 2'), (4, 3, 'A'), (4, 4, 'B')]
    """
    starts = result.page_starts or ()
    level = PAGE_LEVEL if starts else FILE_LEVEL
    rows = [(heading.offset, level + len(heading.path), heading.path[-1]) for heading in result.headings]
    page_rows: list[tuple[int, int, str]] = []
    for number, (start, next_start) in enumerate(zip(starts, [*starts[1:], len(result.text)], strict=False), 1):
        if start == next_start:
            continue
        index = bisect_left(result.headings, start, key=attrgetter("offset"))
        path = result.headings[index - 1].path if index else ()
        page_rows.append((start, PAGE_LEVEL, f"Page {number}"))
        page_rows += [(start, PAGE_LEVEL + depth, title) for depth, title in enumerate(path, 1)]
    return sorted([*page_rows, *rows], key=itemgetter(0))
