"""Reads the body of a write: its columns, and the values to store."""

import re
import time
from collections.abc import Mapping
from typing import Any

from system.errors import BadRequest, InvalidInput, InvalidParameter, combine_errors
from tableapi.catalogue.column_type import StorageFormat
from tableapi.catalogue.definitions import CREATE, NUMBER_COLUMN, Column
from tableapi.catalogue.value_readers import MAX_REFERENCES
from tableapi.database import statement_runner
from tableapi.query import read_plan
from tableapi.query.expressions import NEVER
from tableapi.read.context import ReadContext
from tableapi.read.pipeline import RECORD_ID
from tableapi.values import column_values, display_values

from . import permission_queries
from .current_record import create_denied_error, empty_as_null, may_import_ids, read_only_error, write_denied_error
from .write_request import WriteRequest

GENERATED_ID = re.compile(r"([0-9]{10})[0-9]{8}")
CLOCK_SKEW_S = 60
# Columns set by the server that an administrator can import, in addition to the id.
IMPORTED_COLUMNS = frozenset({NUMBER_COLUMN, "sys_created_at", "sys_created_by", "sys_updated_at", "sys_updated_by"})

VALUE_KEYS = {"value", "display_value"}
REFERENCE_KEYS = VALUE_KEYS | {"link"}

# The same message for a missing record and one that the caller cannot read, so that it does not reveal which.
RECORD_NOT_FOUND = (
    "A reference must be the ID of a record that you can read. To send display values, set "
    "sysparm_input_display_value=1."
)
NAME_EXPECTED = "Expected the display value of exactly one record that you can read."
NAME_NOT_UNIQUE = f'{NAME_EXPECTED} To send an ID, use {{"value": …}}.'


def read_columns(change: WriteRequest) -> dict[Column, Any]:
    """Return the columns in the body. Missing columns and columns that the caller can never read give the same 400."""
    table, permissions = change.table, change.context.view.permissions
    values, errors = {}, []
    for name, value in change.body.items():
        column = permissions.visible_column(table, name)
        if column is None:
            errors.append(BadRequest(f'There is no column named "{name[:80]}".', code="unknown_field", field=name[:80]))
        else:
            values[column] = value["value"] if has_value_and_display(column, value) else value
    if errors:
        raise combine_errors(errors)
    return values


def has_value_and_display(column: Column, value: Any) -> bool:
    """Whether this is a value with its display value, as `sysparm_display_value=all` returns it. The value is stored.

    >>> both = {"value": "1", "display_value": "New"}
    >>> [has_value_and_display(Column("it", kind, "", "it"), both) for kind in ("choice", "json")]
    [True, False]
    """
    # In a JSON column an object is the value itself.
    return not column.column_type.is_json and isinstance(value, dict) and VALUE_KEYS <= value.keys() <= REFERENCE_KEYS


def new_record_columns(change: WriteRequest) -> tuple[dict[Column, Any], str | None]:
    """Return the columns sent for a new record, and its id if an administrator imports one."""
    table, view = change.table, change.context.view
    if change.is_import and table.is_system:
        raise InvalidParameter("Only records of designed tables can be imported.", field="sysparm_import")
    values = read_columns(change)
    sys_id = change.chosen_id or _imported_id(change, values)
    read_only = [
        column
        for column in values
        if table.is_server_managed(column)
        and not (change.is_import and (column.name in IMPORTED_COLUMNS or table.is_set_on_change(column)))
    ]
    errors = [read_only_error(column) for column in read_only if values.pop(column) is not None]
    if errors:
        raise combine_errors(errors)
    names = [column.name for column in values if view.permissions.column_decision(CREATE, table, column) == NEVER]
    if names:
        raise write_denied_error(names) if view.can_read(table) else create_denied_error(change.context, table)
    return values, sys_id


def _imported_id(change: WriteRequest, values: dict[Column, Any]) -> str | None:
    """ "An imported record may keep another id (import by `admin`)." """
    column = change.table.columns["sys_id"]
    if not may_import_ids(change.context.view, change.table) or values.get(column) is None:
        return None
    sys_id = values.pop(column)
    if not isinstance(sys_id, str) or not RECORD_ID.fullmatch(sys_id):
        raise InvalidInput("An ID must consist of 1 to 32 lowercase letters and digits.", field="sys_id")
    match = GENERATED_ID.fullmatch(sys_id)
    if match is not None and int(match[1]) > time.time() - CLOCK_SKEW_S:
        # A record created at that time could get the same id.
        raise InvalidInput(
            "This ID starts with a current or future Unix time, so the service could generate it for a new record.",
            field="sys_id",
        )
    return sys_id


