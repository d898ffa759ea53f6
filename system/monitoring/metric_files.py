"""Files with the metrics of each process, safe on a full disk.

prometheus_client maps a sparse file into memory. When the disk is full, the first write to a page without a block kills
the process with SIGBUS. Here a thread writes the values to the file, so that no request waits for the disk. Values
that do not fit are written when there is space again.
"""

import atexit
import os
import sys
import threading
import time
from typing import Any
from weakref import WeakSet

from prometheus_client import mmap_dict, values

WRITE_INTERVAL_S = 0.2
HEADER_BYTES = 8


class FileBuffer(bytearray):
    """Bytes in memory, which the writer copies to a file."""

    # By identity, because two buffers can have equal bytes.
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, path: str, size: int) -> None:
        super().__init__(size)
        self.path = path
        self.descriptor: int | None = None
        self.is_changed = True
        writer.add(self)

    def __setitem__(self, position: Any, data: Any) -> None:
        super().__setitem__(position, data)
        self.is_changed = True

    def write(self) -> None:
        """Write the used bytes, and the header last, so that readers see the previous content until then."""
        if not self.is_changed:
            return
        self.is_changed = False
        try:
            if self.descriptor is None:
                self.descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            os.ftruncate(self.descriptor, len(self))
            header = bytes(self[:HEADER_BYTES])
            content = bytes(self[HEADER_BYTES : int.from_bytes(self[:4], sys.byteorder)])
            is_written = os.pwrite(self.descriptor, content, HEADER_BYTES) == len(content)
            self.is_changed |= not (is_written and os.pwrite(self.descriptor, header, 0) == HEADER_BYTES)
        except OSError:
            self.is_changed = True

    def close(self) -> None:
        if self in writer.buffers:  # otherwise it belongs to the parent of this process
            self.write()
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


class MetricFileWriter:
    """Writes the files of this process in a thread that starts with the first value. The parent of the web processes
    only creates metrics, because it must not have a thread when it forks."""

    def __init__(self) -> None:
        self.reset()
        # A child process has no threads of its parent, and must not write its parent's files.
        os.register_at_fork(after_in_child=self.reset)

    def reset(self) -> None:
        self.lock = threading.Lock()
        self.buffers: WeakSet[FileBuffer] = WeakSet()
        self.thread: threading.Thread | None = None

    def add(self, buffer: FileBuffer) -> None:
        with self.lock:
            self.buffers.add(buffer)

    def start(self) -> None:
        with self.lock:
            if self.thread is None:
                self.thread = threading.Thread(target=self._run, name="metric files", daemon=True)
                self.thread.start()
                atexit.register(self.write)

    def write(self) -> None:
        with self.lock:
            for buffer in self.buffers:
                buffer.write()

    def _run(self) -> None:
        while True:
            time.sleep(WRITE_INTERVAL_S)
            self.write()


writer = MetricFileWriter()


class BufferedDict(mmap_dict.MmapedDict):
    """The library's dictionary of values, on a `FileBuffer` instead of a memory-mapped file."""

    def __init__(self, filename: str) -> None:
        self._capacity = mmap_dict._INITIAL_MMAP_SIZE
        buffer: Any = FileBuffer(filename, self._capacity)
        self._m = self._f = buffer
        self._positions: dict[str, int] = {}
        self._used = HEADER_BYTES
        mmap_dict._pack_integer(buffer, 0, self._used)  # type: ignore[no-untyped-call]

    def _init_value(self, key: str) -> None:
        size = len(key.encode()) + 32  # length, padding, value and timestamp
        while self._used + size > self._capacity:
            buffer: Any = self._m
            buffer.extend(bytes(self._capacity))
            self._capacity *= 2
        super()._init_value(key)  # type: ignore[no-untyped-call]

    def write_value(self, key: str, value: float, timestamp: float) -> None:
        super().write_value(key, value, timestamp)  # type: ignore[no-untyped-call]
        if writer.thread is None:
            writer.start()


def install() -> None:
    """Make prometheus_client use these files for all metrics that are created afterwards."""
    vars(values)["MmapedDict"] = BufferedDict
