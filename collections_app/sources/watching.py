"""Compares a folder with the files that were loaded from it: loads new and changed files, deletes vanished documents.

A document is deleted only if two scans, at least an hour apart, miss its file. Nothing is changed if the folder is
missing, cannot be read, is on another device than before, or has lost more than half of its files.
"""

import time
from collections.abc import Container, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet

from collections_app import extract
from collections_app.documents import deletion
from collections_app.models import Document, Source, SourceFile
from collections_app.queue.leases import CURRENT_TIME
from collections_app.sources import folder, loads
from collections_app.sources.errors import RefreshInterrupted, SourceFailed
from collections_app.sources.folder import FolderListing
from system.background import shutdown
from system.errors import NotFound, UnsupportedMediaType

DELETION_DELAY = timedelta(hours=1)
# After this time, other sources have their turn.
SCAN_BUDGET_S = 30.0
MAX_PROBLEMS = 100
MAX_PROBLEM_LENGTH = 300
OTHER_DEVICE = "The folder is on another device than before. Nothing was changed."


def scan_folder(source: Source) -> dict[str, Any]:
    """Updates the documents of the folder; returns the columns to store."""
    with folder.open_folder(source.address) as descriptor:
        listing = folder.list_files(descriptor)
        loaded_files = {file.path: file for file in source.files.all()}
        missing_files = [file.pk for path, file in loaded_files.items() if not listing.contains(path)]
        if source.device not in (None, listing.device):
            raise SourceFailed(OTHER_DEVICE)
        if 2 * len(missing_files) > len(loaded_files):
            counts = f"{len(missing_files)} of {len(loaded_files)} files are missing"
            raise SourceFailed(f"{counts} from the folder, which is more than half. Nothing was changed.")
        # Stored before the first file, so that a killed worker does not lose it.
        Source.objects.filter(pk=source.pk, lease_token=source.lease_token).update(device=listing.device)
        source.files.filter(missing_since__isnull=False).exclude(pk__in=missing_files).update(missing_since=None)
        page_ids = set(source.collection.sources.filter(kind=Source.Kind.PAGE).values_list("doc_id", flat=True))
        _load_changed_files(source, descriptor, listing, loaded_files, page_ids)
    _delete_vanished(source, source.files.filter(pk__in=missing_files), page_ids)
    return {"problems": _problem_list(listing.problems)}


def _load_changed_files(
    source: Source,
    descriptor: int,
    listing: FolderListing,
    loaded_files: Mapping[str, SourceFile],
    page_ids: Container[str],
) -> None:
    """Loads files that are new or changed, or whose document was deleted. Adds those that failed to the problems."""
    deadline = time.monotonic() + SCAN_BUDGET_S
    documents = Document.objects.filter(collection=source.collection_id, deleted_at__isnull=True)
    existing_ids = set(documents.filter(doc_id__in=list(listing.files)).values_list("doc_id", flat=True))
    for doc_id, (path, fingerprint) in sorted(listing.files.items()):
        file = loaded_files.get(doc_id)
        if file is not None and file.fingerprint == fingerprint and (file.problem or doc_id in existing_ids):
            listing.problems |= {doc_id: file.problem} if file.problem else {}
            continue
        values = {"fingerprint": fingerprint, "problem": ""}
        try:
            if doc_id in page_ids:
                raise SourceFailed("A web page of this collection has this document ID.")
            content = folder.read_file(descriptor, path, listing.device)
            filename = path.rpartition("/")[2]
            loads.load(source, doc_id, content, format=extract.recognize_format(content, filename), filename=filename)
        except UnsupportedMediaType as error:
            values["problem"] = listing.problems[doc_id] = error.message[:MAX_PROBLEM_LENGTH]
            # A file with a problem has no document. The document of this file is deleted with it.
            if file is not None and not file.problem:
                continue
        except SourceFailed as error:
            listing.problems[doc_id] = str(error)
            continue
        SourceFile.objects.update_or_create(source_id=source.pk, path=doc_id, defaults=values)
        # Checked after a file, so that every turn loads at least one.
        if time.monotonic() > deadline or shutdown.has_begun():
            raise RefreshInterrupted


def _delete_vanished(source: Source, missing_files: QuerySet[SourceFile], page_ids: Container[str]) -> None:
    for file in missing_files.filter(missing_since__lte=CURRENT_TIME - DELETION_DELAY):
        if not file.problem and file.path not in page_ids:
            with suppress(NotFound):  # a user has deleted the document
                deletion.delete_document(source.collection, file.path)
        file.delete()
    missing_files.filter(missing_since__isnull=True).update(missing_since=CURRENT_TIME)


def _problem_list(problems: Mapping[str, str]) -> list[dict[str, str]]:
    rows = [{"path": path, "message": message} for path, message in sorted(problems.items())]
    if len(rows) > MAX_PROBLEMS:
        rest = f"{len(rows) - MAX_PROBLEMS} more files were not loaded."
        rows = [*rows[:MAX_PROBLEMS], {"path": "…", "message": rest}]
    return rows
