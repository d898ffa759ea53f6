"""The text around a passage: some passages before and after it."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models.functions import Substr

from collections_app.models import Document, ExtractedText, Version
from collections_app.pages import presenters
from system.errors import NotFound

STEP = 1
MOST = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageContext:
    title: str
    pages: str
    headings: str
    before: str
    passage: str
    after: str
    is_whole: bool


def of(document: Document, generation: int, number: int, count: int) -> PassageContext:
    """With up to `count` passages on each side, as far as there are.

    Read from the text and not put together from the passages: these overlap, and are without the white space between.
    """
    version = Version.objects.filter(document=document, is_searched=True).first()
    if version is None or version.generation != generation:
        raise NotFound("This document was loaded again since. Search again to see what it says now.")
    near = list(version.chunks.filter(number__gte=number - count, number__lte=number + count).order_by("number"))
    passage = next((each for each in near if each.number == number), None)
    if passage is None:
        raise NotFound("The document has no such passage.")
    first, last = near[0], near[-1]
    before = Substr("text", first.char_start + 1, passage.char_start - first.char_start)
    after = Substr("text", passage.char_end + 1, last.char_end - passage.char_end)
    texts = ExtractedText.objects.filter(version=version).values_list(before, after).first()
    return PassageContext(
        title=version.filename or document.doc_id,
        pages=presenters.pages(first.page, last.page_end),
        headings=" > ".join(passage.heading_path),
        before=texts[0] if texts else "",
        passage=passage.text,
        after=texts[1] if texts else "",
        is_whole=first.number == 0 and last.number == version.chunks_count - 1,
    )
