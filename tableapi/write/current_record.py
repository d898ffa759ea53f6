"""Asks how a record stands before a write, and whether what became of it is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from system.errors import AccessDenied, BadRequest, NotFound, PreconditionFailed
from tableapi.access.caller_view import CallerView, record_not_found
from tableapi.catalogue.definitions import CREATE, NUMBER, Column, Table
from tableapi.database import statement_runner
from tableapi.read.context import ReadContext
from tableapi.read.pipeline import RECORD_ID

from . import designed_records, permission_queries, system_records
from .change_request import WriteRequest


@dataclass(frozen=True)
class CurrentValue:
    """One column of a record as it stands; `plain` is what a converted text reads as."""

    value: Any
    is_seen: bool
    is_allowed: bool
    plain: str | None = None


@dataclass(frozen=True)
class CurrentRecord:
    is_allowed: bool
    columns: Mapping[Column, CurrentValue]


def lock_current_record(
    change: WriteRequest, sys_id: str, operation: str, columns: tuple[Column, ...]
) -> CurrentRecord:
    """The record, locked until the end of the transaction; 404 unless the caller may read it."""
    request, table = change.request, change.table
    if not RECORD_ID.fullmatch(sys_id) or not request.view.can_read(table):
        raise record_not_found()
    system_records.take_turn(table)
    columns = tuple(sorted(columns, key=lambda column: column.name))  # whatever order the body has
    permissions = request.view.permissions
    statement, questions = request.view.cached(
        ("standing", table.name, operation, tuple(column.name for column in columns)),
        lambda: (
            permission_queries.standing(permissions, table, operation, columns),
            [permission_queries.question(permissions, table, operation, column) for column in columns],
        ),
    )
    rows = statement_runner.fetch(statement, request.inputs(sys_id=sys_id))
    (answers,) = statement_runner.without_version(rows, request.view.catalogue)
    found_id, version, is_allowed, *values, told = answers
    if found_id is None:
        raise record_not_found()
    if change.is_current is not None and not change.is_current(version):
        raise PreconditionFailed
    stored = {}
    answered = iter(told)
    for column, asked, raw in zip(columns, questions, values, strict=True):
        value, plain = _loaded(table, column, raw)
        is_seen = next(answered) if asked.is_seen is None else asked.is_seen
        is_writable = next(answered) if asked.is_allowed is None else asked.is_allowed
        stored[column] = CurrentValue(value, is_seen, is_writable, plain)
    return CurrentRecord(is_allowed, stored)


def _loaded(table: Table, column: Column, value: Any) -> tuple[Any, str | None]:
    if column.converted_from_text and value is not None:
        return value[0], value[1]
    return plain_nothing(table, designed_records.loaded(column, value)), None


def plain_nothing(table: Table, value: Any) -> Any:
    """The models hold an empty text or list for nothing, where a designed table has NULL."""
    return None if table.is_system and value in ("", []) else value


def check_allowed(change: WriteRequest, operation: str, sys_id: str, columns: tuple[Column, ...]) -> None:
    """On the record as it has become; what is denied here is undone with the transaction."""
    request, table = change.request, change.table
    permissions = request.view.permissions
    if not permission_queries.is_conditional(permissions, table, operation, columns):
        return
    statement = request.view.cached(
        ("allowed", table.name, operation, tuple(column.name for column in columns)),
        lambda: permission_queries.allowed(permissions, table, operation, columns),
    )
    ((is_allowed, *each),) = statement_runner.fetch(statement, request.inputs(sys_id=sys_id))
    if not is_allowed:
        raise no_creation(request, table) if operation == CREATE else denied([])
    if not all(each):
        if operation == CREATE and not request.view.can_read(table):
            raise no_creation(request, table)
        # "Denied: 403 naming only columns that the client sent": one that PUT empties was not.
        named = [column.name for column, holds in zip(columns, each, strict=True) if not holds]
        raise denied([name for name in named if name in change.body])


def is_made_here(table: Table, column: Column) -> bool:
    return column.name == NUMBER and bool(table.number_prefix)


def keeps_ids(view: CallerView, table: Table) -> bool:
    """Whether this caller may bring records along under the ids that they had elsewhere."""
    return view.permissions.is_admin and not table.is_system


def no_creation(request: ReadContext, table: Table) -> AccessDenied | NotFound:
    """ "403 if the caller can read the table, else 404." """
    if request.view.can_read(table):
        return AccessDenied("You have no access to create this record.")
    return NotFound("There is no such table.", code="table_not_found")


def denied(names: list[str]) -> AccessDenied:
    if not names:
        return AccessDenied("You have no access to change this record in this way.")
    return AccessDenied(f"You have no access to write {', '.join(names)}.", field=names[0])


def read_only(column: Column) -> BadRequest:
    return BadRequest("Only the server writes this column.", code="read_only", field=column.name)
