"""Files with the metrics of each process, safe on a full disk.

prometheus_client maps a sparse file into memory. When the disk is full, the first write to a page without a block kills
the process with SIGBUS. Here values are written with system calls, which fail with an error instead. The values
then stay in memory and are written to the file when there is space again.
"""

from __future__ import annotations

import os
import time
from typing import Any

from prometheus_client import mmap_dict, values

RETRY_INTERVAL_S = 5.0
HEADER = 8


class FileBuffer(bytearray):
    """Bytes in memory, which are also written to a file whenever possible."""

    def __init__(self, path: str, size: int) -> None:
        super().__init__(size)
        self.path = path
        self.descriptor: int | None = None
        self.is_behind = True
        self.retry_at = 0.0

    def __setitem__(self, where: Any, data: Any) -> None:
        super().__setitem__(where, data)
        if not self.is_behind:
            self._write(where.start, data)
        elif time.monotonic() >= self.retry_at:
            self._catch_up()

    def grow(self, size: int) -> None:
        self.extend(bytes(size - len(self)))
        if self.descriptor is not None:
            os.ftruncate(self.descriptor, size)

    def _catch_up(self) -> None:
        """Write everything, with the header last, so that readers see the former content until then."""
        self.is_behind = False
        try:
            if self.descriptor is None:
                self.descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            os.ftruncate(self.descriptor, len(self))
        except OSError:
            self._fall_behind()
            return
        self._write(HEADER, self[HEADER:])
        self._write(0, self[:HEADER])

    def _write(self, start: int, data: Any) -> None:
        assert self.descriptor is not None
        if self.is_behind:
            return
        try:
            if os.pwrite(self.descriptor, data, start) != len(data):
                self._fall_behind()
        except OSError:
            self._fall_behind()

    def _fall_behind(self) -> None:
        self.is_behind = True
        self.retry_at = time.monotonic() + RETRY_INTERVAL_S

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


class BufferedDict(mmap_dict.MmapedDict):
    """The library's dictionary of values, on a `FileBuffer` instead of a memory-mapped file."""

    def __init__(self, filename: str) -> None:
        self._capacity = mmap_dict._INITIAL_MMAP_SIZE
        buffer: Any = FileBuffer(filename, self._capacity)
        self._m = self._f = buffer
        self._positions: dict[str, int] = {}
        self._used = HEADER
        mmap_dict._pack_integer(buffer, 0, self._used)  # type: ignore[no-untyped-call]

    def _init_value(self, key: str) -> None:
        size = len(key.encode()) + 32  # length, padding, value and timestamp
        while self._used + size > self._capacity:
            self._capacity *= 2
            buffer: Any = self._m
            buffer.grow(self._capacity)
        super()._init_value(key)  # type: ignore[no-untyped-call]


def install() -> None:
    """Make prometheus_client use these files for all metrics that are created afterwards."""
    vars(values)["MmapedDict"] = BufferedDict
