"""A response from a temporary file, which the web server reads as fast as the client receives it."""

from __future__ import annotations

import os
import queue
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from django.http import FileResponse

from system.errors import TooManyRequests

PREFIX = "servicebase-"
# An older file was left behind by a killed process.
MAX_AGE_S = 3600
# A file up to this size is sent from memory.
MAX_SMALL_BYTES = 256 * 1024
# By then the server has opened the file, and can still read it after it is deleted.
DELETION_DELAY_S = 10
# Files of this process that wait to be deleted.
MAX_WAITING_FILES = 64
_waiting_files: queue.SimpleQueue[tuple[float, str]] = queue.SimpleQueue()
_thread_start_lock = threading.Lock()


@contextmanager
def new_file() -> Iterator[IO[bytes]]:
    """A temporary file to send; deleted if it could not be written completely."""
    if _waiting_files.qsize() >= MAX_WAITING_FILES:
        raise TooManyRequests("Too many files are being downloaded. Try again shortly.")
    with tempfile.NamedTemporaryFile(prefix=PREFIX, delete=False) as file:
        try:
            yield file
            file.flush()
        except BaseException:
            os.unlink(file.name)
            raise


class StoredFile(FileResponse):
    """Deletes the file when the response is closed, or shortly after if the web server reads the file itself."""

    is_read_by_server = False

    def __init__(self, path: str, content_type: str) -> None:
        super().__init__(open(path, "rb"), content_type=content_type)  # noqa: SIM115  (closed by Django)
        self.path = path
        self.is_large = os.path.getsize(path) > MAX_SMALL_BYTES
        del self["Content-Disposition"]

    def close(self) -> None:
        super().close()
        if self.is_read_by_server:
            _waiting_files.put((time.monotonic() + DELETION_DELAY_S, self.path))
            if _thread_start_lock.acquire(blocking=False):  # the first file of this process
                threading.Thread(target=_delete_waiting_files, name="file-deletion", daemon=True).start()
        else:
            Path(self.path).unlink(missing_ok=True)


def _delete_waiting_files() -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > MAX_AGE_S:
                path.unlink()
    while True:
        due_at, waiting_path = _waiting_files.get()
        time.sleep(max(0.0, due_at - time.monotonic()))
        Path(waiting_path).unlink(missing_ok=True)
