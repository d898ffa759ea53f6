"""What the owner of an import can do: start it, read its state, run it again, undo, cancel and delete it."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from system.errors import Conflict, TooManyRequests
from system.http.uploads import clean_filename
from system.records import acting_user
from tableapi.access.caller_view import record_not_found
from tableapi.models.imports import Import, ImportPiece
from tableapi.query.parameters import RawParameters, parse_number
from tableapi.read.context import Caller
from tableapi.read.entry_pages import format_time

from . import options, queue, steps, storage
from .options import ImportOptions
from .queue import State
from .storage import Kind

MAX_UNFINISHED = 10
# How long a finished import can be read and undone.
RETENTION_PERIOD = timedelta(days=7)
DEFAULT_ERRORS = 20
MAX_RECENT = 20
REQUEST_BUDGET_S = 5.0
# Reading a larger file may take longer than a request.
MAX_BYTES_IN_REQUEST = 256 * 1024
REPEATABLE_STATES = (State.DONE, State.FAILED, State.CANCELLED)
SHOWN_COUNTS = ("created", "updated", "unchanged", "failed")
SHOWN_FORMAT = ("encoding", "delimiter", "sheet", "sheets", "date_order", "decimal")


def start(
    caller: Caller,
    table: str,
    *,
    pieces: Iterable[bytes],
    size: int,
    file_name: str,
    format: str,
    import_options: ImportOptions,
) -> Import:
    """Store the file and the options durably. The caller then processes the import, or wakes the worker."""
    if queue.is_queue_full(caller.user_id, MAX_UNFINISHED):
        raise TooManyRequests(f"{MAX_UNFINISHED} of your imports are not finished. Try again later.")
    roles = acting_user.role_names()
    with transaction.atomic():
        job = Import.objects.create(
            user_id=caller.user_id,
            roles=None if roles is None else sorted(roles),
            table=table,
            file_name=clean_filename(file_name),
            format=format,
            size=size,
            options=asdict(import_options),
        )
        storage.add_pieces(job, Kind.FILE, pieces)
    return job


def process_now(job: Import) -> None:
    """Process a small import; leave others, and the rest, to the worker."""
    if job.size <= MAX_BYTES_IN_REQUEST and (token := queue.take(job)):
        steps.process(job.pk, token, deadline=time.monotonic() + REQUEST_BUDGET_S, in_request=True)
    job.refresh_from_db()
    if is_active(job):
        queue.wake()


def recent(caller: Caller, table: str) -> Sequence[Import]:
    """The caller's imports of the last days, newest first."""
    return list(Import.objects.filter(user=caller.user_id, table=table).order_by("-pk")[:MAX_RECENT])


def find(caller: Caller, table: str, import_id: str) -> Import:
    """The caller's own import; the same 404 for all others."""
    job = Import.objects.filter(pk=import_id, user=caller.user_id, table=table).first()
    if job is None:
        raise record_not_found()
    return job


def run_again(caller: Caller, table: str, import_id: str, import_options: ImportOptions) -> Import:
    """Run a dry run, or an import that wrote nothing, with other options and without sending the file again."""
    job = find(caller, table, import_id)
    options.check(caller, table, import_options)
    old_options = ImportOptions.of(job.options)
    is_kept = ImportPiece.objects.filter(of_import=job, kind=Kind.FILE).exists()
    if not is_kept or ImportPiece.objects.filter(of_import=job, kind=Kind.UNDO).exists():
        raise Conflict("This import has written records. Send the file again.", code="not_repeatable")
    reset: dict[str, Any] = {"options": asdict(import_options), "error": None, "counts": {}, "next_piece": 0}
    if old_options.reading != import_options.reading:
        reset["piece_count"] = 0
    with transaction.atomic():
        _restart(job, State.READING, **reset)
        storage.delete_pieces(job, Kind.ERRORS)
    return job


def undo(caller: Caller, table: str, import_id: str) -> Import:
    job = find(caller, table, import_id)
    if not ImportPiece.objects.filter(of_import=job, kind=Kind.UNDO).exists():
        raise Conflict("This import has written nothing that can be undone.", code="not_undoable")
    _restart(job, State.UNDOING, error=None)
    return job


def _restart(job: Import, state: State, **columns: Any) -> None:
    """Put a finished import back into the queue."""
    finished = Import.objects.filter(pk=job.pk, state__in=REPEATABLE_STATES)
    if not finished.update(state=state, finished_at=None, next_at=Now(), attempt=0, **columns):
        raise Conflict("The import is not finished, or was undone.", code="not_finished")


def cancel_or_delete(caller: Caller, table: str, import_id: str) -> dict[str, Any]:
    """Stop an active import; what it wrote stays and can be undone. Delete a finished one."""
    job = find(caller, table, import_id)
    active = Import.objects.filter(pk=job.pk, state__in=queue.ACTIVE_STATES)
    if not active.update(state=State.CANCELLED, finished_at=Now(), **queue.NO_LEASE):
        Import.objects.filter(pk=job.pk)._raw_delete("default")  # the database deletes its pieces
    return {"sys_id": job.pk}


def delete_expired() -> None:
    Import.objects.filter(finished_at__lt=Now() - RETENTION_PERIOD)._raw_delete("default")


def is_active(job: Import) -> bool:
    return job.state in queue.ACTIVE_STATES


def entry(job: Import, raw: RawParameters) -> dict[str, Any]:
    """The state of an import as a response shows it."""
    limit = parse_number(raw, "sysparm_limit", DEFAULT_ERRORS, maximum=steps.MAX_STORED_ERRORS)
    job.refresh_from_db()
    import_options = ImportOptions.of(job.options)
    description: Mapping[str, Any] = job.description
    types = description.get("types", ())
    return {
        "sys_id": job.pk,
        "table": job.table,
        "state": job.state,
        "file_name": job.file_name,
        "mode": import_options.mode,
        "key": import_options.key,
        "sysparm_import": import_options.is_import,
        "dry_run": import_options.dry_run,
        "on_error": import_options.on_error,
        "format": {"type": job.format} | {name: description[name] for name in SHOWN_FORMAT if name in description},
        "columns": [
            {"name": name, "type": type_name, "column": job.mapping.get(name)}
            for name, type_name in zip(description.get("header", ()), types, strict=False)
        ],
        "lines": job.line_count,
        "processed": job.counts.get("processed", 0),
        **{name: job.counts.get(name, 0) for name in SHOWN_COUNTS},
        **{name: job.counts[name] for name in ("undone", "left") if name in job.counts},
        "error": job.error,
        "line_errors": [
            {"line": line, "errors": items} for line, items in storage.first_entries(job, Kind.ERRORS, limit)
        ],
        "left_records": [
            {"sys_id": sys_id, "errors": items} for sys_id, items in storage.first_entries(job, Kind.LEFT, limit)
        ],
        "sys_created_at": format_time(job.created_at),
        "finished_at": job.finished_at and format_time(job.finished_at),
        "can_be_undone": job.state in REPEATABLE_STATES
        and ImportPiece.objects.filter(of_import=job, kind=Kind.UNDO).exists(),
    }
