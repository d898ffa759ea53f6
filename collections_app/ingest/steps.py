"""The steps from bytes to searchable chunks. Each starts from stored data and can be repeated.

    state                  step       what it stores
    queued, extracting     extract    text, pages, warnings
    splitting              split      chunks and their words
    embedding              embed      vectors, a batch each time; when none is missing: ready, and searches see it

Each ends by a compare-and-set on the lease, in the transaction of what it stores: nothing is stored twice or by halves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import structlog
from django.db import connection

from collections_app import extract
from collections_app.chunk import splitter
from collections_app.documents import storage
from collections_app.embed import EmbeddingRefused, EmbeddingUnavailable
from collections_app.ingest import publishing
from collections_app.ingest.time_budget import OutOfTime, check_time_budget
from collections_app.lexical import language_detection, term_statistics
from collections_app.models import ExtractedText, Version
from collections_app.models.documents import State
from collections_app.queue import leases
from collections_app.vectors import chunk_vectors

logger = structlog.get_logger(__name__)

# A batch of vectors is there well before the lease runs out.
LONGEST_CALL_S = 40.0
SHORTEST_CALL_S = 2.0

COPY_CHUNKS = """
COPY chunk (version_id, collection_id, number, text, heading_path, page, page_end, char_start, char_end) FROM STDIN
"""


def extract_text(version: Version, left_s: float) -> None:
    if version.state == State.QUEUED:
        leases.advance(version, state=State.EXTRACTING)
    found = _extracted(version, left_s)
    facts = {
        "pages": None if found.page_starts is None else len(found.page_starts),
        "characters": len(found.text),
        "warnings": list(found.warnings),
    }
    headings = [[each.offset, list(each.path)] for each in found.headings]
    stored = {"text": found.text, "page_starts": found.page_starts, "headings": headings}
    with leases.fenced(version):
        ExtractedText.objects.update_or_create(version=version, defaults=stored)
        leases.advance(version, state=State.SPLITTING, **facts)


def _passages(version: Version, extracted: ExtractedText) -> list[splitter.Passage]:
    try:
        return splitter.split(
            extracted.text,
            size=version.collection.chunk_size,
            overlap=version.collection.chunk_overlap,
            page_starts=extracted.page_starts,
            headings=[extract.Heading(offset=offset, path=tuple(path)) for offset, path in extracted.headings],
        )
    except splitter.TooManyPassages as error:
        raise extract.Unreadable("limit_chunks", str(error)) from None


def split_text(version: Version, left_s: float) -> None:
    check_time_budget(version.characters, left_s)
    extracted = ExtractedText.objects.get(version=version)
    passages = _passages(version, extracted)
    if not passages:
        with leases.fenced(version):
            _store_passages(version, passages)
            leases.advance(version, chunks_count=0)
        publishing.publish(version, State.EMPTY, left_s)
        return
    # What is chosen for the collection, or each document's own.
    configuration = version.collection.text_configuration or language_detection.guess(extracted.text)
    with leases.fenced(version):
        _store_passages(version, passages)
        term_statistics.store_words(version.pk, version.collection_id, configuration)
        leases.advance(version, state=State.EMBEDDING, chunks_count=len(passages), embedded_to={})


def embed_batch(version: Version, left_s: float) -> None:
    collection = version.collection
    within_s = min(max(left_s, SHORTEST_CALL_S), LONGEST_CALL_S)
    made = chunk_vectors.make(version, collection.space, within_s) or _made_ahead(version, within_s)
    if made is None:
        if not publishing.publish(version, State.READY, left_s):
            leases.advance(version, embedded_to={})  # what it found lacking is behind: look from the beginning
        return
    with leases.fenced(version):
        chunk_vectors.store(made)
        reached = chunk_vectors.embedded_to_with(version, made)
        leases.advance(version, error_code="", error="", embedded_to=reached)


STEPS: Mapping[str, Callable[[Version, float], None]] = MappingProxyType(
    {
        State.QUEUED: extract_text,
        State.EXTRACTING: extract_text,
        State.SPLITTING: split_text,
        State.EMBEDDING: embed_batch,
    }
)


def _extracted(version: Version, left_s: float) -> extract.Extracted:
    """A file that is too slow for a caller who waits is not too slow for ever."""
    limits = extract.configured_limits()
    wall_s = min(limits.wall_s, left_s)
    try:
        return extract.extract(storage.content(version), version.format, replace(limits, wall_s=wall_s))
    except extract.Unreadable as error:
        if error.code == "limit_time" and wall_s < limits.wall_s:
            raise OutOfTime from None
        raise


def _made_ahead(version: Version, within_s: float) -> chunk_vectors.Made | None:
    """For the space that the collection is going over to; what cannot be had now is filled in later."""
    space = version.collection.next_space
    if space is None:
        return None
    try:
        return chunk_vectors.make(version, space, within_s)
    except (EmbeddingUnavailable, EmbeddingRefused) as error:
        logger.warning("next_space_waits", version=version.pk, kind=type(error).__name__)
        return None


def _store_passages(version: Version, passages: Sequence[splitter.Passage]) -> None:
    with connection.cursor() as cursor:
        # Those of a former attempt, before it failed.
        cursor.execute("DELETE FROM chunk WHERE version_id = %s", [version.pk])
    with storage.bound_cursor() as bound, bound.copy(COPY_CHUNKS) as copy:
        for each in passages:
            places = (each.page, each.page_end, each.char_start, each.char_end)
            copy.write_row(
                (version.pk, version.collection_id, each.number, each.text, list(each.heading_path), *places)
            )
