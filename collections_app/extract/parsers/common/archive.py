"""Enforces limits on zip archives, such as office files, while reading them."""

import zipfile
import zlib
from io import BytesIO
from typing import Any

from .failures import UnreadableFile, damaged_error, encrypted_error

BLOCK_BYTES = 256 * 1024
# Chosen: below this size a high ratio is harmless, and small repetitive files often have one.
RATIO_CHECK_FROM_BYTES = 10 * 1024 * 1024
ENCRYPTED_FLAG = 0x1
COMPRESSION_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# The errors that reading an archive can raise.
ARCHIVE_ERRORS = (
    zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, OSError, KeyError, RuntimeError,
)  # fmt: skip


def check_archive(data: bytes, limits: dict[str, Any]) -> None:
    """Reads all entries and discards them to enforce the limits, before a library opens the archive."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            check_entries(archive, len(data), limits)
    except ARCHIVE_ERRORS:
        raise damaged_error("The file is damaged: it cannot be opened as an archive.") from None


def check_entries(archive: zipfile.ZipFile, archive_size: int, limits: dict[str, Any]) -> None:
    entries = archive.infolist()
    if len(entries) > limits["archive_entries"]:
        raise UnreadableFile(
            "limit_archive", f"The file is an archive with more than {limits['archive_entries']} entries."
        )
    total_bytes = 0
    for entry in entries:
        check_entry(entry)
        with archive.open(entry) as content:
            while block := content.read(BLOCK_BYTES):
                total_bytes += len(block)
                check_total_bytes(total_bytes, archive_size, limits)


def check_entry(entry: zipfile.ZipInfo) -> None:
    if entry.flag_bits & ENCRYPTED_FLAG:
        raise encrypted_error()
    if entry.compress_type not in COMPRESSION_METHODS:
        raise damaged_error("The archive uses a compression method that is not supported.")


def check_total_bytes(total_bytes: int, archive_size: int, limits: dict[str, Any]) -> None:
    if total_bytes > limits["archive_bytes"]:
        raise UnreadableFile("limit_archive", f"The file unpacks to more than {limits['archive_bytes'] // 1024**2} MB.")
    ratio = limits["archive_ratio"]
    if total_bytes > RATIO_CHECK_FROM_BYTES and total_bytes > archive_size * ratio:
        raise UnreadableFile("limit_archive", f"The file unpacks to more than {ratio} times its size.")
