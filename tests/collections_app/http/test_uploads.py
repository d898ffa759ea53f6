"""Files as multipart/form-data; invalid forms are refused and leave nothing behind."""

import os
import resource
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.core.handlers.wsgi import WSGIRequest
from django.test import RequestFactory

from system.errors import ServiceError
from system.http import uploads
from system.http.error_responses import to_service_error
from tests.collections_app.http.calls import KeyCaller, error_of

MAX_BYTES = 3_000_000
FORM_BOUNDARY = "line"
FORM_CONTENT_TYPE = f"multipart/form-data; boundary={FORM_BOUNDARY}"


def form_part(name: str, content: bytes, filename: str | None = None, headers: str = "") -> bytes:
    filename_parameter = f'; filename="{filename}"' if filename is not None else ""
    header = f'--{FORM_BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{filename_parameter}\r\n{headers}\r\n'
    return header.encode() + content + b"\r\n"


FORM_END = f"--{FORM_BOUNDARY}--\r\n".encode()
FILE_PART = form_part("file", b"Hello", "hello.txt")


def upload_request(body: bytes, content_type: str = FORM_CONTENT_TYPE, length: int | None = None) -> WSGIRequest:
    request = RequestFactory().generic("POST", "/", body, content_type=content_type)
    if length is not None:
        request.META["CONTENT_LENGTH"] = str(length)
        request = WSGIRequest({**request.environ, "CONTENT_LENGTH": str(length), "wsgi.input": BytesIO(body)})
    return request


def parse_form(body: bytes, **options: Any) -> tuple[bytes, uploads.Upload]:
    with uploads.receive_upload(upload_request(body, **options), MAX_BYTES) as upload:
        assert upload.content() == b"".join(upload.parts())
        return upload.content(), upload


def refusal_of(body: bytes, **options: Any) -> tuple[int, str]:
    with pytest.raises(ServiceError) as exc_info:
        parse_form(body, **options)
    return exc_info.value.status, exc_info.value.code


def test_file_and_form_fields_are_parsed():
    content, upload = parse_form(
        form_part("metadata", '{"type": "ü"}'.encode()) + FILE_PART + form_part("wait", b"false") + FORM_END
    )

    assert (content, upload.size, upload.filename) == (b"Hello", 5, "hello.txt")
    assert upload.fields == {
        "metadata": ('{"type": "ü"}',), "wait": ("false",)
    }  # fmt: skip


@pytest.mark.parametrize(
    "size", [1, uploads.MAX_IN_MEMORY_BYTES, uploads.MAX_IN_MEMORY_BYTES + 1, 2_999_999, 3_000_000]
)
def test_file_of_any_size_is_complete(size: int):
    content = os.urandom(size)

    assert parse_form(form_part("file", content, "a.bin") + FORM_END)[0] == content


@pytest.mark.parametrize(
    ("body", "expected_refusal"),
    [
        (FORM_END, (400, "mandatory")),
        (b"--", (400, "invalid_form")),
        (b"nonsense", (400, "invalid_form")),
        (form_part("other", b"x") + FORM_END, (400, "mandatory")),
        (form_part("file", b"no file but a field") + FORM_END, (400, "mandatory")),
        (form_part("file", b"", "empty.txt") + FORM_END, (400, "empty_file")),  # C16
        (form_part("file", b"x", "") + FORM_END, (400, "mandatory")),
        (FILE_PART + FILE_PART + FORM_END, (400, "invalid_parameter")),
        (form_part("upload", b"x", "a.txt") + FORM_END, (400, "unknown_field")),
        (FILE_PART + form_part("f", b"x") * 11 + FORM_END, (400, "invalid_form")),
        (FILE_PART + form_part("metadata", b"x" * (uploads.MAX_FIELD_LENGTH + 1)) + FORM_END, (413, "too_large")),
        (FILE_PART[:-2], (400, "invalid_form")),
        (FILE_PART, (400, "invalid_form")),
        (FILE_PART + form_part("metadata", b"{}")[:-3], (400, "invalid_form")),
        (form_part("file", b"!", "a.txt", "Content-Transfer-Encoding: base64\r\n") + FORM_END, (400, "invalid_form")),
        (form_part("file", b"x", "a" * 10_000) + FORM_END, (400, "invalid_form")),  # C13
    ],
)
def test_malformed_form_is_refused(body: bytes, expected_refusal: tuple[int, str]):  # C14
    assert refusal_of(body) == expected_refusal


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        (form_part("metadata", b"x" * (11 * 1024 * 1024)), RequestDataTooBig),
        (b"".join(form_part(str(number), b"x") for number in range(3000)), TooManyFieldsSent),
    ],
)
def test_form_with_large_or_too_many_fields_is_refused_while_it_is_read(fields: bytes, error: type[Exception]):  # C14
    with pytest.raises(error) as exc_info:
        parse_form(FILE_PART + fields + FORM_END)
    service_error = to_service_error(exc_info.value)
    assert service_error is not None and service_error.status == 413


