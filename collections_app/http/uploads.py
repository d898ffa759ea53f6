"""Reads a multipart/form-data upload as a stream, counts its bytes and leaves no file behind.

Django's parser takes the body apart; what it does not check is checked here: that the body is whole, that it holds one
file, how large that is, and what else the form may hold.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

import structlog
from django.conf import settings
from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParser, MultiPartParserError

from collections_app.http.parameters import TextValue, refused
from system.errors import BadRequest, TooLarge, Unavailable, UnsupportedMedia

logger = structlog.get_logger(__name__)

FILE = "file"
NO_FILE = f"Send one file, with a file name, in the field {FILE}."
NO_FILE_NAME = f"The part {FILE} has no file name. Send one, as curl -F {FILE}=@name does."
MOST_FIELDS = 10
# 16 KB of metadata whose letters are all spelled as \uXXXX.
LONGEST_FIELD = 128 * 1024
# Beyond the file itself: fields and boundaries.
FORM_BYTES = 1024 * 1024
IN_MEMORY_BYTES = PART_BYTES = 1024 * 1024
TAIL_BYTES = 4096


class NotAForm(BadRequest):
    code = "invalid_form"
    message = "The body is not valid multipart/form-data."


@dataclass(frozen=True, slots=True)
class Upload:
    """One file as it was sent, with the fields beside it. Its name is a label: nothing is ever called by it here."""

    file: IO[bytes]
    size: int
    filename: str
    declared: str
    fields: Mapping[str, TextValue]

    def content(self) -> bytes:
        self.file.seek(0)
        return self.file.read()

    def parts(self) -> Iterator[bytes]:
        self.file.seek(0)
        while part := self.file.read(PART_BYTES):
            yield part


def body_limit() -> int:
    return int(settings.COLLECTIONS["file_limit"]) + FORM_BYTES


@contextmanager
def received(request: HttpRequest) -> Iterator[Upload]:
    """The upload of a request, as long as the block lasts; what was kept of it goes with the block."""
    if request.content_type != "multipart/form-data":
        raise UnsupportedMedia(f"Send multipart/form-data with a file called {FILE}.", field=FILE)
    handler = OneFile(request)
    try:
        yield read(request, handler)
    finally:
        handler.close()


def read(request: HttpRequest, handler: OneFile) -> Upload:
    body: Any = WholeBody(request)
    try:
        fields, _ = MultiPartParser(request.META, body, [handler], "utf-8").parse()
    except MultiPartParserError:
        raise NotAForm from None
    if handler.has_ended_early or not body.is_closed():
        raise NotAForm("The body ends before the form is complete.")
    if handler.kept is None:
        raise refused(FILE, NO_FILE_NAME if FILE in fields else NO_FILE, code="mandatory")
    if not handler.size:
        raise refused(FILE, "The file is empty.", code="empty_file")
    return Upload(
        file=handler.kept,
        size=handler.size,
        filename=handler.file_name or "",
        declared=handler.content_type or "",
        fields=checked_fields(fields),
    )


def checked_fields(fields: Any) -> dict[str, TextValue]:
    if sum(len(values) for _, values in fields.lists()) > MOST_FIELDS:
        raise NotAForm(f"A form can have at most {MOST_FIELDS} fields in addition to the file.")
    for name, values in fields.lists():
        if any(len(value.encode()) > LONGEST_FIELD for value in values):
            raise TooLarge(f"A field can have at most {LONGEST_FIELD:,} bytes.", field=name[:80])
    return {name: TextValue(tuple(values)) for name, values in fields.lists()}


class WholeBody:
    """The body, which may not end before the length that was announced: Django would take the rest as not sent."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.left = int(request.META.get("CONTENT_LENGTH") or 0)
        self.tail = b""
        self.boundary = request.content_params.get("boundary", "") if request.content_params else ""

    def read(self, size: int) -> bytes:
        data = self.request.read(size)
        self.left -= len(data)
        if not data and self.left > 0:
            raise NotAForm("The body is shorter than its Content-Length.")
        self.tail = (self.tail + data)[-TAIL_BYTES:]
        return data

    def is_closed(self) -> bool:
        """Whether the form came to its end, and is not cut off by a length that is too small."""
        return f"--{self.boundary}--".encode("latin-1", "replace") in self.tail


@contextmanager
def room_needed() -> Iterator[None]:
    """A full disk passes; the upload can be sent again."""
    try:
        yield
    except OSError as error:
        logger.error("upload_not_kept", error=error.strerror)
        raise Unavailable from None


class OneFile(FileUploadHandler):
    """Takes one file: in memory while it is small, then in a file of the system that has no name.

    Such a file is gone with the process, however that ends; there is nothing to clean up.
    """

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request)
        self.kept: IO[bytes] | None = None
        self.size = 0
        self.has_ended_early = False

    def new_file(self, field_name: str, *positional: Any, **named: Any) -> None:
        super().new_file(field_name, *positional, **named)
        if field_name != FILE:
            raise refused(field_name[:80], f"Send the file in the field {FILE}.", code="unknown_field")
        if self.kept is not None:
            raise refused(FILE, "Send one file per request.")
        self.kept = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115  (closed by `received`)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        limit = settings.COLLECTIONS["file_limit"]
        self.size += len(raw_data)
        if self.size > limit:
            raise TooLarge(f"A file can have at most {limit:,} bytes.", field=FILE)
        assert self.kept is not None
        with room_needed():
            self.kept.write(raw_data)

    def file_complete(self, file_size: int) -> None:
        """Nothing for `request.FILES`: whoever reads an upload has it from here."""
        assert self.kept is not None
        with room_needed():
            self.kept.flush()

    def upload_interrupted(self) -> None:
        self.has_ended_early = True

    def close(self) -> None:
        if self.kept is not None:
            with suppress(OSError):  # what is not written yet has no room, and is not needed
                self.kept.close()
