"""A response from a temporary file, which the web server reads as fast as the client takes it."""

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
# An older file was left by a killed process.
MAX_LEFT_S = 3600
# Sent from memory.
MAX_SMALL_BYTES = 256 * 1024
# The server has opened a file by then, and can read on when it is deleted.
MAX_OPEN_S = 10
# Files of this process that wait to be deleted.
MAX_WAITING_FILES = 64
_waiting: queue.SimpleQueue[tuple[float, str]] = queue.SimpleQueue()
_start_thread = threading.Lock()


@contextmanager
def new_file() -> Iterator[IO[bytes]]:
    """A file to send, deleted unless all of it could be written."""
    if _waiting.qsize() >= MAX_WAITING_FILES:
        raise TooManyRequests("Too many files are being downloaded. Try again shortly.")
    with tempfile.NamedTemporaryFile(prefix=PREFIX, delete=False) as file:
        try:
            yield file
            file.flush()
        except BaseException:
            os.unlink(file.name)
            raise


class StoredFile(FileResponse):
    """The file is deleted when the response is closed, or soon after it if the server reads it by itself."""

    is_read_by_server = False

    def __init__(self, path: str, content_type: str) -> None:
        super().__init__(open(path, "rb"), content_type=content_type)  # noqa: SIM115  (closed by Django)
        self.path = path
        self.is_large = os.path.getsize(path) > MAX_SMALL_BYTES
        del self["Content-Disposition"]

    def close(self) -> None:
        super().close()
        if self.is_read_by_server:
            _delete_later(self.path)
        else:
            _delete(self.path)


def _delete(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _delete_later(path: str) -> None:
    _waiting.put((time.monotonic() + MAX_OPEN_S, path))
    if _start_thread.acquire(blocking=False):  # the first file of this process
        threading.Thread(target=_delete_waiting_files, name="file-deletion", daemon=True).start()


def _delete_waiting_files() -> None:
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > MAX_LEFT_S:
                left.unlink()
    while True:
        due, path = _waiting.get()
        time.sleep(max(0.0, due - time.monotonic()))
        _delete(path)
