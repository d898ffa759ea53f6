"""Answers reads: from what was asked through plan and statement to the bytes of the answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import structlog
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError

from system import properties
from system.encoded_query import Condition, Moment, QueryError
from system.error_details import sqlstate_of
from tableapi.access.caller_view import CallerView, record_not_found
from tableapi.catalogue.definitions import Catalogue, Table
from tableapi.database import catalogue_loader, statement_runner
from tableapi.design import rule_hints
from tableapi.query import parameters, read_plan
from tableapi.query.parameters import ListRequest, OutputOptions
from tableapi.sql import select
from tableapi.sql.operators import MEMBERSHIPS
from tableapi.sql.output_fields import OutputStyle
from tableapi.sql.select import Page
from tableapi.sql.statement_builder import Inputs

from . import cursors

logger = structlog.get_logger(__name__)

VERSION = select.Statement("SELECT version FROM public.tableapi_state", ())
RECORD_ID = re.compile(r"[0-9a-z]{1,32}")
# An estimate counts so far and no further: PostgreSQL's own would tell of records that the caller cannot read.
COUNTED_UP_TO = 10_000


@dataclass(frozen=True)
class ReadContext:
    """Who asks, when, and under which address the service is known to them."""

    user_id: str
    sight: CallerView
    now: datetime
    link: str

    def inputs(self, conditions: tuple[Condition, ...] = (), **given: Any) -> Inputs:
        sight = self.sight
        moment = Moment(self.now, self.user_id)
        return Inputs(moment, sight.catalogue.version, sight.sorted_roles, conditions, self.link, given)


@dataclass(frozen=True)
class RecordAnswer:
    body: bytes
    # None where the caller may not read the record's version.
    version: int | None
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True)
class ListAnswer:
    bodies: list[bytes]
    next_page: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    total: int | None = None
    doubtful: tuple[str, ...] = ()


def now() -> datetime:
    return datetime.now(UTC)


def style(shown: OutputOptions) -> OutputStyle:
    return OutputStyle(shown.display, shown.with_links, properties.get(properties.WYSIWYG_COLUMNS))


def read_record(request: ReadContext, table: Table, sys_id: str, shown: OutputOptions) -> RecordAnswer:
    """One record as this caller sees it."""
    if not RECORD_ID.fullmatch(sys_id):
        raise record_not_found()
    look = style(shown)

    def make() -> tuple[Any, Any]:
        read = read_plan.plan_read(request.sight, table, fields=shown.fields, view=shown.view)
        return read, select.record(read, look)

    if not request.sight.can_read(table):
        raise record_not_found()
    read, statement = request.sight.kept(("record", table.name, shown, look), make)
    rows = statement_runner.fetch_bytes(statement, request.inputs(sys_id=sys_id))
    ((version, body),) = statement_runner.without_version(rows, request.sight.catalogue)
    if body is None:
        raise record_not_found()
    return record_answer(version, body, read)


def record_answer(version: bytes | None, body: bytes, read: read_plan.ReadPlan) -> RecordAnswer:
    return RecordAnswer(body, None if version is None else int(version), read.ignored)


def read_records(request: ReadContext, table: Table, asked: ListRequest) -> ListAnswer:
    """A page of a list."""
    if not request.sight.can_read(table):
        return _nothing(request, asked)
    shape = asked.query.shape
    look = style(asked.shown)
    read = request.sight.kept(("plan", table.name, asked.shown, shape), lambda: _plan(request.sight, table, asked))
    bound_to = [table.name, asked.text, ",".join(asked.shown.fields), asked.shown.view, request.user_id]
    after = cursors.read(asked.cursor, bound_to) if asked.cursor else None
    skip = after.skip if after else (asked.page - 1) * asked.limit
    page = Page(asked.limit, skip > 0, tuple(key is not None for key in after.keys) if after else None)
    statement = request.sight.kept(
        ("list", table.name, asked.shown, shape, look, page), lambda: select.records(read, look, page)
    )
    alias = _place(request, asked, statement)
    given = {f"after{number}": key for number, key in enumerate(after.keys if after else ()) if key is not None}
    inputs = request.inputs(asked.query.conditions, offset=skip, **given)
    found = _run(statement, inputs, request.sight.catalogue, alias)
    total = _count(request, read, asked, inputs, alias) if asked.count else None
    bodies = [row[0] for row in found[: asked.limit] if row[0] is not None]
    if not (bodies or skip or after):
        return ListAnswer([], {}, read.ignored, total, rule_hints.of_query(request.sight, table, asked.text))
    if len(found) <= asked.limit:
        return ListAnswer(bodies, {}, read.ignored, total)
    last = cursors.Place(tuple([key.decode() if key is not None else None for key in found[asked.limit - 1][1:]]))
    return ListAnswer(bodies, _next(asked, after, last, bound_to), read.ignored, total)


def _next(asked: ListRequest, after: cursors.Place | None, last: cursors.Place, bound_to: list[str]) -> dict[str, str]:
    """The parameters of the next page: a cursor; where its values are too long, the one that led here and how many to
    skip, or the number of the page."""
    if cursor := cursors.write(last, bound_to):
        return {"sysparm_cursor": cursor}
    skip = (after.skip if after else asked.limit * (asked.page - 1)) + asked.limit
    if skip + asked.limit > parameters.DEEPEST_RECORD:
        return {}
    if after is None:
        return {"sysparm_page": str(asked.page + 1)}
    return {"sysparm_cursor": cursors.write(replace(after, skip=skip), bound_to)}


def _nothing(request: ReadContext, asked: ListRequest) -> ListAnswer:
    """No statement runs that would tell of newer rules, so they are asked for."""
    if catalogue_loader.reload_if_changed().version != request.sight.catalogue.version:
        raise statement_runner.CatalogueChanged
    return ListAnswer([], total=0 if asked.count else None)


def _plan(sight: CallerView, table: Table, asked: ListRequest) -> read_plan.ReadPlan:
    try:
        return read_plan.plan_read(
            sight, table, query=asked.query.shape.query, fields=asked.shown.fields, view=asked.shown.view
        )
    except QueryError as error:
        raise parameters.invalid_query(error) from None


def _place(request: ReadContext, asked: ListRequest, statement: select.Statement) -> str:
    """Where to read. "Everything else, credentials and rules included, is read from the primary": which rules are in
    force is asked there, and a replica that has not heard of them yet is not asked at all. Nor is one that is away."""
    if not asked.replica or statement_runner.REPLICA not in settings.DATABASES or MEMBERSHIPS in statement.sql:
        return DEFAULT_DB_ALIAS
    inputs = request.inputs()
    statement_runner.without_version(statement_runner.fetch(VERSION, inputs), request.sight.catalogue)
    try:
        ((there,),) = statement_runner.fetch(VERSION, inputs, statement_runner.REPLICA)
    except (OperationalError, InterfaceError) as error:
        logger.warning("replica_unavailable", sqlstate=sqlstate_of(error))
        return DEFAULT_DB_ALIAS
    return statement_runner.REPLICA if there == request.sight.catalogue.version else DEFAULT_DB_ALIAS


def _run(statement: select.Statement, inputs: Inputs, catalogue: Catalogue, alias: str) -> list[statement_runner.Bytes]:
    try:
        return statement_runner.without_version(statement_runner.fetch_bytes(statement, inputs, alias), catalogue)
    except QueryError as error:
        raise parameters.invalid_query(error) from None


def _count(request: ReadContext, read: read_plan.ReadPlan, asked: ListRequest, inputs: Inputs, alias: str) -> int:
    most = COUNTED_UP_TO if asked.count == "estimated" else None
    key = ("count", read.table.name, asked.shown, asked.query.shape, most)
    statement = request.sight.kept(key, lambda: select.counted(read, most))
    ((found,),) = statement_runner.fetch(statement, inputs, alias)
    return int(found)
