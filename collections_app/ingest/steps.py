"""The steps from bytes to searchable chunks. Each step starts from stored data and can be repeated.

    state                  step       what it stores
    queued, extracting     extract    text, pages, warnings
    splitting              split      chunks and their words
    embedding              embed      one batch of vectors; when none is missing, the version is published

A step ends with a compare-and-set on the lease in the transaction that stores its result, so nothing is stored twice or
in part.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import structlog

from collections_app import extract
from collections_app.chunk import splitter
from collections_app.documents import storage
from collections_app.embed import EmbeddingRefused, EmbeddingUnavailable
from collections_app.ingest import publishing
from collections_app.ingest.time_budget import OutOfTime, check_time_budget
from collections_app.lexical import language_detection, term_statistics
from collections_app.models import ExtractedText, Version
from collections_app.models.documents import VersionState
from collections_app.queue import leases
from collections_app.vectors import chunk_vectors
from system.plain_sql import bound_cursor, run_statement

logger = structlog.get_logger(__name__)

# A batch of vectors arrives well before the lease expires.
MAX_CALL_S = 40.0
MIN_CALL_S = 2.0

COPY_CHUNKS = """
COPY chunk (version_id, collection_id, number, text, heading_path, page, page_end, char_start, char_end) FROM STDIN
"""


def extract_text(version: Version, remaining_s: float) -> None:
    if version.state == VersionState.QUEUED:
        leases.record_progress(version, state=VersionState.EXTRACTING)
    result = _extract_content(version, remaining_s)
    columns = {
        "pages": None if result.page_starts is None else len(result.page_starts),
        "characters": len(result.text),
        "warnings": list(result.warnings),
    }
    headings = [[heading.offset, list(heading.path)] for heading in result.headings]
    stored = {"text": result.text, "page_starts": result.page_starts, "headings": headings}
    with leases.lock_version(version):
        ExtractedText.objects.update_or_create(version=version, defaults=stored)
        leases.record_progress(version, state=VersionState.SPLITTING, **columns)


def _split_into_passages(version: Version, extracted: ExtractedText) -> list[splitter.Passage]:
    try:
        return splitter.split_into_passages(
            extracted.text,
            size=version.collection.chunk_size,
            overlap=version.collection.chunk_overlap,
            page_starts=extracted.page_starts,
            headings=[extract.Heading(offset=offset, path=tuple(path)) for offset, path in extracted.headings],
        )
    except splitter.TooManyPassages as error:
        raise extract.UnreadableFile("limit_chunks", str(error)) from None


def split_text(version: Version, remaining_s: float) -> None:
    check_time_budget(version.characters, remaining_s)
    extracted = ExtractedText.objects.get(version=version)
    passages = _split_into_passages(version, extracted)
    if not passages:
        with leases.lock_version(version):
            _store_passages(version, passages)
            leases.record_progress(version, chunks_count=0)
        publishing.publish_version(version, VersionState.EMPTY, remaining_s)
        return
    # The language of the collection or, if it has none, the one detected for each document.
    configuration = version.collection.text_configuration or language_detection.guess_language(extracted.text)
    with leases.lock_version(version):
        _store_passages(version, passages)
        term_statistics.store_words(version.pk, version.collection_id, configuration)
        leases.record_progress(version, state=VersionState.EMBEDDING, chunks_count=len(passages), embedded_to={})


def embed_batch(version: Version, remaining_s: float) -> None:
    collection = version.collection
    within_s = min(max(remaining_s, MIN_CALL_S), MAX_CALL_S)
    batch = chunk_vectors.embed_next_batch(version, collection.space, within_s) or _next_space_batch(version, within_s)
    if batch is None:
        if not publishing.publish_version(version, VersionState.READY, remaining_s):
            leases.record_progress(version, embedded_to={})  # a chunk before this position lacks its vector: start over
        return
    with leases.lock_version(version):
        chunk_vectors.store_vectors(batch)
        position = chunk_vectors.next_embedded_to(version, batch)
        leases.record_progress(version, error_code="", error="", embedded_to=position)


STEPS: Mapping[str, Callable[[Version, float], None]] = MappingProxyType(
    {
        VersionState.QUEUED: extract_text,
        VersionState.EXTRACTING: extract_text,
        VersionState.SPLITTING: split_text,
        VersionState.EMBEDDING: embed_batch,
    }
)


def _extract_content(version: Version, remaining_s: float) -> extract.ExtractionResult:
    """Raises OutOfTime for a file that takes too long for a waiting caller, but perhaps not for the worker."""
    limits = extract.configured_limits()
    wall_s = min(limits.wall_s, remaining_s)
    try:
        return extract.extract(storage.read_content(version), version.format, replace(limits, wall_s=wall_s))
    except extract.UnreadableFile as error:
        if error.code == "limit_time" and wall_s < limits.wall_s:
            raise OutOfTime from None
        raise


def _next_space_batch(version: Version, within_s: float) -> chunk_vectors.VectorBatch | None:
    """A batch for the space to which the collection changes; the re-embedding fills in what fails here."""
    space = version.collection.next_space
    if space is None:
        return None
    try:
        return chunk_vectors.embed_next_batch(version, space, within_s)
    except (EmbeddingUnavailable, EmbeddingRefused) as error:
        logger.warning("next_space_waits", version=version.pk, kind=type(error).__name__)
        return None


def _store_passages(version: Version, passages: Sequence[splitter.Passage]) -> None:
    # Chunks of an earlier attempt that failed.
    run_statement("DELETE FROM chunk WHERE version_id = %s", [version.pk])
    with bound_cursor() as bound, bound.copy(COPY_CHUNKS) as copy:
        for passage in passages:
            position = (passage.page, passage.page_end, passage.char_start, passage.char_end)
            headings = list(passage.heading_path)
            copy.write_row((version.pk, version.collection_id, passage.number, passage.text, headings, *position))