@pytest.mark.parametrize(
    ("content_type", "expected_refusal"),
    [
        ("application/json", (415, "unsupported_media_type")),
        ("", (415, "unsupported_media_type")),
        ("multipart/mixed; boundary=line", (415, "unsupported_media_type")),
        ("application/x-www-form-urlencoded", (415, "unsupported_media_type")),
        ("multipart/form-data", (400, "invalid_form")),
        ("multipart/form-data; boundary=", (400, "invalid_form")),
        ("multipart/form-data; boundary=other", (400, "invalid_form")),
        (f"multipart/form-data; boundary={'x' * 300}", (400, "invalid_form")),
    ],
)
def test_another_content_type_or_boundary_is_refused(content_type: str, expected_refusal: tuple[int, str]):  # C14
    assert refusal_of(FILE_PART + FORM_END, content_type=content_type) == expected_refusal


@pytest.mark.parametrize(
    "length", [len(FILE_PART + FORM_END) + 1, len(FILE_PART + FORM_END) - 10, len(FILE_PART) // 2, 10**9]
)
def test_wrong_content_length_is_refused(length: int):  # C15
    assert refusal_of(FILE_PART + FORM_END, length=length) == (400, "invalid_form")


def test_form_cut_off_by_a_wrong_content_length_is_refused():  # C15
    """The file is complete, but its metadata, which may limit who can find it, is missing."""
    content = FILE_PART + form_part("metadata", b'{"type": "secret"}') + FORM_END

    assert refusal_of(content, length=len(FILE_PART)) == (400, "invalid_form")


def test_file_over_the_limit_is_refused_during_the_upload(monkeypatch: Any):  # C14
    read_sizes = []
    original_read = WSGIRequest.read

    def read_and_record_size(request: WSGIRequest, *args: Any) -> bytes:
        chunk = original_read(request, *args)
        read_sizes.append(len(chunk))
        return chunk

    monkeypatch.setattr(WSGIRequest, "read", read_and_record_size)
    assert refusal_of(form_part("file", b"x" * 9_000_000, "a.txt") + FORM_END) == (413, "too_large")
    assert sum(read_sizes) < 3_300_000


@pytest.mark.parametrize(
    "filename", ["../../etc/x", "/etc/passwd", r"C:\docs\a.txt", "a.txt", "..", "con", "\u202egpj.exe"]
)
def test_file_name_contains_no_path(filename: str):  # C13
    """Folders are removed from a file name. `..` is not a file name, so the form counts as one without a file."""
    if filename == "..":
        assert refusal_of(form_part("file", b"x", filename) + FORM_END) == (400, "mandatory")
        return
    _, upload = parse_form(form_part("file", b"x", filename) + FORM_END)

    assert not set(upload.filename) & set("/\\\u202e")


def test_upload_leaves_no_temporary_file(tmp_path: Path, monkeypatch: Any):  # C14, C15
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    large_part = form_part("file", os.urandom(2 * uploads.MAX_IN_MEMORY_BYTES), "a.bin")
    with uploads.receive_upload(upload_request(large_part + FORM_END), MAX_BYTES) as upload:
        assert upload.size > uploads.MAX_IN_MEMORY_BYTES
        # The content is in an unnamed file, so nothing is left even if the process is killed here.
        assert list(tmp_path.iterdir()) == []
    assert upload.file.closed

    for content in (
        large_part,
        large_part + FILE_PART + FORM_END,
        large_part[:-100],
        large_part + form_part("f", b"x") * 11 + FORM_END,
    ):
        refusal_of(content)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.django_db
def test_many_files_without_a_name_are_refused(manager: KeyCaller):  # C14
    response = manager.send_raw(
        form_part("file", b"", "/") * 101 + FORM_END, FORM_CONTENT_TYPE, collection_name="manuals"
    )

    assert error_of(response)[:2] == (413, "too_large")


@pytest.mark.parametrize("size", [2 * uploads.MAX_IN_MEMORY_BYTES, uploads.MAX_IN_MEMORY_BYTES + 1])
def test_full_disk_is_503(size: int):
    """Simulates a full disk with a limit on the file size."""
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    body = form_part("file", os.urandom(size), "a.bin") + FORM_END
    resource.setrlimit(resource.RLIMIT_FSIZE, (uploads.MAX_IN_MEMORY_BYTES, hard_limit))
    try:
        refusal = refusal_of(body)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft_limit, hard_limit))
    assert refusal == (503, "unavailable")
