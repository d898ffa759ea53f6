"""Reads the body of a write: which columns it names, and the values that these are to have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from system.errors import BadRequest, Invalid

from . import checks, plan, store, values
from .catalogue import CREATE, Column, Table
from .change import Change
from .expressions import NEVER
from .reading import RECORD_ID
from .standing import denied, is_made_here, no_creation, plain_nothing, read_only


def columns(change: Change) -> dict[Column, Any]:
    """The columns of the body; the same 400 for one that is missing and one that the caller may never read."""
    table, rights = change.table, change.request.sight.rights
    found = {}
    for name, value in change.body.items():
        column = table.columns.get(name)
        if column is None or not rights.is_known(table, column):
            raise BadRequest(f"There is no column {name[:80]}.", code="unknown_field", field=name[:80])
        found[column] = value
    return found


def columns_of_new(change: Change) -> tuple[dict[Column, Any], str | None]:
    """The columns that a new record is to have, and its id if an administrator imports it with one."""
    table, request = change.table, change.request
    found = columns(change)
    sys_id = _imported_id(change, found)
    for column in list(found):
        is_ours = is_made_here(table, column) or column.is_sys or column.read_only
        if is_ours and found.pop(column) is not None:
            raise read_only(column)
    names = [column.name for column in found if request.sight.rights.column(CREATE, table, column) == NEVER]
    if names:
        raise denied(names) if request.sight.can_read(table) else no_creation(request, table)
    return found, sys_id


def _imported_id(change: Change, found: dict[Column, Any]) -> str | None:
    """ "An imported record may keep another id (import by `admin`)." """
    column = change.table.columns["sys_id"]
    is_import = change.request.sight.rights.is_admin and not change.table.is_system
    if not is_import or found.get(column) is None:
        return None
    sys_id = found.pop(column)
    if not isinstance(sys_id, str) or not RECORD_ID.fullmatch(sys_id):
        raise Invalid("An id has 1 to 32 of 0-9 and a-z.", field="sys_id")
    return sys_id


def value(change: Change, column: Column, given: Any) -> Any:
    """What is to be stored for what was sent."""
    if change.by_display:
        given = _from_display(change, column, given)
    if change.table.is_system and column.type in ("password", "secret", "json"):
        return given  # the model has its own way with it
    return plain_nothing(change.table, values.read(column, given))


def _from_display(change: Change, column: Column, given: Any) -> Any:
    if column.type == "list" and given is not None:
        items = given if isinstance(given, list) else [given]
        names = list(dict.fromkeys(item for item in items if isinstance(item, str) and item))
        ids = _ids_called(change, column, names)
        return [ids[item] if isinstance(item, str) and item else item for item in items]
    if column.type == "reference" and isinstance(given, str) and given:
        return _ids_called(change, column, [given])[given]
    return given if column.type in ("reference", "list") else values.from_display(column, given)


def _ids_called(change: Change, column: Column, names: list[str]) -> dict[str, str]:
    """For each name the one readable record that is called so."""
    sight = change.request.sight
    target = sight.catalogue.tables.get(column.reference or "")
    shown = plan.display_leaf(sight, column)
    if target is None or shown is None or len(names) > values.MOST_REFERENCES:
        raise _no_such_record(column)
    statement = sight.kept(
        ("called", target.name), lambda: checks.called(sight.rights, target, shown.column.name, shown.guard)
    )
    rows = store.fetch(statement, replace(change.request.inputs, given={"called": names}))
    found = {name: first for name, first, last in rows if first == last}
    if set(found) != set(names):
        raise _no_such_record(column)
    return found


def check_references(change: Change, given: Mapping[Column, Any]) -> None:
    """A dangling reference and one to a record that the caller may not read are refused alike."""
    referring = {
        column: value if isinstance(value, list) else [value]
        for column, value in given.items()
        if column.type in ("reference", "list") and value
    }
    asked: dict[tuple[str | None, bool], dict[str, None]] = {}
    for column, ids in referring.items():
        asked.setdefault((column.reference, column.type == "list"), {}).update(dict.fromkeys(ids))
    # One question for all that refer to the same table; only where something is missing, whose it is.
    missing = {place for place, ids in asked.items() if not _are_there(change, *place, list(ids))}
    for column, ids in referring.items():
        place = (column.reference, column.type == "list")
        if place in missing and not _are_there(change, *place, ids):
            raise _no_such_record(column)


def _are_there(change: Change, name: str | None, is_list: bool, ids: list[str]) -> bool:
    sight = change.request.sight
    target: Table | None = sight.catalogue.tables.get(name or "")
    if target is None or not sight.can_read(target):
        return False
    statement = sight.kept(
        ("there", target.name, is_list), lambda: checks.there(sight.rights, target, for_lists=is_list)
    )
    ((count,),) = store.fetch(statement, replace(change.request.inputs, given={"ids": ids}))
    return bool(count == len(ids))


def _no_such_record(column: Column) -> Invalid:
    return Invalid("The record referred to is not there.", field=column.name)
