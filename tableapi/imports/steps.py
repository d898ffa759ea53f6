"""Takes an import from step to step, in a request, the worker or a command; see the package for the steps."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from math import inf
from typing import Any

import structlog
from django.db import DatabaseError, InterfaceError, connections, transaction
from django.db.models import DateTimeField, F, Func

from accounts.models import User, time_zones
from accounts.roles import ADMIN
from system.error_details import describe_safely
from system.errors import AccessDenied, BadRequest, ServiceError
from system.plain_sql import fetch_rows
from system.records import acting_user
from tableapi.models.imports import Import, ImportMapping, ImportPiece
from tableapi.query.parameters import OutputOptions
from tableapi.read.context import Caller
from tableapi.write.write_request import WriteInput, WriteRequest, write

from . import options, reading, writing
from .cells import CellFormat
from .options import ImportOptions
from .writing import CREATED, FAILED, UNCHANGED, UPDATED, PieceWriter

logger = structlog.get_logger(__name__)
State, Kind = Import.State, ImportPiece.Kind

MAX_ATOMIC_LINES = 100_000
# The lines whose errors are stored; the others are only counted.
MAX_STORED_ERRORS = 1_000
# What a request writes itself; the worker writes longer files.
MAX_LINES_IN_REQUEST = 200
MAX_ATTEMPTS = 8
FIRST_PAUSE_S = 5.0
CLOCK = Func(function="clock_timestamp", output_field=DateTimeField())
# What reading the file finds out.
READ_COLUMNS = ("description", "mapping", "line_count", "piece_count")
LOCK = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
UNLOCK = "SELECT pg_advisory_unlock(hashtextextended(%s, 0))"
SHOW_PROGRESS = (
    "UPDATE public.tableapi_import SET counts = counts || jsonb_build_object('processed', %s::integer) WHERE id = %s"
)


class Cancelled(Exception):
    """The import was cancelled during the step. What the step wrote is rolled back."""


def process_next(deadline: float, must_stop: Callable[[], bool]) -> bool:
    """Process the import that waits longest, so that imports take turns. Returns whether one is due."""
    due = Import.objects.filter(state__in=Import.ACTIVE_STATES, next_at__lte=CLOCK).order_by("next_at")
    return any(process(pk, deadline=deadline, must_stop=must_stop) for pk in list(due.values_list("pk", flat=True)))


def process(
    import_id: str, *, deadline: float = inf, in_request: bool = False, must_stop: Callable[[], bool] = lambda: False
) -> bool:
    """Run steps until the import is finished, has to wait, or the deadline is over. Returns False if another process
    runs its steps."""
    with _lock(import_id) as is_locked:
        while is_locked:
            job = Import.objects.filter(pk=import_id, state__in=Import.ACTIVE_STATES).first()
            is_long = in_request and job is not None and job.line_count > MAX_LINES_IN_REQUEST
            if job is None or is_long or time.monotonic() > deadline or must_stop() or not _run_step(job):
                break
    return is_locked


@contextmanager
def _lock(import_id: str) -> Iterator[bool]:
    """Let only this process run the steps. PostgreSQL ends the lock with the connection, also of a killed process."""
    ((is_locked,),) = fetch_rows(LOCK, [import_id])
    try:
        yield is_locked
    finally:
        if is_locked:
            with suppress(DatabaseError, InterfaceError):  # the connection is lost, and with it the lock
                fetch_rows(UNLOCK, [import_id])


def _run_step(job: Import) -> bool:
    """Run the next step. If it does not come to its end, it is repeated after a pause that doubles each time."""
    pause = timedelta(seconds=FIRST_PAUSE_S * 2**job.attempt)
    Import.objects.filter(pk=job.pk).update(attempt=F("attempt") + 1, next_at=CLOCK + pause)
    try:
        if job.attempt >= MAX_ATTEMPTS:
            raise ServiceError("Every attempt was interrupted.", code="interrupted")
        STEPS[job.state](job)
        return True
    except Exception as error:
        if isinstance(error, ServiceError) and error.status < 500:
            with suppress(Cancelled):
                _finish(job, State.FAILED, *READ_COLUMNS, error=error.as_items())
        elif not isinstance(error, Cancelled):
            details = describe_safely(error)
            logger.warning("import_step_failed", job=job.pk, state=job.state, attempt=job.attempt, **details)
        return False


def _save(job: Import, *names: str, **columns: Any) -> None:
    """Store these attributes and columns as the last statement of a step. The next step is due."""
    changed = {"attempt": 0, "next_at": CLOCK} | {name: getattr(job, name) for name in names} | columns
    if not Import.objects.filter(pk=job.pk, state=job.state).update(**changed):
        raise Cancelled


def _finish(job: Import, state: str, *names: str, **columns: Any) -> None:
    _save(job, *names, state=state, finished_at=CLOCK, **columns)


@contextmanager
def _acting_caller(job: Import) -> Iterator[Caller]:
    """The person with the rights that they have now: those of the key that they used, if it had fewer roles."""
    user = User.objects.filter(pk=job.user_id, active=True).first()
    if user is None:
        raise AccessDenied("The account of this import is not active.", code="inactive")
    if job.roles is not None:
        roles = frozenset(job.roles)
        user.role_names = roles if ADMIN in user.role_names else roles & user.role_names
    with acting_user.acting_as(user.pk):
        acting_user.set_current(user.pk, None if job.roles is None else user.role_names)
        yield Caller.of(user)


def _read(job: Import) -> None:
    import_options = ImportOptions(**job.options)
    if not job.piece_count:
        reading.read_file(job, import_options)
    with _acting_caller(job) as caller:
        reading.map_header(caller, job, import_options)
    if import_options.on_error == "stop" and not import_options.dry_run and job.line_count > MAX_ATOMIC_LINES:
        message = f"At most {MAX_ATOMIC_LINES:,} lines can be written all or nothing. Send on_error=continue."
        raise BadRequest(message, code="too_many_lines", field="on_error")
    with transaction.atomic():
        if mapping := import_options.mapping:
            ImportMapping.objects.update_or_create(user=job.user, table=job.table, defaults={"mapping": dict(mapping)})
        _save(job, *READ_COLUMNS, state=State.WRITING, counts={}, next_piece=0)


def _write(job: Import) -> None:
    """Write the next piece or, if the import is all or nothing, all pieces. A dry run is rolled back."""
    import_options = ImportOptions(**job.options)
    writes_all = job.line_count <= MAX_ATOMIC_LINES and (import_options.on_error == "stop" or import_options.dry_run)
    numbers = range(job.piece_count) if writes_all else range(job.next_piece, min(job.next_piece + 1, job.piece_count))
    job.counts = {} if writes_all else job.counts
    errors: list[Any] = []
    with transaction.atomic():
        with transaction.atomic():
            for number in numbers:
                stored_count = job.counts.get(FAILED, 0)
                part = _write_piece(job, import_options, number)
                errors += part.errors[: max(MAX_STORED_ERRORS - stored_count, 0)]
                job.add_entries(Kind.UNDO, number, part.undo)
                if writes_all:
                    _show_progress(job)
            is_refused = import_options.on_error == "stop" and bool(errors) and not import_options.dry_run
            transaction.set_rollback(is_refused or import_options.dry_run)
        job.add_entries(Kind.ERRORS, numbers.start, errors)
        if is_refused:
            job.counts |= dict.fromkeys((CREATED, UPDATED, UNCHANGED), 0)
            error = BadRequest("Lines have errors, so nothing was written.", code="invalid_lines")
            _finish(job, State.FAILED, "counts", error=error.as_items())
        elif numbers.stop < job.piece_count:
            _save(job, "counts", next_piece=numbers.stop)
        else:
            if job.pieces(Kind.UNDO).exists():  # it cannot run again
                ImportPiece.objects.filter(of_import=job, kind__in=(Kind.FILE, Kind.ROWS))._raw_delete("default")
            _finish(job, State.DONE, "counts")


def _write_piece(job: Import, import_options: ImportOptions, number: int) -> PieceWriter:
    lines = job.entries(Kind.ROWS, number)
    columns = [job.mapping.get(name) for name in job.description["header"]]
    with _acting_caller(job) as caller:
        options.check(caller, job.table, import_options)
        zone = time_zones.zone_of(import_options.time_zone) if import_options.time_zone else caller.time_zone
        cell_format = CellFormat(job.description["date_order"], job.description["decimal"], zone)

        def write_lines(change: WriteRequest) -> PieceWriter:
            writer = PieceWriter(change, import_options, columns, cell_format)
            writer.write(lines)
            return writer

        change = WriteInput({}, OutputOptions(), is_import=import_options.sysparm_import)
        written = write(caller, job.table, change, write_lines)
    _count(job, **written.counts, processed=len(lines))
    return written


def _count(job: Import, **counts: int) -> None:
    job.counts = job.counts | {name: job.counts.get(name, 0) + count for name, count in counts.items()}


def _show_progress(job: Import) -> None:
    """Through another connection, because a long transaction shows nothing before its end. Raises Cancelled."""
    with closing(connections.create_connection("default")) as connection, connection.cursor() as cursor:
        cursor.execute(SHOW_PROGRESS, [job.counts["processed"], job.pk])
    if not Import.objects.filter(pk=job.pk, state=job.state).exists():
        raise Cancelled


def _undo(job: Import) -> None:
    """Undo the last piece that is left, and forget it in the same transaction."""
    piece = job.pieces(Kind.UNDO).last()
    if piece is None:
        _finish(job, State.UNDONE)
        return
    entries = job.entries(Kind.UNDO, piece.number)
    with transaction.atomic():
        with _acting_caller(job) as caller:
            left = writing.undo_entries(caller, job.table, entries)
        job.add_entries(Kind.LEFT, piece.number, left)
        job.pieces(Kind.UNDO).filter(number=piece.number)._raw_delete("default")
        _count(job, undone=len(entries) - len(left), left=len(left))
        _save(job, "counts")


STEPS: dict[str, Callable[[Import], None]] = {State.READING: _read, State.WRITING: _write, State.UNDOING: _undo}
