"""Presents documents and passages to the templates as plain text and numbers, which the templates escape."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.template.defaultfilters import filesizeformat

from collections_app.models import Document, Version
from collections_app.models.documents import UNFINISHED, State
from collections_app.search.pipeline import Hit

LONGEST_METADATA = 200
EARLIER = "Searches use the previous version."
# Reasons that lie in the file; as a rule no second try comes to another end, so none is offered.
OF_THE_FILE = ("damaged", "encrypted", "limit_pages")
MEND_IT = "Retrying won't help. Fix the file, upload it again and delete this entry."


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A stretch of a passage."""

    text: str
    is_marked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownHit:
    document_id: str
    generation: int
    number: int
    place: str
    title: str
    pages: str
    headings: str
    metadata: str
    score: str
    parts: tuple[TextSpan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDocument:
    id: str
    title: str
    name_below: str
    state: str
    size: int
    pages: int | None
    chunks: int
    loaded_at: datetime
    metadata: str
    error: str
    advice: str
    note: str
    warnings: tuple[str, ...]
    may_retry: bool
    may_reprocess: bool


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
    """A size that somebody set, which is a round one as a rule.

    >>> limit(32 * 1024 * 1024), limit(1_500_000)
    ('32\\xa0MB', '1.4\\xa0MB')
    """
    return filesizeformat(size).replace(".0", "")


def metadata(given: Mapping[str, Any]) -> str:
    """In one line that is not too long.

    >>> metadata({"type": "manual", "tags": ["a", "b"], "priority": 2})
    'type: manual · tags: ["a", "b"] · priority: 2'
    >>> metadata({}), len(metadata({"a": "x" * 1000}))
    ('', 200)
    """
    values = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in given.items()
    }
    told = " · ".join(f"{name}: {value}" for name, value in values.items())
    return told if len(told) <= LONGEST_METADATA else told[: LONGEST_METADATA - 1] + "…"


def hit(found: Hit) -> ShownHit:
    return ShownHit(
        document_id=found.document_id,
        generation=found.generation,
        number=found.chunk_index,
        place=f"{found.document_id}-{found.chunk_index}",
        title=found.filename or found.doc_id,
        pages=pages(found.page, found.page_end),
        headings=" > ".join(found.heading_path),
        metadata=metadata(found.metadata),
        score=f"{found.score:.2f}",
        parts=tuple(parts(found.page_content, found.highlights)),
    )


def documents(found: QuerySet[Document]) -> QuerySet[Document]:
    """With all that `document` shows, in one statement."""
    searched = Version.objects.filter(document=OuterRef("pk"), is_searched=True)
    return found.select_related("newest").annotate(is_searched=Exists(searched))


def document(found: Document) -> ShownDocument:
    """A document that came through `documents`, as its newest version stands."""
    version = found.newest
    is_at_fault = version is not None and version.error_code in OF_THE_FILE
    state = version.state if version else State.QUEUED.value
    title = found.page_title()
    return ShownDocument(
        id=found.pk,
        title=title,
        # One that the service made says nothing to people.
        name_below=found.doc_id if found.doc_id not in (title, found.pk) else "",
        state=state,
        size=version.size if version else 0,
        pages=version.pages if version else None,
        chunks=version.chunks_count if version else 0,
        loaded_at=version.created_at if version else found.created_at,
        metadata=metadata(version.metadata) if version else "",
        error=version.error if version and state == State.FAILED else "",
        # For those who may load: the others can only be told that it failed.
        advice=MEND_IT if state == State.FAILED and is_at_fault else "",
        # Until a new version is ready the one before is searched, and goes on to be when the new one fails.
        note=EARLIER if state in (*UNFINISHED, State.FAILED) and vars(found)["is_searched"] else "",
        warnings=tuple(map(str, version.warnings)) if version else (),
        may_retry=state == State.FAILED and not is_at_fault,
        may_reprocess=state in (State.READY, State.EMPTY),
    )
