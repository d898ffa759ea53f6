"""What the owner of an import can do: start it, read its state, run it again, undo, cancel and delete it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from system.background.task_dispatch import wake_worker
from system.errors import Conflict, TooManyRequests
from system.http.uploads import clean_filename
from system.records import acting_user
from tableapi.access.caller_view import record_not_found
from tableapi.models.imports import Import, ImportPiece
from tableapi.read.context import Caller
from tableapi.read.entry_pages import format_time

from . import options, steps
from .options import ImportOptions

State, Kind = Import.State, ImportPiece.Kind

TASK = "tableapi.tasks.run_imports"
MAX_UNFINISHED = 10
# How long a finished import can be read and undone.
RETENTION_PERIOD = timedelta(days=7)
DEFAULT_ERRORS = 20
MAX_RECENT = 20
# Reading a larger file may take longer than a request.
MAX_BYTES_IN_REQUEST = 256 * 1024
REPEATABLE_STATES = (State.DONE, State.FAILED, State.CANCELLED)
SHOWN_COUNTS = ("created", "updated", "unchanged", "failed")
SHOWN_OPTIONS = ("mode", "key", "sysparm_import", "dry_run", "on_error")
SHOWN_FORMAT = ("encoding", "delimiter", "sheet", "sheets", "date_order", "decimal")


def start(
    caller: Caller, table: str, import_options: ImportOptions, parts: Iterable[bytes], file_name: str, media_type: str
) -> Import:
    """Store the file and the options durably. The caller then calls `process_now`."""
    if Import.objects.filter(user=caller.user_id, state__in=Import.ACTIVE_STATES).count() >= MAX_UNFINISHED:
        raise TooManyRequests(f"{MAX_UNFINISHED} of your imports are not finished. Try again later.")
    roles = acting_user.role_names()
    with transaction.atomic():
        job = Import.objects.create(
            user_id=caller.user_id,
            roles=None if roles is None else sorted(roles),
            table=table,
            file_name=clean_filename(file_name),
            format=options.format_of(media_type, file_name),
            options=asdict(import_options),
        )
        for number, part in enumerate(parts):
            job.add_piece(Kind.FILE, number, part)
            job.size += len(part)
        job.save(update_fields=["size"])
    return job


def process_now(job: Import) -> None:
    """Process a small import; leave others, and the rest, to the worker."""
    if job.size <= MAX_BYTES_IN_REQUEST:
        steps.process(job.pk, in_request=True)
    job.refresh_from_db()
    if job.is_active:
        wake_worker(TASK)


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
    if job.pieces(Kind.UNDO).exists() or not job.pieces(Kind.FILE).exists():
        raise Conflict("This import has written records. Send the file again.", code="not_repeatable")
    is_read_again = ImportOptions(**job.options).reading != import_options.reading
    with transaction.atomic():
        columns = {"piece_count": 0} if is_read_again else {}
        _restart(job, State.READING, options=asdict(import_options), counts={}, **columns)
        job.pieces(Kind.ERRORS)._raw_delete("default")
    return job


def undo(caller: Caller, table: str, import_id: str) -> Import:
    job = find(caller, table, import_id)
    if not job.pieces(Kind.UNDO).exists():
        raise Conflict("This import has written nothing that can be undone.", code="not_undoable")
    _restart(job, State.UNDOING)
    return job


def _restart(job: Import, state: str, **columns: Any) -> None:
    finished = Import.objects.filter(pk=job.pk, state__in=REPEATABLE_STATES)
    if not finished.update(state=state, finished_at=None, error=None, next_at=Now(), attempt=0, **columns):
        raise Conflict("The import is not finished, or was undone.", code="not_finished")


def cancel_or_delete(caller: Caller, table: str, import_id: str) -> dict[str, Any]:
    """Stop an active import; what it wrote stays and can be undone. Delete a finished one."""
    job = find(caller, table, import_id)
    active = Import.objects.filter(pk=job.pk, state__in=Import.ACTIVE_STATES)
    if not active.update(state=State.CANCELLED, finished_at=Now()):
        Import.objects.filter(pk=job.pk)._raw_delete("default")  # the database deletes its pieces
    return {"sys_id": job.pk}


def delete_expired() -> None:
    Import.objects.filter(finished_at__lt=Now() - RETENTION_PERIOD)._raw_delete("default")


def entry(job: Import, limit: int = DEFAULT_ERRORS) -> dict[str, Any]:
    """The state of an import as a response shows it."""
    job.refresh_from_db()
    described = job.description
    return {
        "sys_id": job.pk,
        "table": job.table,
        "state": job.state,
        "file_name": job.file_name,
        **{name: job.options[name] for name in SHOWN_OPTIONS},
        "format": {"type": job.format} | {name: described[name] for name in SHOWN_FORMAT if name in described},
        "columns": [
            {"name": name, "type": type_name, "column": job.mapping.get(name)}
            for name, type_name in zip(described.get("header", ()), described.get("types", ()), strict=True)
        ],
        "lines": job.line_count,
        **{name: job.counts.get(name, 0) for name in ("processed", *SHOWN_COUNTS)},
        **{name: job.counts[name] for name in ("undone", "left") if name in job.counts},
        "error": job.error,
        "line_errors": [{"line": line, "errors": items} for line, items in job.first_entries(Kind.ERRORS, limit)],
        "left_records": [{"sys_id": pk, "errors": items} for pk, items in job.first_entries(Kind.LEFT, limit)],
        "sys_created_at": format_time(job.created_at),
        "finished_at": job.finished_at and format_time(job.finished_at),
        "can_be_undone": job.state in REPEATABLE_STATES and job.pieces(Kind.UNDO).exists(),
    }
