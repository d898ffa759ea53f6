"""Reads records: parse → open the table for the caller → plan → compile → run → page.

Each stage takes the result of the previous one. Plans and statements depend only on the shape of a request, and are
cached in the caller's view of the catalogue.
"""

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import structlog
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError
from psycopg.errors import QueryCanceled

from system import process_cache, properties
from system.error_details import sqlstate_of
from tableapi.access.caller_view import record_not_found
from tableapi.catalogue.definitions import Catalogue, Table
from tableapi.database import statement_runner
from tableapi.query import read_plan
from tableapi.query.parameters import ListRequest, OutputOptions, RawParameters, parse_list, parse_output
from tableapi.query.read_plan import ReadPlan
from tableapi.sql import select
from tableapi.sql.operators import MEMBERS_TABLE
from tableapi.sql.output_fields import OutputStyle
from tableapi.sql.select import Statement
from tableapi.sql.statement_builder import StatementInputs

from .catalogue_retry import on_current_catalogue
from .context import Caller, ReadContext
from .list_page import ListResult, list_result, page_start

logger = structlog.get_logger(__name__)

Result = TypeVar("Result")

RECORD_ID = re.compile(r"[0-9a-z]{1,32}")
# An estimate counts up to this number. PostgreSQL's own estimate would include records that the caller cannot read.
MAX_ESTIMATED_COUNT = 10_000
# How long an unavailable replica is not used: connecting to a host that disappeared takes 2 s.
RETRY_DELAY_S = 5.0
_unavailable_until: list[float] = []
process_cache.register("pause of the replica", _unavailable_until.clear)


@dataclass(frozen=True)
class RecordResult:
    body: bytes
    # None if the caller cannot read the record's version.
    version: int | None
    ignored: tuple[str, ...] = ()


@on_current_catalogue
def read_list(catalogue: Catalogue, caller: Caller, table_name: str, raw: RawParameters) -> ListResult:
    return fetch_list(caller.context(catalogue), table_name, parse_list(raw))


def fetch_list(context: ReadContext, table_name: str, request: ListRequest) -> ListResult:
    catalogue, table = context.view.catalogue, context.view.open_table(table_name)
    if not context.view.can_read(table):
        statement_runner.check_version(context.inputs())  # no statement runs here that would report newer rules
        return ListResult([], total=0 if request.count else None)
    output, shape = request.output, request.query.shape
    plan = context.view.cached(
        ("plan", table.name, output, shape),
        lambda: read_plan.plan_read(
            context.view, table, query=shape.query, fields=output.fields, view=output.view, names=output.names
        ),
    )
    start = page_start(request, table, context.caller.user_id)
    page, style = start.page(request.limit), style_of(output)
    statement = context.view.cached(
        ("list", table.name, output, shape, style, page), lambda: select.page_statement(plan, style, page)
    )
    inputs = context.inputs(request.query.conditions, **start.values())

    def run(database: str) -> ListResult:
        rows = statement_runner.strip_version(statement_runner.fetch_bytes(statement, inputs, database), catalogue)
        total = _count(context, plan, request, inputs, database) if request.count else None
        return list_result(request, start, plan, rows, total)

    return _run_where_allowed(context, request, statement, run)


def _run_where_allowed(
    context: ReadContext, request: ListRequest, statement: Statement, run: Callable[[str], Result]
) -> Result:
    """Return the result of `run` on the replica, or on the primary if the replica must not be used or fails.

    A replica cancels statements that delay replication.
    """
    if request.allows_replica and MEMBERS_TABLE not in statement.sql and statement_runner.REPLICA in settings.DATABASES:
        inputs = context.inputs()
        statement_runner.check_version(inputs)
        if not _unavailable_until or _unavailable_until[-1] <= time.monotonic():
            try:
                # "Everything else, credentials and rules included, is read from the primary", and so is the version of
                # the rules. A replica with another version is not used.
                if statement_runner.catalogue_version(inputs, statement_runner.REPLICA) == inputs.version:
                    return run(statement_runner.REPLICA)
            except (OperationalError, InterfaceError) as error:
                if isinstance(error.__cause__, QueryCanceled):
                    raise
                logger.warning("replica_unavailable", sqlstate=sqlstate_of(error))
                _unavailable_until[:] = [time.monotonic() + RETRY_DELAY_S]
    return run(DEFAULT_DB_ALIAS)


