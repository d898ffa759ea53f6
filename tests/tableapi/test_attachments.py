"""Files attached to records: who may add, read and delete them, and how they are served."""

import hashlib
from io import BytesIO
from typing import Any

import pytest
from django.test import Client, override_settings

from accounts.models import User
from system import properties
from system.http import uploads
from system.models import DeletionLogEntry
from system.property_definitions import ATTACHMENT_TYPES
from tableapi.models import Attachment, AttachmentPiece
from tests.tableapi.world import api, data_of, device_of_technicians, error_of, field, record, rule, table

pytestmark = pytest.mark.django_db
PNG_FILE = b"\x89PNG\r\n\x1a\n" + b"x" * 100
LARGE_FILE = bytes(range(256)) * 10_000


@pytest.fixture
def lamp(db: Any) -> str:
    device_of_technicians()
    return record("device", name="Lamp")


def attach(user: User, sys_id: str, content: bytes, name: str = "a.txt") -> Any:
    headers = {"Content-Type": "application/octet-stream"}
    return api(user).post(f"device/{sys_id}/attachments?file_name={name}", content, headers=headers)


def attach_with_form(user: User, sys_id: str, content: bytes, name: str) -> Any:
    part_header = f'--line\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    body = part_header.encode() + content + b"\r\n--line--\r\n"
    headers = {"Content-Type": "multipart/form-data; boundary=line"}
    return api(user).post(f"device/{sys_id}/attachments", body, headers=headers)


@pytest.mark.parametrize("send", [attach, attach_with_form])
@pytest.mark.parametrize("content", [b"Hello", PNG_FILE, LARGE_FILE])
def test_file_is_returned_unchanged(send: Any, content: bytes, lamp: str, alice: User, bob: User):
    (entry,) = data_of(send(alice, lamp, content, "a.txt"))

    assert (entry["file_name"], entry["size"]) == ("a.txt", len(content))
    assert entry["sha256"] == hashlib.sha256(content).hexdigest()
    assert data_of(api(bob).get(f"device/{lamp}/attachments")) == [entry]
    response = api(bob).get(f"device/{lamp}/attachments/{entry['sys_id']}/content")
    assert b"".join(response) == content
    head_response = api(bob).head(f"device/{lamp}/attachments/{entry['sys_id']}/content")
    assert head_response["Content-Length"] == str(len(content)) and b"".join(head_response) == b""


@pytest.mark.parametrize(
    ("content", "name", "content_type", "disposition"),
    [
        (PNG_FILE, "a.png", "image/png", "inline"),
        (b"<script>alert(1)</script>", "a.html", "text/plain", "attachment"),
        (b"<svg onload='alert(1)'/>", "a.svg", "text/plain", "attachment"),
        (b"%PDF-1.7", "a.pdf", "application/pdf", "attachment"),
        (b"\x00\x01", "a.png", "application/octet-stream", "attachment"),
    ],
)
def test_only_images_are_displayed_inline(
    content: bytes, name: str, content_type: str, disposition: str, lamp: str, alice: User
):
    (entry,) = data_of(attach(alice, lamp, content, name))
    response = api(alice).get(f"device/{lamp}/attachments/{entry['sys_id']}/content")

    assert response["Content-Type"] == content_type
    assert response["Content-Disposition"].startswith(disposition)
    assert response["Content-Security-Policy"].startswith("sandbox")
    assert response["X-Content-Type-Options"] == "nosniff"
    assert b"".join(response) == content


def test_file_name_is_never_a_path(lamp: str, alice: User):
    (entry,) = data_of(attach(alice, lamp, b"a", "..%2F..%2Fetc%2Fpasswd%0D%0AX: y"))
    response = api(alice).get(f"device/{lamp}/attachments/{entry['sys_id']}/content")

    assert entry["file_name"] == "passwdX: y" and "X" not in response and b"".join(response) == b"a"


def test_readers_cannot_attach_or_delete_files(lamp: str, alice: User, bob: User):
    (entry,) = data_of(attach(alice, lamp, b"a"))

    assert error_of(attach(bob, lamp, b"a"))[:2] == (403, "access_denied")
    assert error_of(api(bob).delete(f"device/{lamp}/attachments/{entry['sys_id']}"))[:2] == (403, "access_denied")
    assert data_of(api(alice).delete(f"device/{lamp}/attachments/{entry['sys_id']}")) == [{"sys_id": entry["sys_id"]}]
    assert not AttachmentPiece.objects.exists()