def parse_value(change: WriteRequest, column: Column, value: Any) -> Any:
    if change.uses_display_values and not has_value_and_display(column, change.body.get(column.name)):
        value = _parse_display(change, column, value)
    if (
        change.table.is_system
        and not column.is_custom
        and column.column_type.storage in (StorageFormat.HASHED, StorageFormat.JSON)
    ):
        return value  # the model converts it
    return empty_as_null(change.table, column_values.parse(column, value))


def _parse_display(change: WriteRequest, column: Column, value: Any) -> Any:
    if not column.column_type.has_target:
        return display_values.parse_display_value(column, value)
    if column.column_type.is_reference:
        value = _displayed_reference(value)
    elif value is not None:
        items = [_displayed_reference(item) for item in value] if isinstance(value, list) else [value]
        names = list(dict.fromkeys(item for item in items if isinstance(item, str) and item))
        ids = ids_by_display_value(change.context, column, names)
        return [ids[item] if isinstance(item, str) and item else item for item in items]
    return ids_by_display_value(change.context, column, [value])[value] if isinstance(value, str) and value else value


def _displayed_reference(value: Any) -> Any:
    """Return the display value or id of a reference in the form of responses with display values, which have no id."""
    if not isinstance(value, dict) or "display_value" not in value or not value.keys() <= {"display_value", "link"}:
        return value
    name, link = value["display_value"], value.get("link")
    # If the display value is missing or unreadable, the link identifies the record.
    return {"value": link.rpartition("/")[2]} if name is None and isinstance(link, str) else name


def ids_by_display_value(context: ReadContext, column: Column, names: list[str]) -> dict[str, str]:
    """Return the id of the only readable record with each display value."""
    if not names:
        return {}
    view = context.view
    target = view.catalogue.tables.get(column.reference or "")
    path = read_plan.display_path(view, column)
    if len(names) > MAX_REFERENCES:
        raise InvalidInput(f"Expected at most {MAX_REFERENCES} references.", field=column.name)
    if target is None or path is None:
        raise InvalidInput(NAME_NOT_UNIQUE, field=column.name)
    statement = view.cached(
        ("display values", target.name),
        lambda: permission_queries.display_value_statement(view.permissions, target, path.column.name, path.guard),
    )
    texts_by_name = {name: display_values.stored_texts(path.column, name) for name in names}
    all_texts = list(dict.fromkeys(text for alternatives in texts_by_name.values() for text in alternatives))
    ids = {
        text: {first, last} for text, first, last in statement_runner.fetch(statement, context.inputs(names=all_texts))
    }
    matches = {name: set().union(*(ids.get(text, set()) for text in stored)) for name, stored in texts_by_name.items()}
    if any(len(candidates) != 1 for candidates in matches.values()):
        raise InvalidInput(NAME_NOT_UNIQUE, field=column.name)
    return {name: next(iter(candidates)) for name, candidates in matches.items()}


def check_references(change: WriteRequest, values: Mapping[Column, Any]) -> bool:
    """Refuse references to missing records and to unreadable ones with the same error. Returns whether the database was
    queried, which also confirms that the catalogue is current."""
    view = change.context.view
    references = {
        column: list(dict.fromkeys(value if isinstance(value, list) else [value]))
        for column, value in values.items()
        if column.column_type.has_target and value
    }
    tables = [(column, view.catalogue.tables.get(column.reference or "")) for column in references]
    readable = {column: table for column, table in tables if table is not None and view.can_read(table)}
    counts: dict[Column, int] = {}
    if readable:
        statement = view.cached(
            ("counts", change.table.name, tuple(column.name for column in readable)),
            lambda: permission_queries.count_readable_statement(
                view.permissions, tuple((table, column.column_type.is_list) for column, table in readable.items())
            ),
        )
        ids: dict[str, Any] = {f"ids{number}": references[column] for number, column in enumerate(readable)}
        (row,) = change.context.fetch(statement, **ids)
        counts = dict(zip(readable, row, strict=True))
    missing = [column for column, ids in references.items() if counts.get(column) != len(ids)]
    if missing:
        raise combine_errors([InvalidInput(RECORD_NOT_FOUND, field=column.name) for column in missing])
    return bool(readable)
