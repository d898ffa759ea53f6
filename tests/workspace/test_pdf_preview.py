"""Previews of PDF files: images of their pages, and files that must not break anything."""

import struct
import zlib
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from system import sandbox
from tableapi.attached import preview
from tableapi.models import Attachment
from tests.collections_app.extract import hostile_pdfs  # registers the files
from tests.collections_app.extract.hostile import PDFS
from tests.collections_app.library import pdf
from tests.support.users import signed_in_client
from tests.tableapi.world import api, field, open_table, record, table

pytestmark = pytest.mark.django_db
assert hostile_pdfs


@pytest.fixture
def lamp(db: Any) -> str:
    table("device")
    field("device", "name")
    open_table("device")
    return record("device", name="Lamp")


def attach(user: User, sys_id: str, content: bytes) -> str:
    headers = {"Content-Type": "application/octet-stream"}
    response = api(user).post(f"device/{sys_id}/attachments?file_name=a.pdf", content, headers=headers)
    return str(response.json()["data"][0]["sys_id"])


def page_path(sys_id: str, attachment_id: str, number: int | str = 1) -> str:
    return f"/tables/device/{sys_id}/attachments/{attachment_id}/pages/{number}/"


def image_of(png: bytes) -> tuple[int, int, bytes]:
    """The width, height and RGB pixels of an image, each row after its filter byte."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    start = png.index(b"IDAT")
    (length,) = struct.unpack(">I", png[start - 4 : start])
    return width, height, zlib.decompress(png[start + 4 : start + 4 + length])


def test_each_page_is_an_image(lamp: str, alice: User, as_bob: Client):
    attachment_id = attach(alice, lamp, pdf("Hello", "", "Third page"))
    responses = [as_bob.get(page_path(lamp, attachment_id, number)) for number in (1, 2, 3)]

    assert [response["Content-Type"] for response in responses] == ["image/png"] * 3
    assert {response["X-Page-Count"] for response in responses} == {"3"}
    images = [image_of(response.content) for response in responses]
    assert {image[:2] for image in images} == {(1200, 1553)}
    dark_counts = [image[2].count(b"\0\0\0") for image in images]
    assert dark_counts[0] > 20 and dark_counts[2] > dark_counts[0] and dark_counts[1] == 0
    assert as_bob.get(page_path(lamp, attachment_id, 4)).status_code == 404


def test_image_is_sent_once_and_then_only_confirmed(
    lamp: str, alice: User, as_bob: Client, monkeypatch: pytest.MonkeyPatch
):
    path = page_path(lamp, attach(alice, lamp, pdf("Hello")))
    response = as_bob.get(path)
    assert response["Cache-Control"] == "private, no-cache" and response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Security-Policy"].startswith("sandbox")

    monkeypatch.setattr(sandbox, "run", lambda *_, **__: pytest.fail("rendered again"))
    again = as_bob.get(path, headers={"If-None-Match": response["ETag"]})
    assert again.status_code == 304 and not again.content


def test_wide_tall_and_tiny_pages_are_limited(lamp: str, alice: User, as_bob: Client):
    for size, expected in ((b"14400 10", (1200, 1)), (b"10 14400", (2, 1700)), (b"20 20", (60, 60))):
        content = pdf("Hello").replace(b"612 792", size.ljust(7))
        width, height, _ = image_of(as_bob.get(page_path(lamp, attach(alice, lamp, content))).content)
        assert (width, height) == pytest.approx(expected, abs=1)


def test_only_pdf_files_and_the_first_pages_have_previews(
    lamp: str, alice: User, as_bob: Client, monkeypatch: pytest.MonkeyPatch
):
    attachment_id = attach(alice, lamp, pdf(*["page"] * 3))
    monkeypatch.setattr(preview, "MAX_PREVIEW_PAGES", 2)
    assert as_bob.get(page_path(lamp, attachment_id, 2))["X-Page-Count"] == "2"
    paths = [page_path(lamp, attachment_id, number) for number in (0, 3, 10**30)]
    for path in [*paths, page_path(lamp, attach(alice, lamp, b"<svg/>"))]:
        assert as_bob.get(path).status_code == 404
    monkeypatch.setattr(preview, "MAX_PREVIEW_FILE_BYTES", 10)
    assert as_bob.get(page_path(lamp, attachment_id)).status_code == 404
    assert b"pdf-preview" not in as_bob.get(f"/tables/device/{lamp}/activity/").content


def test_one_preview_at_a_time(lamp: str, alice: User, as_bob: Client):
    path = page_path(lamp, attach(alice, lamp, pdf("Hello")))
    assert preview.PREVIEW_SLOTS.acquire(blocking=False)
    try:
        response = as_bob.get(path)
    finally:
        preview.PREVIEW_SLOTS.release()
    assert response.status_code == 429 and response["Retry-After"] == "1"
    assert as_bob.get(path).status_code == 200


@pytest.mark.parametrize("name", sorted(PDFS))
def test_hostile_file_has_no_preview_or_a_small_image(
    name: str, lamp: str, alice: User, as_bob: Client, monkeypatch: pytest.MonkeyPatch
):
    limits = sandbox.RunLimits(memory_bytes=512 * 1024 * 1024, cpu_s=2, run_s=4, output_bytes=16 * 1024 * 1024)
    monkeypatch.setattr(preview, "LIMITS", limits)
    content = PDFS[name].build()
    attachment_id = attach(alice, lamp, content)
    if not Attachment.objects.filter(content_type="application/pdf").exists():
        pytest.skip("not recognized as a PDF file")

    response = as_bob.get(page_path(lamp, attachment_id))
    if response.status_code == 200:
        width, height, pixels = image_of(response.content)
        assert width <= 1201 and height <= 1701 and len(pixels) == height * (1 + 3 * width)
    else:
        assert response.status_code == 404 and response.json()["errors"][0]["code"] == "no_preview"
    assert preview.PREVIEW_SLOTS.acquire(blocking=False)  # the slot is free again
    preview.PREVIEW_SLOTS.release()
    assert as_bob.get(f"/tables/device/{lamp}/activity/").status_code == 200


@pytest.mark.parametrize("output", [b"", b"\0\0\0\1<svg/>", b"\x89PNG\r\n\x1a\n", b"\0"])
def test_output_of_the_program_is_not_trusted(output: bytes, lamp: str, alice: User, monkeypatch: pytest.MonkeyPatch):
    attachment_id = attach(alice, lamp, pdf("Hello"))
    result = sandbox.RunResult(status=sandbox.RunStatus.DONE, output=output)
    monkeypatch.setattr(sandbox, "run", lambda *_, **__: result)
    assert signed_in_client(alice).get(page_path(lamp, attachment_id)).status_code == 404