def test_unreadable_and_missing_records_get_the_same_404(alice: User, bob: User):
    table("vault")
    field("vault", "name")
    rule("read", "vault", condition="name=a")
    rule("write", "vault")
    hidden_id = record("vault", name="b")
    (entry,) = data_of(
        api(alice).post(f"vault/{hidden_id}/attachments?file_name=a", b"a", headers={"Content-Type": "a/b"})
    )
    paths = ["attachments", f"attachments/{entry['sys_id']}/content"]

    for path in paths:
        responses = [api(bob).get(f"vault/{sys_id}/{path}") for sys_id in (hidden_id, "0" * 18)]
        assert responses[0].status_code == 404 and responses[0].content == responses[1].content
    headers = {"Content-Type": "a/b"}
    for sys_id in (hidden_id, "0" * 18):
        response = api(bob).post(f"vault/{sys_id}/attachments?file_name=a", b"a", headers=headers)
        assert error_of(response)[:2] == (404, "record_not_found")


def test_attachment_of_another_record_is_404(lamp: str, alice: User):
    (entry,) = data_of(attach(alice, record("device", name="other"), b"a"))

    assert api(alice).get(f"device/{lamp}/attachments/{entry['sys_id']}/content").status_code == 404
    assert api(alice).delete(f"device/{lamp}/attachments/{entry['sys_id']}").status_code == 404


@pytest.mark.parametrize(
    ("content", "name", "error"),
    [(b"", "a", (400, "empty_file")), (b"a", "", (400, "mandatory")), (b"a", "..", (400, "mandatory"))],
)
def test_invalid_file_is_refused(content: bytes, name: str, error: tuple[int, str], lamp: str, alice: User):
    assert error_of(attach(alice, lamp, content, name))[:2] == error
    assert not Attachment.objects.exists()


@override_settings(ATTACHMENT_LIMIT=1_000)
@pytest.mark.parametrize("send", [attach, attach_with_form])
def test_large_file_is_refused(send: Any, lamp: str, alice: User):
    assert error_of(send(alice, lamp, b"a" * 1_001, "a"))[:2] == (413, "too_large")
    assert data_of(send(alice, lamp, b"a" * 1_000, "a"))


def test_media_types_can_be_restricted(lamp: str, alice: User):
    properties.put(ATTACHMENT_TYPES, "image/png, application/pdf")

    assert error_of(attach(alice, lamp, b"text", "a.png"))[:2] == (415, "unsupported_media_type")
    assert data_of(attach(alice, lamp, PNG_FILE, "a.txt"))[0]["content_type"] == "image/png"


def test_truncated_body_stores_nothing(lamp: str, alice: User):
    path = f"/rest/v1/table/device/{lamp}/attachments?file_name=a"
    environ: Any = {"CONTENT_LENGTH": "10", "wsgi.input": BytesIO(b"abc")}
    response = Client().generic("POST", path, b"abc", content_type="a/b", headers=api(alice).headers, **environ)

    assert error_of(response)[:2] == (400, "invalid_form")
    assert not Attachment.objects.exists()


def test_attachments_of_a_deleted_record_are_kept_as_long_as_its_log_entry(lamp: str, alice: User):
    attach(alice, lamp, LARGE_FILE)
    api(alice).delete(f"device/{lamp}")

    assert Attachment.objects.get().deletion_id == DeletionLogEntry.objects.get(record_id=lamp).pk
    DeletionLogEntry.objects.filter(record_id=lamp)._raw_delete("default")
    assert not Attachment.objects.exists() and not AttachmentPiece.objects.exists()


def test_permissions_are_checked_before_the_file_is_received(
    lamp: str, alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
):
    def fail_if_received(*_: Any) -> Any:
        raise AssertionError("the file was received")

    monkeypatch.setattr(uploads, "receive_file", fail_if_received)
    headers = {"Content-Type": "text/plain"}
    for path, status in ((f"device/{lamp}", 403), ("device/none", 404)):
        assert api(bob).post(f"{path}/attachments?file_name=a", b"x", headers=headers).status_code == status
