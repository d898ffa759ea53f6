"""A passage with the text before and after it."""

from typing import Any

from django.db.models.functions import Substr

from collections_app.models import Document, ExtractedText, Version
from collections_app.pages import presenters
from system.errors import NotFound

FIRST_CONTEXT_COUNT = 1
MAX_CONTEXT_COUNT = 32


def read_context(document: Document, generation: int, number: int, count: int) -> dict[str, Any]:
    """The passage with up to `count` passages on each side.

    Read from the stored text, because passages overlap and lack the white space between them.
    """
    version = Version.objects.filter(document=document, is_searched=True).first()
    if version is None or version.generation != generation:
        raise NotFound("This document has changed. Search again to see its current content.")
    nearby = list(version.chunks.filter(number__gte=number - count, number__lte=number + count).order_by("number"))
    passage = next((chunk for chunk in nearby if chunk.number == number), None)
    if passage is None:
        raise NotFound("The document does not contain this passage.")
    first, last = nearby[0], nearby[-1]
    before = Substr("text", first.char_start + 1, passage.char_start - first.char_start)
    after = Substr("text", passage.char_end + 1, last.char_end - passage.char_end)
    texts = ExtractedText.objects.filter(version=version).values_list(before, after).first()
    return {
        "title": version.filename or document.doc_id,
        "pages": presenters.page_range(first.page, last.page_end),
        "headings": " > ".join(passage.heading_path),
        "before": texts[0] if texts else "",
        "passage": passage.text,
        "after": texts[1] if texts else "",
        "is_whole": first.number == 0 and last.number == version.chunks_count - 1,
    }
