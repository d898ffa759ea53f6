"""Reads the body of a write: which columns it names, and the values that these are to have."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping
from typing import Any

from system.errors import BadRequest, Invalid, together
from tableapi.catalogue.column_type import Storage
from tableapi.catalogue.definitions import CREATE, Column
from tableapi.catalogue.value_readers import MOST_REFERENCES
from tableapi.database import statement_runner
from tableapi.query import read_plan
from tableapi.query.expressions import NEVER
from tableapi.read.pipeline import RECORD_ID
from tableapi.values import column_values, display_values

from . import permission_queries
from .change_request import WriteRequest
from .current_record import denied, is_made_here, keeps_ids, no_creation, plain_nothing, read_only

GIVEN_BY_US = re.compile(r"([0-9]{10})[0-9]{8}")
CLOCKS_APART_S = 60

BOTH = {"value", "display_value"}
BOTH_LINKED = BOTH | {"link"}

# Each for all that is so, missing or not there for this caller: they must not tell these apart.
NO_SUCH_RECORD = (
    "No record that you may read has this id; a name in its place is taken with sysparm_input_display_value=1."
)
NOT_ONE_CALLED_SO = (
    'A name is expected here, and exactly one record that you may read must have it; an id is taken as {"value": …}.'
)


def payload_columns(change: WriteRequest) -> dict[Column, Any]:
    """The columns of the body; the same 400 for one that is missing and one that the caller may never read."""
    table, permissions = change.table, change.request.view.permissions
    found, unknown = {}, []
    for name, value in change.body.items():
        column = table.columns.get(name)
        if column is None or not permissions.is_known(table, column):
            unknown.append(BadRequest(f"There is no column {name[:80]}.", code="unknown_field", field=name[:80]))
        else:
            found[column] = value["value"] if shows_both(column, value) else value
    if unknown:
        raise together(unknown)
    return found


def shows_both(column: Column, given: Any) -> bool:
    """Whether this is a value beside how people read it, as `sysparm_display_value=all` answers it: the value counts.

    >>> both = {"value": "1", "display_value": "New"}
    >>> [shows_both(Column("it", kind, "", "it"), both) for kind in ("choice", "json")]
    [True, False]
    """
    # In a JSON column an object is the value itself.
    return not column.column_type.is_json and isinstance(given, dict) and BOTH <= given.keys() <= BOTH_LINKED


def columns_of_new(change: WriteRequest) -> tuple[dict[Column, Any], str | None]:
    """The columns that a new record is to have, and its id if an administrator imports it with one."""
    table, request = change.table, change.request
    found = payload_columns(change)
    sys_id = _imported_id(change, found)
    ours = [each for each in found if is_made_here(table, each) or each.is_sys or each.read_only]
    refused = [read_only(column) for column in ours if found.pop(column) is not None]
    if refused:
        raise together(refused)
    names = [column.name for column in found if request.view.permissions.column(CREATE, table, column) == NEVER]
    if names:
        raise denied(names) if request.view.can_read(table) else no_creation(request, table)
    return found, sys_id


def _imported_id(change: WriteRequest, found: dict[Column, Any]) -> str | None:
    """ "An imported record may keep another id (import by `admin`)." """
    column = change.table.columns["sys_id"]
    if not keeps_ids(change.request.view, change.table) or found.get(column) is None:
        return None
    sys_id = found.pop(column)
    if not isinstance(sys_id, str) or not RECORD_ID.fullmatch(sys_id):
        raise Invalid("An id has 1 to 32 of 0-9 and a-z.", field="sys_id")
    ours = GIVEN_BY_US.fullmatch(sys_id)
    if ours is not None and int(ours[1]) > time.time() - CLOCKS_APART_S:
        # A record that is made then would find its id taken.
        raise Invalid(
            "The service itself may give this id yet: its first ten digits are no time gone by.", field="sys_id"
        )
    return sys_id


def value(change: WriteRequest, column: Column, given: Any) -> Any:
    """What is to be stored for what was sent."""
    if change.by_display and not shows_both(column, change.body.get(column.name)):
        given = _from_display(change, column, given)
    if change.table.is_system and column.column_type.storage in (Storage.HASHED, Storage.JSON):
        return given  # the model has its own way with it
    return plain_nothing(change.table, column_values.read(column, given))


def _from_display(change: WriteRequest, column: Column, given: Any) -> Any:
    if not column.column_type.has_target:
        return display_values.from_display(column, given)
    if column.column_type.is_reference:
        given = _called(given)
    elif given is not None:
        items = [_called(item) for item in given] if isinstance(given, list) else [given]
        names = list(dict.fromkeys(item for item in items if isinstance(item, str) and item))
        ids = _ids_called(change, column, names)
        return [ids[item] if isinstance(item, str) and item else item for item in items]
    return _ids_called(change, column, [given])[given] if isinstance(given, str) and given else given


def _called(given: Any) -> Any:
    """A reference as answers with display values show it: with its link, and without its id."""
    if not isinstance(given, dict) or "display_value" not in given or not given.keys() <= {"display_value", "link"}:
        return given
    name, link = given["display_value"], given.get("link")
    # Nothing is shown of a record that the caller may not read or that has no name; its link says which one it is.
    return {"value": link.rpartition("/")[2]} if name is None and isinstance(link, str) else name


def _ids_called(change: WriteRequest, column: Column, names: list[str]) -> dict[str, str]:
    """For each name the one readable record that is called so."""
    if not names:
        return {}
    view = change.request.view
    target = view.catalogue.tables.get(column.reference or "")
    shown = read_plan.display_path(view, column)
    if len(names) > MOST_REFERENCES:
        raise Invalid(f"At most {MOST_REFERENCES} references are expected.", field=column.name)
    if target is None or shown is None:
        raise Invalid(NOT_ONE_CALLED_SO, field=column.name)
    statement = view.cached(
        ("called", target.name),
        lambda: permission_queries.called(view.permissions, target, shown.column.name, shown.guard),
    )
    texts = {name: display_values.stored_texts(shown.column, name) for name in names}
    called = list(dict.fromkeys(text for each in texts.values() for text in each))
    ids = {
        text: {first, last}
        for text, first, last in statement_runner.fetch(statement, change.request.inputs(called=called))
    }
    found = {name: set().union(*(ids.get(text, set()) for text in each)) for name, each in texts.items()}
    if any(len(each) != 1 for each in found.values()):
        raise Invalid(NOT_ONE_CALLED_SO, field=column.name)
    return {name: next(iter(each)) for name, each in found.items()}


# The table that a column refers to, and whether it holds a list.
Place = tuple[str | None, bool]


def check_references(change: WriteRequest, given: Mapping[Column, Any]) -> bool:
    """A dangling reference and one to a record that the caller may not read are refused alike. Whether anything was
    asked, and so the catalogue was found to be the newest."""
    referring = {
        column: value if isinstance(value, list) else [value]
        for column, value in given.items()
        if column.column_type.has_target and value
    }
    asked: dict[Place, dict[str, None]] = {}
    for column, ids in referring.items():
        asked.setdefault(_place(column), {}).update(dict.fromkeys(ids))
    # One question for all of them; only where something is missing, whose it is.
    missing, was_asked = _missing(change, asked)
    wrong = [
        column
        for column, ids in referring.items()
        if _place(column) in missing and _missing(change, {_place(column): ids})[0]
    ]
    if wrong:
        raise together([Invalid(NO_SUCH_RECORD, field=column.name) for column in wrong])
    return was_asked


def _place(column: Column) -> Place:
    return column.reference, column.column_type.is_list


def _missing(change: WriteRequest, asked: Mapping[Place, Collection[str]]) -> tuple[set[Place], bool]:
    """Where not every record is there for this caller; whether the database was asked."""
    view = change.request.view
    tables = {place: view.catalogue.tables.get(place[0] or "") for place in asked}
    open_ones = [(place, table) for place, table in tables.items() if table is not None and view.can_read(table)]
    counts: dict[Place, int] = {}
    if open_ones:
        places = tuple(place for place, _ in open_ones)
        targets = tuple((table, is_list) for (_, is_list), table in open_ones)
        statement = view.cached(("there", places), lambda: permission_queries.there(view.permissions, targets))
        ids: dict[str, Any] = {f"ids{number}": list(asked[place]) for number, place in enumerate(places)}
        (found,) = statement_runner.without_version(
            statement_runner.fetch(statement, change.request.inputs(**ids)), view.catalogue
        )
        counts = dict(zip(places, found, strict=True))
    return {place for place, wanted in asked.items() if counts.get(place) != len(wanted)}, bool(open_ones)
