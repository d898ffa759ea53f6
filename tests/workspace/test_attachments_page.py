"""Attachments on the pages: uploads with and without a script, the bytes, deletion, and what is never displayed."""

import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings

from accounts.models import User
from tableapi.models import Attachment, Rule, Table
from tests.support.pages import without_token
from tests.support.users import signed_in_client
from tests.tableapi.world import api, device_of_technicians, grant, record, rule

pytestmark = pytest.mark.django_db
PNG_FILE = b"\x89PNG\r\n\x1a\n" + b"x" * 100


@pytest.fixture
def device(db: Any) -> Table:
    return device_of_technicians()


@pytest.fixture
def lamp(device: Table) -> str:
    return record("device", name="Lamp")


def upload(client: Client, sys_id: str, *files: SimpleUploadedFile, **headers: str) -> Any:
    return client.post(f"/tables/device/{sys_id}/attachments/", {"attachment-file": list(files)}, headers=headers)


def file(name: str, content: bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


def file_path(sys_id: str, attachment: Attachment) -> str:
    return f"/tables/device/{sys_id}/attachments/{attachment.pk}/"


def csrf_token(client: Client, sys_id: str) -> str:
    content = client.get(f"/tables/device/{sys_id}/activity/").content.decode()
    match = re.search(r'name="csrf-token" content="([^"]+)"', content)
    assert match
    return match[1]


def test_form_uploads_several_files(lamp: str, alice: User):
    client = signed_in_client(alice, enforce_csrf_checks=True)
    data = {
        "csrfmiddlewaretoken": csrf_token(client, lamp),
        "attachment-file": [file("a.txt", b"Hello"), file("b.png", PNG_FILE)],
    }
    response = client.post(f"/tables/device/{lamp}/attachments/", data)

    assert response.status_code == 302 and response["Location"].startswith(f"/tables/device/{lamp}/activity/")
    assert sorted(Attachment.objects.values_list("file_name", "content_type", "size")) == [
        ("a.txt", "text/plain", 5),
        ("b.png", "image/png", len(PNG_FILE)),
    ]
    content = client.get(f"/tables/device/{lamp}/activity/").content.decode()
    assert content.index("b.png") < content.index("a.txt") and "5\xa0bytes" in content and "alice" in content
    assert content.count("<img") == 2 and 'alt="b.png"' in content  # with the logo


def test_script_uploads_one_file_and_gets_its_entry(lamp: str, alice: User):
    client = signed_in_client(alice, enforce_csrf_checks=True)
    headers = {"X-CSRFToken": csrf_token(client, lamp), "Accept": "application/json"}
    response = client.post(f"/tables/device/{lamp}/attachments/", {"file": file("a.txt", b"Hello")}, headers=headers)

    assert response.status_code == 201 and response.json()["file_name"] == "a.txt"
    refused = client.post(f"/tables/device/{lamp}/attachments/", {"file": file("a.txt", b"")}, headers=headers)
    assert refused.status_code == 400 and refused.json()["errors"][0]["code"] == "empty_file"


@pytest.mark.parametrize("token", ["", "x" * 32])
def test_uploads_need_a_valid_token(token: str, lamp: str, alice: User):
    client = signed_in_client(alice, enforce_csrf_checks=True)
    csrf_token(client, lamp)
    for data in ({"file": file("a.txt", b"a")}, {"attachment-file": file("a.txt", b"a"), "csrfmiddlewaretoken": token}):
        for headers in ({"X-CSRFToken": token}, {}):
            assert client.post(f"/tables/device/{lamp}/attachments/", data, headers=headers).status_code == 403
    assert not Attachment.objects.exists()


def test_refused_uploads_are_explained(lamp: str, as_alice: Client, as_bob: Client):
    cases = [(), (file("a.txt", b""),), (file("a.txt", b"a"), file("b.txt", b""))]
    for files in cases:
        response = upload(as_alice, lamp, *files)
        assert response.status_code == 400 and b'role="alert"' in response.content
    with override_settings(ATTACHMENT_LIMIT=3):
        assert b"must not exceed 3 bytes" in upload(as_alice, lamp, file("a.txt", b"abcd")).content
    response = upload(as_bob, lamp, file("a.txt", b"a"))
    assert response.status_code == 403 and b"You are not allowed to change this record" in response.content
    headers = {"X-CSRFToken": "x", "Accept": "application/json"}
    refused = as_bob.post(f"/tables/device/{lamp}/attachments/", {"file": file("a", b"a")}, headers=headers)
    assert refused.status_code == 403 and refused.json()["errors"][0]["code"] == "access_denied"
    assert not Attachment.objects.exists()


def test_upload_form_is_shown_only_to_those_who_may_attach(lamp: str, bob: User, as_bob: Client):
    assert b"attachment-file" not in as_bob.get(f"/tables/device/{lamp}/activity/").content
    grant(bob, "itil")
    assert b"attachment-file" in as_bob.get(f"/tables/device/{lamp}/activity/").content


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
def test_bytes_are_served_as_the_api_serves_them(
    content: bytes,
    name: str,
    content_type: str,
    disposition: str,
    lamp: str,
    alice: User,
    as_alice: Client,
    as_bob: Client,
):
    upload(as_alice, lamp, file(name, content))
    attachment = Attachment.objects.get()
    response = as_bob.get(file_path(lamp, attachment))
    api_response = api(alice).get(f"device/{lamp}/attachments/{attachment.pk}/content")

    assert b"".join(response) == b"".join(api_response) == content
    headers = ("Content-Type", "Content-Disposition", "Content-Security-Policy", "ETag", "X-Content-Type-Options")
    assert {header: response[header] for header in headers} == {header: api_response[header] for header in headers}
    assert response["Content-Type"] == content_type and response["Content-Disposition"].startswith(disposition)
    assert response["Content-Security-Policy"].startswith("sandbox") and response["X-Content-Type-Options"] == "nosniff"
    page = as_bob.get(f"/tables/device/{lamp}/activity/").content
    assert (b'class="thumbnail"' in page) == (disposition == "inline")


def test_browser_keeps_a_file_but_asks_each_time(lamp: str, as_alice: Client, as_bob: Client):
    upload(as_alice, lamp, file("b.png", PNG_FILE))
    path = file_path(lamp, Attachment.objects.get())
    first = as_bob.get(path)
    b"".join(first)
    again = as_bob.get(path, headers={"If-None-Match": first["ETag"]})
    assert first["Cache-Control"] == "private, no-cache" and again.status_code == 304 and not again.content

    Rule.objects.filter(table__name="device", operation="read").delete()
    assert as_bob.get(path, headers={"If-None-Match": first["ETag"]}).status_code == 404


def test_attachment_is_deleted(lamp: str, as_alice: Client, as_bob: Client):
    upload(as_alice, lamp, file("a.txt", b"a"))
    path = f"{file_path(lamp, Attachment.objects.get())}delete/"

    assert as_bob.post(path).status_code == 403 and as_bob.get(path).status_code == 405
    assert as_alice.post(path).status_code == 302
    assert not Attachment.objects.exists() and as_alice.post(path).status_code == 404


def test_hidden_and_missing_attachments_get_the_same_404(device: Table, lamp: str, as_alice: Client, as_bob: Client):
    upload(as_alice, lamp, file("a.pdf", b"%PDF-1.4"))
    attachment = Attachment.objects.get()
    other = record("device", name="Other")
    Rule.objects.filter(table=device, operation="read").delete()
    rule("read", "device", condition="name=Other")
    for suffix in ("", "pages/1/"):
        responses = [
            as_bob.get(f"/tables/device/{path}/{suffix}", headers={"Accept": "text/html"})
            for path in (
                f"{lamp}/attachments/{attachment.pk}",
                f"{'0' * 18}/attachments/{attachment.pk}",
                f"{other}/attachments/{attachment.pk}",
                f"{other}/attachments/{'0' * 18}",
            )
        ]
        assert {response.status_code for response in responses} == {404}
        assert len({without_token(response.content) for response in responses}) == 1


def test_older_attachments_are_on_the_next_page(lamp: str, as_alice: Client):
    upload(as_alice, lamp, *(file(f"file{number:02}.txt", b"a") for number in range(25)))
    first = as_alice.get(f"/tables/device/{lamp}/activity/").content.decode()
    link = re.search(r'href="([^"]+\?files=[^"]+)"', first)
    assert link and "file24" in first and "file04" not in first
    second = as_alice.get(link[1]).content.decode()
    assert "file04" in second and "file24" not in second and "?files=" not in second
