"""Presents documents and passages to the templates as plain text and numbers, which the templates escape."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.template.defaultfilters import filesizeformat

from collections_app.models import Document, Version
from collections_app.models.documents import UNFINISHED, State
from collections_app.search.pipeline import Hit

MAX_METADATA_LENGTH = 200
EARLIER = "Searches use the previous version."
# Errors of the file itself, for which a retry is not offered because it would fail again.
FILE_ERRORS = ("damaged", "encrypted", "limit_pages")
FIX_FILE = "Retrying won't help. Fix the file, upload it again and delete this entry."


@dataclass(frozen=True, slots=True)
class TextSpan:
    text: str
    is_marked: bool


def parts(text: str, highlights: Iterable[Sequence[int]]) -> Iterator[TextSpan]:
    """The text cut where its highlights begin and end.

    >>> [(part.text, part.is_marked) for part in parts("Reset the <b>password", [(10, 21), (0, 5)])]
    [('Reset', True), (' the ', False), ('<b>password', True)]
    >>> [part.text for part in parts("overlap", [(0, 4), (2, 6), (9, 12)])]
    ['over', 'la', 'p']
    """
    at = 0
    for start, end in sorted((start, end) for start, end in highlights):
        start, end = max(start, at), min(end, len(text))
        if start >= end:
            continue
        if start > at:
            yield TextSpan(text[at:start], False)
        yield TextSpan(text[start:end], True)
        at = end
    if at < len(text):
        yield TextSpan(text[at:], False)


def pages(first: int | None, last: int | None) -> str:
    """
    >>> pages(3, 3), pages(3, 4), pages(None, None)
    ('page 3', 'pages 3 to 4', '')
    """
    if first is None:
        return ""
    return f"pages {first} to {last}" if last is not None and last > first else f"page {first}"


def limit(size: int) -> str:
    """A configured size, which is usually a round number.

    >>> limit(32 * 1024 * 1024), limit(1_500_000)
    ('32\\xa0MB', '1.4\\xa0MB')
    """
    return filesizeformat(size).replace(".0", "")


def metadata(stored: Mapping[str, Any]) -> str:
    """The metadata in one line of limited length.

    >>> metadata({"type": "manual", "tags": ["a", "b"], "priority": 2})
    'type: manual · tags: ["a", "b"] · priority: 2'
    >>> metadata({}), len(metadata({"a": "x" * 1000}))
    ('', 200)
    """
    values = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in stored.items()
    }
    line = " · ".join(f"{name}: {value}" for name, value in values.items())
    return line if len(line) <= MAX_METADATA_LENGTH else line[: MAX_METADATA_LENGTH - 1] + "…"


def hit(result: Hit) -> dict[str, Any]:
    return {
        "document_id": result.document_id,
        "generation": result.generation,
        "number": result.chunk_index,
        "place": f"{result.document_id}-{result.chunk_index}",
        "title": result.filename or result.doc_id,
        "pages": pages(result.page, result.page_end),
        "headings": " > ".join(result.heading_path),
        "metadata": metadata(result.metadata),
        "score": f"{result.score:.2f}",
        "parts": tuple(parts(result.page_content, result.highlights)),
    }


def documents(rows: QuerySet[Document]) -> QuerySet[Document]:
    """The documents with everything that `document` needs, in one statement."""
    searched = Version.objects.filter(document=OuterRef("pk"), is_searched=True)
    return rows.select_related("newest").annotate(is_searched=Exists(searched))


def document(row: Document) -> dict[str, Any]:
    """A document from `documents`, with the state of its newest version."""
    version = row.newest
    is_at_fault = version is not None and version.error_code in FILE_ERRORS
    state = version.state if version else State.QUEUED.value
    title = row.page_title()
    return {
        "id": row.pk,
        "title": title,
        # A generated id means nothing to people.
        "name_below": row.doc_id if row.doc_id not in (title, row.pk) else "",
        "state": state,
        "size": version.size if version else 0,
        "pages": version.pages if version else None,
        "chunks": version.chunks_count if version else 0,
        "loaded_at": version.created_at if version else row.created_at,
        "metadata": metadata(version.metadata) if version else "",
        "error": version.error if version and state == State.FAILED else "",
        # For writers; other users cannot do anything about it.
        "advice": FIX_FILE if state == State.FAILED and is_at_fault else "",
        # The previous version is searched until the new one is ready, also if the new one fails.
        "note": EARLIER if state in (*UNFINISHED, State.FAILED) and vars(row)["is_searched"] else "",
        "warnings": tuple(map(str, version.warnings)) if version else (),
        "may_retry": state == State.FAILED and not is_at_fault,
        "may_reprocess": state in (State.READY, State.EMPTY),
    }
