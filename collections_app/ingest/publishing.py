"""Publishes a version: it replaces the previous one for searches in one transaction."""

from math import inf

from django.db import transaction
from django.db.models.functions import Now

from collections_app.documents import deletion
from collections_app.ingest.time_budget import check_time_budget
from collections_app.lexical import term_statistics
from collections_app.models import Document, Version
from collections_app.models.documents import VersionState
from collections_app.queue import leases
from collections_app.vectors import chunk_vectors
from system.plain_sql import fetch_rows

NO_TEXT_WARNING = "No text was found in this document, so searches cannot find it."


def publish_version(version: Version, state: VersionState, remaining_s: float = inf) -> bool:
    """Returns False if the version was deleted or replaced, or the collection has changed to another space.

    Locks in the order of this app: collection, document, version, term counts.
    """
    with transaction.atomic():
        space_id = _lock_space(version.collection_id)
        document = Document.objects.select_for_update(no_key=True).filter(pk=version.document_id).first()
        if space_id is None or document is None or is_superseded(version, document):
            return False
        if state == VersionState.READY and chunk_vectors.find_missing([version.pk], space_id, limit=1):
            return False
        with leases.lock_version(version):
            previous = Version.objects.filter(document=document, is_searched=True).first()
            # Subtracting its term counts takes as long as adding them did.
            check_time_budget(previous.characters if previous else 0, remaining_s)
            deletion.lock_term_counts(version.collection_id)
            if previous is not None:
                deletion.hide_from_searches(previous)
            if state == VersionState.READY:
                term_statistics.change_counts(version.pk, version.collection_id, 1)
            warnings = [*version.warnings, NO_TEXT_WARNING] if state == VersionState.EMPTY else version.warnings
            leases.finish_version(
                version, state, is_searched=True, ready_at=Now(), error_code="", error="", warnings=warnings
            )
            Document.objects.filter(pk=document.pk).update(updated_at=Now())
    if previous is not None:
        deletion.purge_or_schedule(previous)
    return True


def is_superseded(version: Version, document: Document) -> bool:
    """Whether the document was deleted or has a newer version."""
    return document.deleted_at is not None or document.newest_id != version.pk


def _lock_space(collection_id: str) -> int | None:
    """The space that searches use, locked until the end of the transaction."""
    query = "SELECT space_id FROM document_collection WHERE sys_id = %s AND deleted_at IS NULL FOR SHARE"
    return next((space_id for (space_id,) in fetch_rows(query, [collection_id])), None)
