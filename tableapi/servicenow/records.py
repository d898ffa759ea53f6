"""Reads and writes records for the dialect, with the reads and writes of the Table API."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any
from uuid import uuid4

from system import properties
from system.property_definitions import SERVICENOW_LONG_IDS, SERVICENOW_TABLES
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import CREATE, WRITE, Catalogue, Column, Table
from tableapi.query.expressions import NEVER
from tableapi.query.parameters import ListRequest, OutputOptions, RawParameters
from tableapi.read import pipeline
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller
from tableapi.read.list_page import ListResult
from tableapi.read.pipeline import RecordResult
from tableapi.write import create, delete, update
from tableapi.write.current_record import ColumnsDenied, may_import_ids
from tableapi.write.write_request import WriteInput, WriteRequest, WriteResult, write

from . import parameters
from .errors import InvalidTable
from .names import ServiceNowNames

LONG_ID = re.compile("[0-9a-f]{32}", re.IGNORECASE)


@lru_cache(maxsize=16)
def _names_with(pairs: tuple[str, ...]) -> ServiceNowNames:
    return ServiceNowNames(tuple((foreign, own) for foreign, _, own in (pair.partition("=") for pair in pairs)))


def current_names() -> ServiceNowNames:
    return _names_with(properties.get(SERVICENOW_TABLES))


def open_table(view: CallerView, names: ServiceNowNames, name: str) -> Table:
    """Return the table. Raises the same error if it does not exist and if the caller cannot read it."""
    table = names.find_table(view, name)
    if table is None:
        raise InvalidTable(name)
    return table


@on_current_catalogue
def read_list(
    catalogue: Catalogue, caller: Caller, table_name: str, raw: RawParameters
) -> tuple[ListRequest, ListResult]:
    context, names = caller.context(catalogue), current_names()
    table = open_table(context.view, names, table_name)
    request = parameters.parse_list(raw, context.view, table, names)
    return request, pipeline.fetch_list(context, table.name, request)


@on_current_catalogue
def read_record(catalogue: Catalogue, caller: Caller, table_name: str, sys_id: str, raw: RawParameters) -> RecordResult:
    context, names = caller.context(catalogue), current_names()
    table = open_table(context.view, names, table_name)
    return pipeline.fetch_record(context, table, sys_id.lower(), parameters.parse_output(raw, names))


def write_record(
    caller: Caller,
    table_name: str,
    body: Mapping[str, Any],
    output: OutputOptions,
    *,
    sys_id: str = "",
    uses_display_values: bool = False,
    is_current: Callable[[int | None], bool] | None = None,
) -> tuple[WriteResult, list[str]]:
    """Create a record, or change the one with this id. Returns the result and the names of the ignored columns."""
    names, ignored, denied = current_names(), list[str](), set[str]()

    def run(change: WriteRequest) -> WriteResult:
        values = _values_to_write(change, body, names, ignored, denied, is_new=not sys_id)
        if sys_id:
            return update.update(replace(change, body=values), sys_id=sys_id.lower(), replaces=False)
        return _create(replace(change, body=values), body.get("sys_id"))

    change, native_name = (
        WriteInput({}, output, uses_display_values, is_current),
        _native_name(caller, names, table_name),
    )
    while True:
        try:
            return write(caller, native_name, change, run), ignored
        except ColumnsDenied as error:  # by a rule whose condition this record does not meet
            if error.columns <= denied:
                raise
            denied |= error.columns


def _create(change: WriteRequest, sent_id: Any) -> WriteResult:
    """Create the record, with the id that was sent, or a long one, if that is possible."""
    if change.table.is_system:
        return create.create(change)
    if not isinstance(sent_id, str) or not LONG_ID.fullmatch(sent_id):
        if sent_id and may_import_ids(change.context.view, change.table):
            return create.create(replace(change, body={**change.body, "sys_id": sent_id}))
        return create.create(replace(change, chosen_id=uuid4().hex if properties.get(SERVICENOW_LONG_IDS) else None))
    chosen_id = sent_id.lower()
    result = create.create(replace(change, chosen_id=chosen_id))
    if result.record is None:
        return result
    body = result.record.body.replace(f'"{chosen_id}"'.encode(), f'"{sent_id}"'.encode())
    return replace(result, sys_id=sent_id, record=replace(result.record, body=body))


def delete_record(
    caller: Caller, table_name: str, sys_id: str, is_current: Callable[[int | None], bool] | None
) -> None:
    names = current_names()
    change = WriteInput({}, OutputOptions(names=names), is_current=is_current)
    native_name = _native_name(caller, names, table_name)
    write(caller, native_name, change, partial(delete.delete, sys_id=sys_id.lower()))


@on_current_catalogue
def _native_name(catalogue: Catalogue, caller: Caller, names: ServiceNowNames, table_name: str) -> str:
    return open_table(caller.context(catalogue).view, names, table_name).name


def _values_to_write(
    change: WriteRequest,
    body: Mapping[str, Any],
    names: ServiceNowNames,
    ignored: list[str],
    denied: set[str],
    *,
    is_new: bool,
) -> dict[str, Any]:
    """Return the values that the caller may write; others are ignored, as ServiceNow does."""
    view, table = change.context.view, change.table
    operation = CREATE if is_new else WRITE
    values: dict[str, Any] = {}
    ignored.clear()  # the write may be repeated with a newer catalogue
    for key, value in body.items():
        paths = names.paths(view.catalogue, table, key)
        path = ".".join(paths[0]) if len(paths) == 1 else ""
        column = view.permissions.visible_column(table, path)
        if column is None or table.is_server_managed(column):
            continue
        if column.name in denied or view.permissions.column_decision(operation, table, column) == NEVER:
            ignored.append(key)
        else:
            values[path] = _plain_value(column, value)
    return values


def _plain_value(column: Column, value: Any) -> Any:
    """The value of `{"value": …}`, as responses return references, and a list instead of comma-separated ids."""
    if isinstance(value, dict) and "value" in value and not column.column_type.is_json:
        value = value["value"]
    if column.column_type.is_list and isinstance(value, str):
        return [item for part in value.split(",") if (item := part.strip())]
    return value
