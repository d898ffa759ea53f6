"""Reads a multipart/form-data upload as a stream, within size limits, without leaving a file behind.

Django's parser splits the body. This module checks what the parser does not: that the body is complete and contains
one file, the size of the file, and the number and size of the other fields.
"""

import re
import tempfile
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

import structlog
from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParser, MultiPartParserError

from system.errors import BadRequest, InvalidParameter, TooLarge, Unavailable, UnsupportedMediaType

logger = structlog.get_logger(__name__)

FILE_FIELD = "file"
NO_FILE_MESSAGE = f"Send one file, including its file name, in the form field {FILE_FIELD}."
NO_FILE_NAME_MESSAGE = (
    f"The form field {FILE_FIELD} has no file name. Send a file, for example with curl -F {FILE_FIELD}=@report.pdf."
)
MAX_FIELDS = 10
# Enough for 16 KB of metadata with every character written as \uXXXX.
MAX_FIELD_LENGTH = 128 * 1024
# Fields and boundaries, in addition to the file.
FORM_OVERHEAD_BYTES = 1024 * 1024
MAX_IN_MEMORY_BYTES = PART_BYTES = 1024 * 1024
TAIL_BYTES = 4096
MAX_FILENAME_LENGTH = 255
# Characters of these classes change the direction of text: "gpj.exe" could appear as "exe.jpg".
DIRECTION_CLASSES = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


class InvalidForm(BadRequest):
    code = "invalid_form"
    message = "The body is not valid multipart/form-data."


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded file and the other form fields. The file name is a label only; no file on disk is named after it."""

    file: IO[bytes]
    size: int
    filename: str
    declared_type: str
    fields: Mapping[str, tuple[str, ...]]

    def content(self) -> bytes:
        self.file.seek(0)
        return self.file.read()

    def parts(self) -> Iterator[bytes]:
        self.file.seek(0)
        while part := self.file.read(PART_BYTES):
            yield part


@contextmanager
def receive_upload(
    request: HttpRequest, max_bytes: int, max_fields: int = MAX_FIELDS, file_fields: Collection[str] = (FILE_FIELD,)
) -> Iterator[Upload]:
    """The upload of a request; its content is deleted at the end of the `with` block."""
    if request.content_type != "multipart/form-data":
        raise UnsupportedMediaType(
            f"Send multipart/form-data with the file in the field {FILE_FIELD}.", field=FILE_FIELD
        )
    handler = OneFileHandler(request, max_bytes, file_fields)
    try:
        yield _read_upload(request, handler, max_fields)
    finally:
        handler.close()


@contextmanager
def receive_file(request: HttpRequest, filename: str, max_bytes: int) -> Iterator[Upload]:
    """A file that is the whole body of a request."""
    with tempfile.SpooledTemporaryFile(max_size=MAX_IN_MEMORY_BYTES) as file:
        size, body = 0, CompleteBody(request)
        while part := body.read(PART_BYTES):
            size += len(part)
            check_size(size, max_bytes)
            with disk_errors_as_unavailable():
                file.write(part)
        check_not_empty(size)
        yield Upload(file, size, filename, request.content_type or "", {})


def check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise TooLarge(f"A file must not exceed {max_bytes:,} bytes.", field=FILE_FIELD)


def check_not_empty(size: int) -> None:
    if not size:
        raise BadRequest("The file is empty.", code="empty_file", field=FILE_FIELD)


def _read_upload(request: HttpRequest, handler: "OneFileHandler", max_fields: int) -> Upload:
    body: Any = CompleteBody(request)
    try:
        fields, _ = MultiPartParser(request.META, body, [handler], "utf-8").parse()
    except MultiPartParserError:
        raise InvalidForm from None
    request.POST = fields  # type: ignore[assignment]  # for the CSRF check and for the page of an error
    if handler.is_interrupted or not body.has_closing_boundary():
        raise InvalidForm("The body ends before the form is complete.")
    if handler.file is None:
        message = NO_FILE_NAME_MESSAGE if FILE_FIELD in fields else NO_FILE_MESSAGE
        raise BadRequest(message, code="mandatory", field=FILE_FIELD)
    check_not_empty(handler.size)
    return Upload(
        file=handler.file,
        size=handler.size,
        filename=handler.file_name or "",
        declared_type=handler.content_type or "",
        fields=check_fields(fields, max_fields),
    )


def check_fields(fields: Any, max_fields: int) -> dict[str, tuple[str, ...]]:
    if sum(len(values) for _, values in fields.lists()) > max_fields:
        raise InvalidForm(f"A form must not have more than {max_fields} fields in addition to the file.")
    for name, values in fields.lists():
        if any(len(value.encode()) > MAX_FIELD_LENGTH for value in values):
            raise TooLarge(f"A form field must not exceed {MAX_FIELD_LENGTH:,} bytes.", field=name[:80])
    return {name: tuple(values) for name, values in fields.lists()}


def clean_filename(filename: str) -> str:
    r"""The file name to display; never a path.

    >>> [clean_filename(name) for name in ("C:\\docs\\..\\a\r\nb.pdf", "/etc/passwd", "..", "cafe\u0301")]
    ['ab.pdf', 'passwd', '', 'café']
    """
    last_part = re.split(r"[/\\]", filename)[-1]
    name = "".join(
        character
        for character in last_part
        if unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp")
        and unicodedata.bidirectional(character) not in DIRECTION_CLASSES
    ).strip()
    # Some systems compose é, others do not; searches for the name use the composed form.
    return "" if name in (".", "..") else unicodedata.normalize("NFC", name)[:MAX_FILENAME_LENGTH]


class CompleteBody:
    """A body that must not be shorter than its Content-Length, which Django would accept."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.remaining_bytes = int(request.META.get("CONTENT_LENGTH") or 0)
        self.tail = b""
        self.boundary = request.content_params.get("boundary", "") if request.content_params else ""

    def read(self, size: int) -> bytes:
        data = self.request.read(size)
        self.remaining_bytes -= len(data)
        if not data and self.remaining_bytes > 0:
            raise InvalidForm("The body is shorter than its Content-Length.")
        self.tail = (self.tail + data)[-TAIL_BYTES:]
        return data

    def has_closing_boundary(self) -> bool:
        """Whether the form has its closing boundary; a Content-Length that is too small cuts it off."""
        return f"--{self.boundary}--".encode("latin-1", "replace") in self.tail


