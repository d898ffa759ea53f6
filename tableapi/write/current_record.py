"""Reads and locks a record before a write, and checks permissions before and after it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import compress
from typing import Any

from system.errors import AccessDenied, BadRequest, NotFound, PreconditionFailed
from tableapi.access.caller_view import CallerView, record_not_found
from tableapi.catalogue.definitions import CREATE, WRITE, Column, Table
from tableapi.database import statement_runner
from tableapi.query.expressions import ALWAYS, NEVER
from tableapi.read.context import ReadContext
from tableapi.read.pipeline import RECORD_ID

from . import custom_columns, designed_records, permission_queries, product_records
from .write_request import WriteRequest


@dataclass(frozen=True)
class CurrentValue:
    """One column of the stored record; `plain_text` is set for converted text only."""

    value: Any
    is_readable: bool
    is_allowed: bool
    plain_text: str | None = None


@dataclass(frozen=True)
class CurrentRecord:
    is_allowed: bool
    columns: Mapping[Column, CurrentValue]


def lock_current_record(
    change: WriteRequest, sys_id: str, operation: str, columns: tuple[Column, ...]
) -> CurrentRecord:
    """Lock the record until the end of the transaction. Raises 404 if the caller cannot read it."""
    context, table = change.context, change.table
    if not RECORD_ID.fullmatch(sys_id) or not context.view.can_read(table):
        raise record_not_found()
    product_records.lock_for_change(table)
    columns = tuple(sorted(columns, key=lambda column: column.name))  # one cached statement for any order
    permissions = context.view.permissions
    statement, known_results = context.view.cached(
        ("lock", table.name, operation, tuple(column.name for column in columns)),
        lambda: permission_queries.locking_statement(permissions, table, operation, columns),
    )
    (row,) = custom_columns.fetch_locked(context, table, statement, sys_id=sys_id)
    stored_id, version, is_allowed, *values, conditions = row
    if stored_id is None:
        raise record_not_found()
    if change.is_current is not None and not change.is_current(version):
        raise PreconditionFailed
    current_values = {}
    condition_results = iter(conditions)
    results = iter([next(condition_results) if known is None else known for known in known_results])
    for column, stored_value in zip(columns, values, strict=True):
        value, plain_text = _split_value(table, column, stored_value)
        current_values[column] = CurrentValue(value, next(results), next(results), plain_text)
    return CurrentRecord(is_allowed, current_values)


def read_permissions(
    context: ReadContext, table: Table, sys_id: str, operations: tuple[str, ...], columns: Iterable[Column]
) -> tuple[set[str], set[Column]]:
    """The operations that the caller may do with a record as it is, and the columns that can be written if WRITE is one
    of them. Locks nothing. Raises 404 if the caller cannot read the record."""
    permissions = context.view.permissions
    writable = tuple(column for column in columns if not table.is_server_managed(column))
    decisions = [permissions.record_decision(operation, table) for operation in operations]
    decisions += [permissions.column_decision(WRITE, table, column) for column in writable]
    allowed = [decision == ALWAYS for decision in decisions]
    if any(decision not in (ALWAYS, NEVER) for decision in decisions):
        statement = context.view.cached(
            ("permissions", table.name, operations, tuple(column.name for column in writable)),
            lambda: permission_queries.decisions_statement(table, [*decisions, context.view.record_decision(table)]),
        )
        ((stored_id, results),) = context.fetch(statement, sys_id=sys_id)
        if stored_id is None or not results[-1]:
            raise record_not_found()
        allowed = results[:-1]
    return set(compress(operations, allowed)), set(compress(writable, allowed[len(operations) :]))


def _split_value(table: Table, column: Column, value: Any) -> tuple[Any, str | None]:
    if column.converted_from_text and value is not None:
        return value[0], value[1]
    return empty_as_null(table, designed_records.decode_value(column, value)), None


def empty_as_null(table: Table, value: Any) -> Any:
    """Return None for an empty text or list of a product table, where a designed table has NULL."""
    return None if table.is_system and value in ("", []) else value


def check_allowed(change: WriteRequest, operation: str, sys_id: str, columns: tuple[Column, ...]) -> None:
    """Check the permissions on the record after the write. A denial rolls the transaction back."""
    context, table = change.context, change.table
    permissions = context.view.permissions
    decisions = permissions.decisions(operation, table, columns)
    if all(decision == ALWAYS for decision in decisions):
        return
    statement = context.view.cached(
        ("check allowed", table.name, operation, tuple(column.name for column in columns)),
        lambda: permission_queries.decisions_statement(table, decisions),
    )
    # The write itself may have changed the version of the catalogue.
    ((_, _, (is_allowed, *columns_allowed)),) = statement_runner.fetch(statement, context.inputs(sys_id=sys_id))
    if not is_allowed:
        raise create_denied_error(context, table) if operation == CREATE else write_denied_error([])
    if not all(columns_allowed):
        if operation == CREATE and not context.view.can_read(table):
            raise create_denied_error(context, table)
        # "Denied: 403 naming only columns that the client sent", not those that PUT empties.
        denied = [column.name for column, is_writable in zip(columns, columns_allowed, strict=True) if not is_writable]
        raise write_denied_error([name for name in denied if name in change.body])


def may_import_ids(view: CallerView, table: Table) -> bool:
    """Whether this caller can import records with their ids."""
    return view.permissions.is_admin and not table.is_system


def create_denied_error(context: ReadContext, table: Table) -> AccessDenied | NotFound:
    """ "403 if the caller can read the table, else 404." """
    if context.view.can_read(table):
        return AccessDenied("You are not allowed to create this record.")
    return NotFound("There is no such table.", code="table_not_found")


class ColumnsDenied(AccessDenied):
    def __init__(self, names: list[str]) -> None:
        super().__init__(f"You are not allowed to write {', '.join(names)}.", field=names[0])
        self.columns = frozenset(names)


def write_denied_error(names: list[str]) -> AccessDenied:
    return ColumnsDenied(names) if names else AccessDenied("You are not allowed to change this record in this way.")


def read_only_error(column: Column) -> BadRequest:
    return BadRequest("This column is read-only. Only the server can write it.", code="read_only", field=column.name)