@on_current_catalogue
def read_record(catalogue: Catalogue, caller: Caller, table_name: str, sys_id: str, raw: RawParameters) -> RecordResult:
    output, context = parse_output(raw), caller.context(catalogue)
    return fetch_record(context, context.view.open_table(table_name), sys_id, output)


def fetch_record(context: ReadContext, table: Table, sys_id: str, output: OutputOptions) -> RecordResult:
    if not RECORD_ID.fullmatch(sys_id) or not context.view.can_read(table):
        raise record_not_found()
    plan, statement = compile_record(context, table, output)
    row = _row_of_run(context, table, sys_id, output, plan)
    if row is None:
        ((_, *row),) = context.fetch_bytes(statement, sys_id=sys_id)
    version, body = row
    if body is None:
        raise record_not_found()
    return record_result(version, body, plan)


def _row_of_run(
    context: ReadContext, table: Table, sys_id: str, output: OutputOptions, plan: ReadPlan
) -> Sequence[bytes | None] | None:
    """Return version and JSON of a record that consecutive reads in a batch fetch together, or None."""
    run = context.caller.run
    if run is None:
        return None
    if sys_id in run.ids:
        ids, run.ids = run.ids, []  # if this fails, the others are fetched one by one
        _, statement = compile_record(context, table, output, has_many=True)
        rows_by_id = {row[0]: row[1:] for row in context.fetch_bytes(statement, sys_ids=ids)}
        run.plan, run.rows = plan, {id_: rows_by_id.get(id_.encode(), (None, None)) for id_ in ids}
    return run.rows.pop(sys_id, None) if run.plan is plan else None


def fetch_records(
    context: ReadContext, table: Table, ids: Iterable[str], output: OutputOptions
) -> dict[str, RecordResult]:
    """Those of the records that the caller can read, by id."""
    plan, statement = compile_record(context, table, output, has_many=True)
    return {
        sys_id.decode(): record_result(version, body, plan)
        for sys_id, version, body in context.fetch_bytes(statement, sys_ids=list(ids))
        if sys_id is not None and body is not None
    }


def minimal_output(context: ReadContext, table: Table) -> OutputOptions:
    """Return output options for records whose fields are not needed."""
    is_visible = context.view.column(table, "sys_id") is not None
    return OutputOptions(fields=("sys_id",) if is_visible else ())


def compile_record(
    context: ReadContext, table: Table, output: OutputOptions, *, has_many: bool = False
) -> tuple[ReadPlan, Statement]:
    """Return the plan and statement for one record, which responses to writes use too, or for many."""
    style = style_of(output)

    def compile_() -> tuple[ReadPlan, Statement]:
        plan = read_plan.plan_read(context.view, table, fields=output.fields, view=output.view, names=output.names)
        return plan, select.record_statement(plan, style, has_many=has_many)

    return context.view.cached(("record", table.name, output, style, has_many), compile_)


def record_result(version: bytes | None, body: bytes, plan: ReadPlan) -> RecordResult:
    return RecordResult(body, None if version is None else int(version), plan.ignored)


def style_of(output: OutputOptions) -> OutputStyle:
    html_column_ids = properties.get(properties.WYSIWYG_COLUMNS)
    return OutputStyle(output.display_mode, output.with_links, html_column_ids, names=output.names)


def _count(context: ReadContext, plan: ReadPlan, request: ListRequest, inputs: StatementInputs, database: str) -> int:
    limit = MAX_ESTIMATED_COUNT if request.count == "estimated" else None
    key = ("count", plan.table.name, request.output, request.query.shape, limit)
    statement = context.view.cached(key, lambda: select.count_statement(plan, limit))
    ((count,),) = statement_runner.fetch(statement, inputs, database)
    return int(count)
