"""Scanned pages are read by the worker, marked and reported; printed page labels are in the answers."""

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from collections_app.extract import ocr
from collections_app.ingest import steps
from collections_app.models import Chunk, ExtractedText, Version
from collections_app.queue import leases
from tests.collections_app.builders import make_collection
from tests.collections_app.extract.pdf_samples import paragraph, placed_pdf, scanned_pdf
from tests.collections_app.http.calls import SEARCH_PATH, KeyCaller
from tests.collections_app.ingest.world import expire_leases, process_queue

pytestmark = pytest.mark.django_db

SCANS = scanned_pdf([
    paragraph("The toner of the printer is red.", "Replace it in spring.", size=14),
    None,
    paragraph("The mailbox is on the second floor.", size=14),
])  # fmt: skip
# Its images are too coarse to be read, which the tests with replaced engines do not need.
COARSE_SCANS = scanned_pdf([paragraph("One"), None, paragraph("Three"), paragraph("Four")], resolution=20)


@pytest.fixture
def pages_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Replaces the engine by one that returns a sentence for each page; returns the pages that it read."""
    numbers: list[int] = []

    def read_page(data: bytes, number: int) -> str:
        numbers.append(number)
        return f"Words of scan {number}."

    monkeypatch.setattr(ocr, "is_available", lambda: True)
    monkeypatch.setattr(ocr, "read_page", read_page)
    return numbers


def load(manager: KeyCaller, data: bytes, **query: Any) -> Any:
    return manager.upload(data, "scan.pdf", collection_name="manuals", **query)


def find(manager: KeyCaller, query: str) -> Any:
    return manager.get(SEARCH_PATH, collection_names="manuals", query=query, k=1).json()[0]


@pytest.mark.ocr
def test_scans_are_read_by_the_worker(manager: KeyCaller):
    response = load(manager, SCANS)
    assert (response.status_code, response.json()["document_status"]) == (202, "extracting")
    process_queue()

    version = Version.objects.get()
    assert version.state == "ready"
    assert version.warnings == ["Read from scans by OCR, which can make mistakes: pages 1, 3."]
    text = ExtractedText.objects.get().text
    assert text.split("\n\n")[0].splitlines() == ["The toner of the printer is red.", "Replace it in spring."]
    passage = find(manager, "mailbox")
    assert passage["is_ocr"] and passage["page"] <= 3 <= passage["page_end"]


@pytest.mark.ocr
def test_missing_languages_are_reported(manager: KeyCaller, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(settings, "OCR_LANGUAGES", ("nolanguage",))
    load(manager, SCANS)
    process_queue()

    assert Version.objects.get().warnings == [f"Scans whose text was not read: pages 1, 3. {ocr.LANGUAGES_HINT}"]


def test_without_tesseract_the_response_says_what_to_install(manager: KeyCaller, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ocr, "library_file", lambda: None)
    response = load(manager, COARSE_SCANS)

    assert response.status_code == 201
    assert response.json()["warnings"] == [f"Scans whose text was not read: pages 1, 3-4. {ocr.INSTALL_HINT}"]


def test_each_page_is_a_step_that_is_not_repeated(manager: KeyCaller, pages_read: list[int]):
    assert load(manager, COARSE_SCANS).status_code == 202
    lease = leases.take_next_lease()
    assert lease is not None and pages_read == []
    steps.extract_text(leases.leased_version(lease.version_id, lease.token), float("inf"))
    expire_leases()  # as if the worker was killed
    process_queue()

    assert pages_read == [1, 3, 4]
    extracted_text = ExtractedText.objects.get()
    assert extracted_text.text == "Words of scan 1.\n\nA page that was typed\n\nWords of scan 3.\n\nWords of scan 4."
    starts = [extracted_text.text[start:][:7] for start in extracted_text.page_starts or ()]
    assert starts == ["Words o", "A page ", "Words o", "Words o"]


def test_only_passages_of_scans_are_marked(manager: KeyCaller, pages_read: list[int]):
    make_collection("manuals", chunk_size=25, chunk_overlap=0)
    load(manager, scanned_pdf([paragraph("One"), None], resolution=20))
    process_queue()

    assert list(Chunk.objects.order_by("number").values_list("text", "is_ocr")) == [
        ("Words of scan 1.", True), ("A page that was typed", False),
    ]  # fmt: skip


def test_further_pages_than_allowed_are_not_read(
    manager: KeyCaller, pages_read: list[int], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(settings.COLLECTIONS, "ocr_max_pages", 1)
    load(manager, COARSE_SCANS)
    process_queue()

    assert pages_read == [1]
    assert Version.objects.get().warnings == [
        "Read from scans by OCR, which can make mistakes: page 1.",
        "Scans whose text was not read: pages 3-4. More pages are scans than SVC_OCR_MAX_PAGES allows.",
    ]


@pytest.mark.parametrize(
    "script",
    [
        "import sys; sys.exit(3)",
        "def prepare(a):\n    return lambda data: b'[]'",
        "def prepare(a):\n    return lambda data: 1 / 0",
    ],
)
def test_page_that_cannot_be_read_does_not_fail_the_document(
    script: str, manager: KeyCaller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "other.py").write_text(script)
    monkeypatch.setattr(ocr, "PROGRAM", tmp_path / "other.py")
    monkeypatch.setattr(ocr, "library_file", lambda: "libtesseract.so")
    load(manager, scanned_pdf([paragraph("One"), None], resolution=20))
    process_queue()

    version = Version.objects.get()
    assert (version.state, version.warnings) == ("ready", ["Scans that OCR could not read: page 1."])


def test_page_that_takes_too_long_is_skipped(manager: KeyCaller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "other.py").write_text("def prepare(a):\n    def run(data):\n        while True: pass\n    return run")
    monkeypatch.setattr(ocr, "PROGRAM", tmp_path / "other.py")
    monkeypatch.setattr(ocr, "library_file", lambda: "libtesseract.so")
    monkeypatch.setattr(ocr, "MAX_CPU_S", 1)
    load(manager, scanned_pdf([paragraph("One"), None], resolution=20))
    process_queue()

    assert Version.objects.get().warnings == ["Scans that OCR could not read: page 1."]


def test_answers_have_the_printed_labels(manager: KeyCaller):
    pages = [paragraph("Preface about ink"), paragraph("Chapter about toner")]
    load(manager, placed_pdf(pages, labels=b"0<</S/r>> 1<</S/D/P(A-)>>"))
    load(manager, placed_pdf(pages))

    passages = manager.get(SEARCH_PATH, collection_names="manuals", query="toner", k=2).json()
    labels = {(hit["page"], hit["page_label"], hit["page_end"], hit["page_label_end"]) for hit in passages}
    assert labels == {(1, "i", 2, "A-1"), (1, None, 2, None)}