@contextmanager
def disk_errors_as_unavailable() -> Iterator[None]:
    """Turn disk errors into `Unavailable`: a full disk is temporary, so the caller can retry."""
    try:
        yield
    except OSError as error:
        logger.error("upload_not_stored", error=error.strerror)
        raise Unavailable from None


class OneFileHandler(FileUploadHandler):
    """Accepts one file: in memory while it is small, then in an unnamed temporary file.

    The operating system deletes such a file when the process ends, so there is nothing to clean up.
    """

    def __init__(self, request: HttpRequest, max_bytes: int, file_fields: Collection[str]) -> None:
        super().__init__(request)
        self.max_bytes, self.file_fields = max_bytes, file_fields
        self.file: IO[bytes] | None = None
        self.size = 0
        self.is_interrupted = False

    def new_file(self, field_name: str, *args: Any, **kwargs: Any) -> None:
        super().new_file(field_name, *args, **kwargs)
        if field_name not in self.file_fields:
            raise BadRequest(f"Send the file in the field {FILE_FIELD}.", code="unknown_field", field=field_name[:80])
        if self.file is not None:
            raise InvalidParameter("Send one file per request.", field=FILE_FIELD)
        self.file = tempfile.SpooledTemporaryFile(max_size=MAX_IN_MEMORY_BYTES)  # noqa: SIM115  (closed by `received`)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self.size += len(raw_data)
        check_size(self.size, self.max_bytes)
        assert self.file is not None
        with disk_errors_as_unavailable():
            self.file.write(raw_data)

    def file_complete(self, file_size: int) -> None:
        """Returns no file for `request.FILES`; the upload is read from this handler."""
        assert self.file is not None
        with disk_errors_as_unavailable():
            self.file.flush()

    def upload_interrupted(self) -> None:
        self.is_interrupted = True

    def close(self) -> None:
        if self.file is not None:
            with suppress(OSError):  # the disk is full; the rest of the file is not needed
                self.file.close()
