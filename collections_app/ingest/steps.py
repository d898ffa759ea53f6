"""The steps from bytes to searchable chunks. Each step starts from stored data and can be repeated.

    state                  step       what it stores
    queued, extracting     extract    text, pages, warnings
    splitting              split      chunks and their words
    embedding              embed      one batch of vectors; when none is missing, the version is published

A step ends with a compare-and-set on the lease in the transaction that stores its result, so nothing is stored twice or
in part. While a caller waits, long steps are left to the worker.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from math import inf

import structlog
from django.db import transaction
from django.db.models.functions import Now

from collections_app import extract
from collections_app.chunk import splitter
from collections_app.documents import deletion, storage
from collections_app.embed import EmbeddingRefused, EmbeddingUnavailable, is_slow
from collections_app.ingest import scanned_pages
from collections_app.lexical import language_detection, term_statistics
from collections_app.models import Document, ExtractedText, Version
from collections_app.models.documents import VersionState
from collections_app.queue import leases
from collections_app.vectors import chunk_vectors, model_choice
from system.plain_sql import fetch_rows, run_statement, server_binding_cursor

logger = structlog.get_logger(__name__)

# Short enough that a batch of vectors is stored before the lease expires.
MAX_EMBEDDING_S = 40.0
MIN_EMBEDDING_S = 2.0
# Chosen: up to this length, splitting and indexing a text fit into a request with its statement timeout of 5 s.
LONG_TEXT_CHARACTERS = 2_000_000
MIN_LONG_TEXT_S = 60.0
NO_TEXT_WARNING = "No text was found in this document, so searches cannot find it."

COPY_CHUNKS = """
COPY chunk (
    version_id, collection_id, number, text, heading_path, page, page_end, page_label, page_label_end, is_ocr,
    char_start, char_end
) FROM STDIN
"""


class OutOfTime(Exception):
    """The request has no time left; the worker continues."""


def extract_text(version: Version, remaining_s: float) -> None:
    partial_text = ExtractedText.objects.filter(version=version).first()
    if version.state == VersionState.EXTRACTING and partial_text and partial_text.scanned_pages.get("waiting"):
        return _read_scanned_page(version, partial_text, remaining_s)
    if version.state == VersionState.QUEUED:
        leases.record_progress(version, state=VersionState.EXTRACTING)
    result = _extract_content(version, remaining_s)
    progress = scanned_pages.plan(result)
    extracted_text = ExtractedText(
        version=version,
        text=result.text,
        page_starts=None if result.page_starts is None else list(result.page_starts),
        headings=[[heading.offset, list(heading.path)] for heading in result.headings],
        page_labels=result.page_labels,
    )
    version.warnings = list(result.warnings)
    version.pages = None if result.page_starts is None else len(result.page_starts)
    _store_text(version, extracted_text, progress)
    return None


def _read_scanned_page(version: Version, extracted_text: ExtractedText, remaining_s: float) -> None:
    """Reads one page in each step, so that other documents get their turn."""
    if remaining_s < inf:
        raise OutOfTime
    progress = scanned_pages.read_next_page(version, extracted_text)
    _store_text(version, extracted_text, progress)


def _store_text(version: Version, extracted_text: ExtractedText, progress: scanned_pages.ScanProgress) -> None:
    extracted_text.scanned_pages = asdict(progress)
    columns = {"pages": version.pages, "characters": len(extracted_text.text), "warnings": version.warnings}
    if progress.waiting:
        state = VersionState.EXTRACTING
    else:
        state = VersionState.SPLITTING
        columns["warnings"] = [*version.warnings, *progress.warnings()]
    with leases.lock_version(version):
        extracted_text.save()
        leases.record_progress(version, state=state, **columns)


def split_text(version: Version, remaining_s: float) -> None:
    check_time_budget(version.characters, remaining_s)
    extracted_text = ExtractedText.objects.get(version=version)
    try:
        passages = splitter.split_into_passages(
            extracted_text.text,
            size=version.collection.chunk_size,
            overlap=version.collection.chunk_overlap,
            page_starts=extracted_text.page_starts,
            headings=[extract.Heading(offset=offset, path=tuple(path)) for offset, path in extracted_text.headings],
        )
    except splitter.TooManyPassages as error:
        raise extract.UnreadableFile("limit_chunks", str(error)) from None
    if not passages:
        with leases.lock_version(version):
            _store_passages(version, passages, extracted_text)
            leases.record_progress(version, chunks_count=0)
        publish_version(version, VersionState.EMPTY, remaining_s)
        return
    # The language of the collection or, if it has none, the one detected for each document.
    configuration = version.collection.text_configuration or language_detection.detect_language(extracted_text.text)
    with leases.lock_version(version):
        _store_passages(version, passages, extracted_text)
        term_statistics.store_words(version.pk, version.collection_id, configuration)
        columns = {"chunks_count": len(passages), "load_settings": version.collection.load_settings}
        leases.record_progress(version, state=VersionState.EMBEDDING, embedded_to={}, **columns)


def embed_batch(version: Version, remaining_s: float) -> None:
    timeout_s = min(max(remaining_s, MIN_EMBEDDING_S), MAX_EMBEDDING_S)
    batch = chunk_vectors.embed_next_batch(version, version.collection.space, timeout_s)
    batch = batch or _next_space_batch(version, timeout_s)
    if batch is None:
        if not publish_version(version, VersionState.READY, remaining_s):
            leases.record_progress(version, embedded_to={})  # a chunk before this position has no vector: start over
        return
    with leases.lock_version(version):
        chunk_vectors.store_vectors(batch)
        position = {**version.embedded_to, str(batch.space.pk): batch.last_position[1]}
        leases.record_progress(version, error_code="", error="", embedded_to=position)


STEPS: Mapping[str, Callable[[Version, float], None]] = {
    VersionState.QUEUED: extract_text,
    VersionState.EXTRACTING: extract_text,
    VersionState.SPLITTING: split_text,
    VersionState.EMBEDDING: embed_batch,
}


def _extract_content(version: Version, remaining_s: float) -> extract.ExtractionResult:
    """Extracts the file; raises OutOfTime if this takes too long for a request, but perhaps not for the worker."""
    limits = extract.configured_limits()
    wall_s = min(limits.wall_s, remaining_s)
    try:
        return extract.extract(storage.read_content(version), version.format, replace(limits, wall_s=wall_s))
    except extract.UnreadableFile as error:
        if error.code == "limit_time" and wall_s < limits.wall_s:
            raise OutOfTime from None
        raise


def _next_space_batch(version: Version, timeout_s: float) -> chunk_vectors.VectorBatch | None:
    """Embeds a batch for the next space of the collection, if it has one. Failures are left to the re-embedding, and
    so are slow models, because the document should be found soon."""
    space = version.collection.next_space
    if space is None or is_slow(space):
        return None
    try:
        return chunk_vectors.embed_next_batch(version, space, timeout_s)
    except (EmbeddingUnavailable, EmbeddingRefused) as error:
        logger.warning("next_space_skipped", version=version.pk, kind=type(error).__name__)
        return None


def _store_passages(version: Version, passages: Sequence[splitter.Passage], extracted_text: ExtractedText) -> None:
    # Delete the chunks of an earlier, failed attempt.
    run_statement("DELETE FROM chunk WHERE version_id = %s", [version.pk])
    labels = extracted_text.page_labels
    ocr_pages = set(extracted_text.scanned_pages.get("read", ()))
    with server_binding_cursor() as cursor, cursor.copy(COPY_CHUNKS) as copy:
        for passage in passages:
            pages = range(passage.page or 0, (passage.page_end or 0) + 1)
            printed_labels = (labels[pages[0] - 1], labels[pages[-1] - 1]) if labels else (None, None)
            is_ocr = not ocr_pages.isdisjoint(pages)
            position = (passage.page, passage.page_end, *printed_labels, is_ocr, passage.char_start, passage.char_end)
            headings = list(passage.heading_path)
            copy.write_row((version.pk, version.collection_id, passage.number, passage.text, headings, *position))


def publish_version(version: Version, state: VersionState, remaining_s: float = inf) -> bool:
    """Makes searches use this version instead of the previous one. Returns False if it was deleted or replaced, or
    lacks vectors because the collection has switched to another space.

    Locks in the order of this app: collection, document, version, term counts.
    """
    with transaction.atomic():
        space_id = _lock_space(version.collection_id)
        document = Document.objects.select_for_update(no_key=True).filter(pk=version.document_id).first()
        if space_id is None or document is None or is_superseded(version, document):
            return False
        if state == VersionState.READY and chunk_vectors.chunks_to_embed([version.pk], space_id, limit=1):
            return False
        with leases.lock_version(version):
            previous_version = Version.objects.filter(document=document, is_searched=True).first()
            # Subtracting its term counts takes as long as adding them did.
            check_time_budget(previous_version.characters if previous_version else 0, remaining_s)
            deletion.lock_term_counts(version.collection_id)
            if previous_version is not None:
                deletion.hide_from_searches(previous_version)
            if state == VersionState.READY:
                term_statistics.change_term_counts(version.pk, version.collection_id, 1)
                model_choice.review_model(version.collection_id)
            warnings = [*version.warnings, NO_TEXT_WARNING] if state == VersionState.EMPTY else version.warnings
            leases.finish_version(
                version, state, is_searched=True, ready_at=Now(), error_code="", error="", warnings=warnings
            )
            Document.objects.filter(pk=document.pk).update(updated_at=Now())
    if previous_version is not None:
        deletion.purge_or_schedule(previous_version)
    return True


def is_superseded(version: Version, document: Document) -> bool:
    return document.deleted_at is not None or document.newest_id != version.pk


def _lock_space(collection_id: str) -> int | None:
    """Returns the space that searches use, and prevents a switch until the end of the transaction."""
    # Not FOR SHARE, because the transaction may choose another model.
    query = "SELECT space_id FROM document_collection WHERE sys_id = %s AND deleted_at IS NULL FOR NO KEY UPDATE"
    return next((space_id for (space_id,) in fetch_rows(query, [collection_id])), None)


def check_time_budget(characters: int, remaining_s: float) -> None:
    """Raises OutOfTime if a text of this length may take longer than the remaining time.

    >>> check_time_budget(LONG_TEXT_CHARACTERS, 20.0), check_time_budget(LONG_TEXT_CHARACTERS + 1, float("inf"))
    (None, None)
    >>> check_time_budget(LONG_TEXT_CHARACTERS + 1, 20.0)
    Traceback (most recent call last):
    collections_app.ingest.steps.OutOfTime
    """
    if characters > LONG_TEXT_CHARACTERS and remaining_s < MIN_LONG_TEXT_S:
        raise OutOfTime
