"""A response from a temporary file, which the web server reads as fast as the client takes it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from django.http import FileResponse

# Files that a killed process left are deleted with the temporary files of the machine.
PREFIX = "servicebase-"


@contextmanager
def new_file() -> Iterator[IO[bytes]]:
    """A file to send, deleted unless all of it could be written."""
    with tempfile.NamedTemporaryFile(prefix=PREFIX, delete=False) as file:
        try:
            yield file
            file.flush()
        except BaseException:
            os.unlink(file.name)
            raise


class StoredFile(FileResponse):
    """The file is deleted when the response is closed."""

    def __init__(self, path: str, content_type: str) -> None:
        super().__init__(open(path, "rb"), content_type=content_type)  # noqa: SIM115  (closed by Django)
        self.path = path
        del self["Content-Disposition"]

    def close(self) -> None:
        super().close()
        with suppress(FileNotFoundError):
            os.unlink(self.path)
