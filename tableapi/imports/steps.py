"""Takes an import from step to step, in a request, the worker or a command; see the package for the steps."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from uuid import UUID

import structlog
from django.db import DatabaseError, InterfaceError, transaction

from accounts.models import User
from accounts.roles import ADMIN
from system.error_details import describe_safely, sqlstate_of
from system.errors import AccessDenied, BadRequest, ServiceError
from system.records import acting_user
from tableapi.models.imports import Import, ImportPiece
from tableapi.query.parameters import OutputOptions
from tableapi.read.context import Caller
from tableapi.write.table_write import write
from tableapi.write.write_request import WriteInput

from . import mapping, options, parsing, queue, storage, undo, writing
from .cells import CellFormat
from .options import ImportOptions
from .queue import Heartbeat, LeaseLost, State
from .references import ReferenceCache
from .rows import RowWriter
from .storage import Kind
from .writing import RowsResult

logger = structlog.get_logger(__name__)

MAX_ATOMIC_LINES = 100_000
# The lines whose errors are stored; the others are only counted.
MAX_STORED_ERRORS = 1_000
# What a request writes itself; the worker writes longer files.
MAX_LINES_IN_REQUEST = 1_000
# No fault of the file: connection lost, out of space or memory, server shutting down, lock timeout, deadlock.
TEMPORARY_SQLSTATES = ("08", "53", "57P", "55P03", "40P01", "40001")


@dataclass(frozen=True)
class Run:
    """What the steps of one process share."""

    cache: ReferenceCache
    heartbeat: Heartbeat


Step = Callable[[Import, Run], None]


def process(
    import_id: str,
    token: UUID,
    *,
    deadline: float = inf,
    in_request: bool = False,
    must_stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[Import], None] = lambda job: None,
) -> None:
    """Run the steps of a leased import until it is finished, has to wait, or the deadline is over."""
    cache = ReferenceCache()
    with suppress(LeaseLost):  # also raised once it is finished
        while True:
            job = queue.leased(import_id, token)
            if job.attempt > queue.MAX_ATTEMPTS:
                return _fail(job, ServiceError("Every attempt was interrupted.", code="interrupted"))
            is_long = in_request and job.state != State.READING and job.line_count > MAX_LINES_IN_REQUEST
            if time.monotonic() > deadline or is_long or must_stop():
                return queue.release(job)
            heartbeat = Heartbeat(job, on_progress)
            if not _run_step(job, Run(cache, heartbeat)):
                return None


def _run_step(job: Import, run: Run) -> bool:
    try:
        STEPS[job.state](job, run)
    except LeaseLost:
        raise
    except (DatabaseError, InterfaceError, OSError) as error:
        is_temporary = isinstance(error, InterfaceError | OSError) or sqlstate_of(error).startswith(TEMPORARY_SQLSTATES)
        _retry(job, error, is_temporary=is_temporary)
    except Exception as error:
        if isinstance(error, ServiceError) and error.status < 500:
            _fail(job, error)
        else:
            _retry(job, error, is_temporary=False)
    except BaseException:
        with suppress(LeaseLost, DatabaseError, InterfaceError):  # the process ends; another one can continue now
            queue.release(job)
        raise
    else:
        return True
    return False


def _retry(job: Import, error: Exception, *, is_temporary: bool) -> None:
    logger.warning("import_step_failed", job=job.pk, state=job.state, attempt=job.attempt, **describe_safely(error))
    if is_temporary or job.attempt < queue.MAX_ATTEMPTS:
        return queue.postpone(job, counts_attempt=not is_temporary)
    message = error.message if isinstance(error, ServiceError) else f"Internal error: {type(error).__name__}."
    return _fail(job, ServiceError(message, code="internal"))


def _fail(job: Import, error: ServiceError) -> None:
    columns = {name: getattr(job, name) for name in ("description", "mapping", "line_count", "piece_count")}
    queue.finish(job, State.FAILED, error=error.as_items(), **columns)


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


def _read(job: Import, _: Run) -> None:
    import_options = ImportOptions.of(job.options)
    if not job.piece_count:
        parsing.read_file(job, import_options)
    with _acting_caller(job) as caller:
        job.mapping = mapping.map_header(caller, job, import_options)
    if import_options.is_atomic and not import_options.dry_run and job.line_count > MAX_ATOMIC_LINES:
        message = f"At most {MAX_ATOMIC_LINES:,} lines can be written all or nothing. Send on_error=continue."
        raise BadRequest(message, code="too_many_lines", field="on_error")
    with transaction.atomic():
        mapping.remember(job, import_options)
        columns = {name: getattr(job, name) for name in ("description", "mapping", "line_count", "piece_count")}
        queue.record(job, state=State.WRITING, counts={}, next_piece=0, **columns)


def _write(job: Import, run: Run) -> None:
    import_options = ImportOptions.of(job.options)
    is_short = job.line_count <= MAX_ATOMIC_LINES
    if is_short and (import_options.is_atomic or import_options.dry_run):
        _write_all(job, import_options, run)
    else:
        _write_next_piece(job, import_options, run)


def _write_all(job: Import, import_options: ImportOptions, run: Run) -> None:
    """Write all pieces in one transaction, which is rolled back if a line has an error."""
    total = RowsResult()
    job.counts = {}
    with transaction.atomic():
        for number in range(job.piece_count):
            total.add(_write_piece(job, import_options, run, number))
            storage.add_entries(job, Kind.UNDO, number, total.undo)
            total.undo.clear()
            if len(total.errors) >= MAX_STORED_ERRORS and not import_options.dry_run:
                break
        stays = not import_options.dry_run and (not total.errors or not import_options.is_atomic)
        if stays:
            _finish_writing(job, total.errors, 0)
        else:
            transaction.set_rollback(True)
    if stays:
        return
    with transaction.atomic():
        if not import_options.dry_run:
            job.counts |= dict.fromkeys(("created", "updated", "unchanged"), 0)
            error = BadRequest("Lines have errors, so nothing was written.", code="invalid_lines")
            storage.add_entries(job, Kind.ERRORS, 0, total.errors[:MAX_STORED_ERRORS])
            return queue.finish(job, State.FAILED, counts=job.counts, error=error.as_items())
        _finish_writing(job, total.errors, 0)


def _write_next_piece(job: Import, import_options: ImportOptions, run: Run) -> None:
    number = job.next_piece
    with transaction.atomic():
        stored_errors = job.counts.get("failed", 0)
        with transaction.atomic():
            part = _write_piece(job, import_options, run, number)
            transaction.set_rollback(import_options.dry_run)
        if not import_options.dry_run:
            storage.add_entries(job, Kind.UNDO, number, part.undo)
        errors = part.errors[: max(MAX_STORED_ERRORS - stored_errors, 0)]
        if number + 1 >= job.piece_count:
            return _finish_writing(job, errors, number)
        storage.add_entries(job, Kind.ERRORS, number, errors)
        queue.record(job, next_piece=number + 1, counts=job.counts)


def _finish_writing(job: Import, errors: list[tuple[int, list[dict[str, object]]]], number: int) -> None:
    storage.add_entries(job, Kind.ERRORS, number, errors[:MAX_STORED_ERRORS])
    if not ImportOptions.of(job.options).dry_run and (job.counts.get("created") or job.counts.get("updated")):
        storage.delete_pieces(job, Kind.FILE, Kind.ROWS)
    queue.finish(job, State.DONE, counts=job.counts, next_piece=job.piece_count)


def _write_piece(job: Import, import_options: ImportOptions, run: Run, number: int) -> RowsResult:
    result = RowsResult()
    lines = storage.read_entries(job, Kind.ROWS, number)
    with _acting_caller(job) as caller:
        is_product_table = options.check(caller, job.table, import_options)
        cell_format = CellFormat(job.description["date_order"], job.description["decimal"], import_options.zone(caller))
        names = [job.mapping.get(name) for name in job.description["header"]]
        writer = RowWriter(import_options, names, cell_format, run.cache)
        change = WriteInput({}, OutputOptions(), is_import=import_options.is_import)
        for group in writing.groups_of(lines, is_product_table):
            part = write(caller, job.table, change, partial(writing.write_lines, writer=writer, lines=group))
            result.add(part)
            job.counts = {name: job.counts.get(name, 0) + count for name, count in part.counts.items()} | {
                "processed": job.counts.get("processed", 0) + len(group)
            }
            run.heartbeat.beat(json.dumps(job.counts))
    return result


def _undo(job: Import, _: Run) -> None:
    """Undo the last piece that is left, and forget it in the same transaction."""
    pieces = ImportPiece.objects.filter(of_import=job, kind=Kind.UNDO)
    number = pieces.order_by("-number").values_list("number", flat=True).first()
    with transaction.atomic():
        if number is None:
            return queue.finish(job, State.UNDONE, counts=job.counts)
        with _acting_caller(job) as caller:
            entries = len(storage.read_entries(job, Kind.UNDO, number))
            left = undo.undo_entries(caller, job, number)
        storage.add_entries(job, Kind.LEFT, number, left)
        pieces.filter(number=number)._raw_delete("default")
        counts = {"undone": entries - len(left), "left": len(left)}
        job.counts |= {name: job.counts.get(name, 0) + count for name, count in counts.items()}
        queue.record(job, counts=job.counts)


STEPS: dict[str, Step] = {State.READING: _read, State.WRITING: _write, State.UNDOING: _undo}
