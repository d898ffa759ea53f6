"""Reads the scanned pages of a document one by one, and inserts their text into the extracted text."""

from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from collections_app.documents import storage
from collections_app.extract import ExtractionResult, ocr
from collections_app.extract.parsers.pdf.lines import page_ranges
from collections_app.models import ExtractedText, Version

PAGE_GAP = "\n\n"


@dataclass(kw_only=True)
class ScanProgress:
    """The numbers of scanned pages by what has become of them. Stored with the text."""

    waiting: list[int] = field(default_factory=list)
    read: list[int] = field(default_factory=list)
    # Pages without legible text, and pages that exceeded a limit.
    empty: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    hint: str = ""

    def warnings(self) -> list[str]:
        """
        >>> ScanProgress(read=[1, 2], failed=[3]).warnings()
        ['Read from scans by OCR, which can make mistakes: pages 1-2.', 'Scans that OCR could not read: page 3.']
        """
        skipped_reason = self.hint or "More pages are scans than SVC_OCR_MAX_PAGES allows."
        lists = (
            ("Read from scans by OCR, which can make mistakes: ", self.read, ""),
            ("No legible text on these scans: ", self.empty, ""),
            ("Scans that OCR could not read: ", self.failed, ""),
            ("Scans whose text was not read: ", self.skipped, f" {skipped_reason}"),
        )
        return [f"{label}{page_ranges(numbers)}.{reason}" for label, numbers, reason in lists if numbers]


def plan(result: ExtractionResult) -> ScanProgress:
    """Returns which scanned pages of a document will be read."""
    if not ocr.is_available():
        return ScanProgress(skipped=list(result.scanned_pages), hint=ocr.INSTALL_HINT)
    limit = settings.COLLECTIONS["ocr_max_pages"]
    return ScanProgress(waiting=list(result.scanned_pages[:limit]), skipped=list(result.scanned_pages[limit:]))


def read_next_page(version: Version, extracted_text: ExtractedText) -> ScanProgress:
    """Reads the next page into the extracted text, which is not saved."""
    progress = ScanProgress(**extracted_text.scanned_pages)
    number = progress.waiting.pop(0)
    try:
        text = ocr.read_page(storage.read_content(version), number)
    except ocr.OcrUnavailable as error:
        progress.skipped = sorted([number, *progress.waiting, *progress.skipped])
        progress.waiting, progress.hint = [], str(error)
        return progress
    is_too_long = text is not None and len(text) + len(extracted_text.text) > settings.COLLECTIONS["max_characters"]
    if text is None or is_too_long:
        progress.failed.append(number)
    elif text:
        progress.read.append(number)
        insert_page(extracted_text, number, text)
    else:
        progress.empty.append(number)
    return progress


def insert_page(extracted_text: ExtractedText, number: int, text: str) -> None:
    """Inserts the text of a page, and moves the pages and headings after it.

    >>> extracted = ExtractedText(text="A\\n\\nC", page_starts=[0, 3, 3], headings=[[3, ["C"]]])
    >>> insert_page(extracted, 2, "B")
    >>> extracted.text, extracted.page_starts, extracted.headings
    ('A\\n\\nB\\n\\nC', [0, 3, 6], [[6, ['C']]])
    """
    old_text: str = extracted_text.text
    starts: list[int] = extracted_text.page_starts or []
    start = starts[number - 1]
    is_last = start == len(old_text)
    gap_before = PAGE_GAP if is_last and old_text else ""
    inserted = gap_before + text + ("" if is_last else PAGE_GAP)
    extracted_text.text = old_text[:start] + inserted + old_text[start:]
    starts[number - 1] += len(gap_before)
    for index in range(number, len(starts)):
        starts[index] += len(inserted)
    headings: list[Any] = extracted_text.headings
    extracted_text.headings = [
        [offset + len(inserted) if offset >= start and not is_last else offset, path] for offset, path in headings
    ]
