"""Prepares documents and passages for templates, as plain text and numbers that the templates escape."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db.models.functions import Substr
from django.template.defaultfilters import filesizeformat

from collections_app.models import Document, ExtractedText, Version
from collections_app.models.documents import UNFINISHED_STATES, VersionState
from collections_app.search.passages import Hit
from system.errors import NotFound

MAX_METADATA_LENGTH = 200
DEFAULT_CONTEXT_COUNT = 1
MAX_CONTEXT_COUNT = 32
PREVIOUS_VERSION_NOTE = "Searches use the previous version."
# Errors of the file itself, for which a retry is not offered because it would fail again.
FILE_ERROR_CODES = ("damaged", "encrypted", "limit_pages")
FIX_FILE_ADVICE = "Retrying won't help. Fix the file, upload it again and delete this entry."


def split_at_highlights(text: str, highlights: Iterable[Sequence[int]]) -> Iterator[tuple[str, bool]]:
    """Splits a text where its highlights begin and end; yields each part and whether it is highlighted.

    >>> list(split_at_highlights("Reset the <b>password", [(10, 21), (0, 5)]))
    [('Reset', True), (' the ', False), ('<b>password', True)]
    >>> [part for part, _ in split_at_highlights("overlap", [(0, 4), (2, 6), (9, 12)])]
    ['over', 'la', 'p']
    """
    position = 0
    for start, end in sorted((start, end) for start, end in highlights):
        start, end = max(start, position), min(end, len(text))
        if start >= end:
            continue
        if start > position:
            yield text[position:start], False
        yield text[start:end], True
        position = end
    if position < len(text):
        yield text[position:], False


def page_range(first: int | None, last: int | None) -> str:
    """
    >>> page_range(3, 3), page_range(3, 4), page_range(None, None)
    ('page 3', 'pages 3 to 4', '')
    """
    if first is None:
        return ""
    return f"pages {first} to {last}" if last is not None and last > first else f"page {first}"


def size_text(size: int) -> str:
    """Formats a configured size, which is usually a round number.

    >>> size_text(32 * 1024 * 1024), size_text(1_500_000)
    ('32\\xa0MB', '1.4\\xa0MB')
    """
    return filesizeformat(size).replace(".0", "")


def metadata_line(metadata: Mapping[str, Any]) -> str:
    """Formats metadata in one line of limited length.

    >>> metadata_line({"type": "manual", "tags": ["a", "b"], "priority": 2})
    'type: manual · tags: ["a", "b"] · priority: 2'
    >>> metadata_line({}), len(metadata_line({"a": "x" * 1000}))
    ('', 200)
    """
    values = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in metadata.items()
    }
    line = " · ".join(f"{name}: {value}" for name, value in values.items())
    return line if len(line) <= MAX_METADATA_LENGTH else line[: MAX_METADATA_LENGTH - 1] + "…"


def hit_context(hit: Hit) -> dict[str, Any]:
    return {
        "document_id": hit.document_id,
        "generation": hit.generation,
        "number": hit.chunk_index,
        "passage_id": f"{hit.document_id}-{hit.chunk_index}",
        "title": hit.filename or hit.doc_id,
        "pages": page_range(hit.page, hit.page_end),
        "headings": " > ".join(hit.heading_path),
        "metadata": metadata_line(hit.metadata),
        "score": f"{hit.score:.2f}",
        "parts": tuple(split_at_highlights(hit.page_content, hit.highlights)),
    }


def passage_context(document: Document, generation: int, number: int, count: int) -> dict[str, Any]:
    """Returns a passage with the text of up to `count` passages on each side.

    The text is read from the document, because passages overlap and lack the white space between them.
    """
    version = Version.objects.filter(document=document, is_searched=True).first()
    if version is None or version.generation != generation:
        raise NotFound("This document has changed. Search again to see its current content.")
    chunks = list(version.chunks.filter(number__gte=number - count, number__lte=number + count).order_by("number"))
    passage = next((chunk for chunk in chunks if chunk.number == number), None)
    if passage is None:
        raise NotFound("The document does not contain this passage.")
    first, last = chunks[0], chunks[-1]
    text_before = Substr("text", first.char_start + 1, passage.char_start - first.char_start)
    text_after = Substr("text", passage.char_end + 1, last.char_end - passage.char_end)
    texts = ExtractedText.objects.filter(version=version).values_list(text_before, text_after).first()
    return {
        "title": version.filename or document.doc_id,
        "pages": page_range(first.page, last.page_end),
        "headings": " > ".join(passage.heading_path),
        "before": texts[0] if texts else "",
        "passage": passage.text,
        "after": texts[1] if texts else "",
        "is_whole": first.number == 0 and last.number == version.chunks_count - 1,
    }


def document_context(document: Document, is_searched: bool) -> dict[str, Any]:
    version = document.displayed_version()
    is_file_error = version.error_code in FILE_ERROR_CODES
    has_failed = version.state == VersionState.FAILED
    is_unready = has_failed or version.state in UNFINISHED_STATES
    title = document.page_title()
    return {
        "id": document.pk,
        "title": title,
        # Omitted if it is generated, because it then means nothing to users.
        "secondary_name": document.doc_id if document.doc_id not in (title, document.pk) else "",
        "state": version.state,
        "size": version.size,
        "pages": version.pages,
        "chunks": version.chunks_count,
        "loaded_at": version.created_at,
        "metadata": metadata_line(version.metadata),
        "error": version.error if has_failed else "",
        # Shown to writers only; other users cannot fix the file.
        "advice": FIX_FILE_ADVICE if has_failed and is_file_error else "",
        # Searches use the previous version until the new one is ready, even if that fails.
        "note": PREVIOUS_VERSION_NOTE if is_unready and is_searched else "",
        "warnings": tuple(map(str, version.warnings)),
        "may_retry": has_failed and not is_file_error,
        "may_reprocess": version.state in (VersionState.READY, VersionState.EMPTY),
    }
