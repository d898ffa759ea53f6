"""Answers writes: who may do it, are the values right, then the change and what the caller may see of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction

from system import deletion_log
from system.errors import AccessDenied, BadRequest, Invalid, NotFound, Stale

from . import checks, deferred, designed, plan, reading, references, statements, store, system_records, values
from .access import record_not_found
from .catalogue import CREATE, DELETE, NUMBER, WRITE, Column, Table
from .expressions import NEVER
from .params import Shown
from .reading import RECORD_ID, RecordAnswer, Request

Body = dict[str, Any]

VERSION = statements.Statement("SELECT version FROM public.tableapi_state", ())


@dataclass(frozen=True)
class Written:
    """What a write answers; `answer` is None when the caller may not read what became of it."""

    sys_id: str
    answer: RecordAnswer | None


@dataclass(frozen=True)
class Stored:
    """One column of a record as it stands."""

    value: Any
    is_seen: bool
    is_allowed: bool


@dataclass(frozen=True)
class Standing:
    version: int
    is_allowed: bool
    columns: Mapping[Column, Stored]


@dataclass(frozen=True)
class Change:
    """What a request wants done with one record of a table."""

    request: Request
    table: Table
    body: Body
    shown: Shown
    by_display: bool = False
    is_current: Any = None  # whether If-Match names this version; None without the header


def create(change: Change) -> Written:
    """ "POST needs `create` on the record as it will be and on each column sent." """
    request, table = change.request, change.table
    rights = request.sight.rights
    # No later statement is sure to tell, and one that does comes after a write that may itself raise the version.
    store.current(store.fetch(VERSION, request.inputs), request.sight.catalogue)
    if rights.records(CREATE, table) == NEVER:
        raise _no_creation(request, table)
    look = _prepare_answer(change)
    sent = _columns_sent(change, CREATE)
    sys_id = _own_id(change, sent)
    given = {column: _read(change, column, value) for column, value in sent.items()}
    _check_references(change, given)
    for column in table.columns.values():
        if not column.is_sys and column not in given and (value := values.default(column)) is not None:
            given[column] = value
    for column in table.columns.values():
        if not column.is_sys and not _is_made_here(table, column) and not table.is_system:
            values.check_mandatory(column, given.get(column))

    def make() -> Written:
        new_id = _insert(change, given, sys_id)
        _check_allowed(change, CREATE, new_id, tuple(sent))
        return Written(new_id, look(new_id))

    return _later(change, given, make) if table.deferred_create else make()


def _later(change: Change, given: dict[Column, Any], make: Callable[[], Written]) -> Written:
    """ "Validated at once, kept as a row of a queue table, created by the worker": tried and undone, so that every rule
    and every constraint has been asked."""
    table = change.table
    mark = transaction.savepoint()
    written = make()
    number = table.columns.get(NUMBER)
    if number is not None and table.number_prefix:
        given[number] = designed.stored(table, written.sys_id)[NUMBER]
    transaction.savepoint_rollback(mark)
    deferred.accept(table, written.sys_id, given)
    if written.answer is None:
        return written
    # "dot-walking yields `null`": there is no record yet that a path could start from.
    shown = {name: None if "." in name else value for name, value in json.loads(written.answer.body).items()}
    body = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    return replace(written, answer=replace(written.answer, body=body))


def _insert(change: Change, given: Mapping[Column, Any], sys_id: str | None) -> str:
    if change.table.is_system:
        return system_records.insert(change.table, given)
    with _naming_only(change.body):
        return designed.insert(change.request.sight.catalogue, change.table, given, sys_id)


def change_record(change: Change, sys_id: str, *, replaces: bool) -> Written:
    """PUT and PATCH: `write` before and after, and on each column whose value changes."""
    table = change.table
    look = _prepare_answer(change)
    sent = _columns_sent(change, WRITE, is_new=False)
    columns = tuple(table.columns.values()) if replaces else tuple(sent)
    stand = _standing(change, sys_id, WRITE, columns)
    if not stand.is_allowed:
        raise AccessDenied("You have no access to change this record.")
    given = {}
    for column, value in sent.items():
        found = _changed(change, column, value, stand.columns[column], replaces=replaces)
        if found is not UNCHANGED:
            given[column] = found
    denied = [column.name for column in given if not stand.columns[column].is_allowed]
    if denied:
        raise _denied(denied)
    if replaces:
        given |= _left_out(table, sent, stand)
    _check_references(change, given)
    for column, value in given.items():
        values.check_mandatory(column, value)
    for column, stored in stand.columns.items() if replaces else ():
        # "A missing mandatory column is a 422", also where it was missing before.
        if column not in given and _is_theirs(table, column, stored):
            values.check_mandatory(column, stored.value)
    if given:
        _update(change, sys_id, given)
        _check_allowed(change, WRITE, sys_id, tuple(given))
    return Written(sys_id, look(sys_id))


def _update(change: Change, sys_id: str, given: Mapping[Column, Any]) -> None:
    if change.table.is_system:
        system_records.update(change.table, sys_id, given)
    else:
        with _naming_only(change.body):
            designed.update(change.request.sight.catalogue, change.table, sys_id, given)


def delete(change: Change, sys_id: str) -> None:
    """Delete, with its entry in the Record Deletion Log in the same transaction."""
    catalogue, table = change.request.sight.catalogue, change.table
    own_columns = tuple(column for column in table.columns.values() if column.name == "sys_db_table_id")
    stand = _standing(change, sys_id, DELETE, own_columns)
    if not stand.is_allowed:
        raise AccessDenied("You have no access to delete the records.")
    if table.is_system:
        system_records.delete(table, sys_id)  # which releases what refers to it, as in the admin
        return
    own = catalogue.tables_by_id.get(stand.columns[own_columns[0]].value, table)
    references.release(catalogue, own, sys_id)
    kept = designed.stored(own, sys_id)
    shown = own.display_column
    deletion_log.write(own.name, sys_id, str((kept.get(shown.name) if shown else None) or sys_id), kept)
    designed.delete(own, sys_id)


# What every write asks first.


def _prepare_answer(change: Change) -> Callable[[str], RecordAnswer | None]:
    """The way to the answer, checked before anything is written: a wrong field list must not cost a record."""
    request, table, shown = change.request, change.table, change.shown
    can_read = request.sight.can_read(table)
    read = plan.read(request.sight, table, fields=shown.fields, view=shown.view) if can_read else None
    if read is None and (shown.fields or shown.view):
        raise BadRequest("None of the fields asked for is there.", code="no_fields", field="sysparm_fields")
    look = reading.style(shown)

    def answer(sys_id: str) -> RecordAnswer | None:
        if read is None:
            return None
        key = ("record", table.name, shown, look)
        _, statement = request.sight.kept(key, lambda: (read, statements.record(read, look)))
        ((_, version, body),) = store.fetch(statement, replace(request.inputs, given={"sys_id": sys_id}))
        return RecordAnswer(body, version, read.ignored) if body is not None else None

    return answer


def _columns_sent(change: Change, operation: str, *, is_new: bool = True) -> dict[Column, Any]:
    """The columns of the body; the same 400 for one that is missing and one that the caller may never read."""
    table, rights = change.table, change.request.sight.rights
    found = {}
    for name, value in change.body.items():
        column = table.columns.get(name)
        if column is None or not rights.is_known(table, column):
            raise BadRequest(f"There is no column {name[:80]}.", code="unknown_field", field=name[:80])
        found[column] = value
    if is_new:
        for column in list(found):
            if _is_made_here(table, column) or column.is_sys or column.read_only:
                if found[column] is not None and not _is_import(change, column):
                    raise _read_only(column)
                if not _is_import(change, column):
                    del found[column]
        denied = [column.name for column in found if rights.column(operation, table, column) == NEVER]
        if denied:
            raise _denied(denied) if change.request.sight.can_read(table) else _no_creation(change.request, table)
    return found


def _is_made_here(table: Table, column: Column) -> bool:
    return column.name == NUMBER and bool(table.number_prefix)


def _is_import(change: Change, column: Column) -> bool:
    """ "An imported record may keep another id (import by `admin`)." """
    is_id = column.name == "sys_id" and not change.table.is_system
    return is_id and change.request.sight.rights.is_admin and change.body.get("sys_id") is not None


def _own_id(change: Change, sent: dict[Column, Any]) -> str | None:
    column = change.table.columns["sys_id"]
    if column not in sent:
        return None
    sys_id = sent.pop(column)
    if not isinstance(sys_id, str) or not RECORD_ID.fullmatch(sys_id):
        raise Invalid("An id has 1 to 32 of 0-9 and a-z.", field="sys_id")
    return sys_id


def _standing(change: Change, sys_id: str, operation: str, columns: tuple[Column, ...]) -> Standing:
    request, table = change.request, change.table
    if not RECORD_ID.fullmatch(sys_id) or not request.sight.can_read(table):
        raise record_not_found()
    names = tuple(column.name for column in columns)
    statement = request.sight.kept(
        ("standing", table.name, operation, names),
        lambda: checks.standing(request.sight.rights, table, operation, columns),
    )
    rows = store.fetch(statement, replace(request.inputs, given={"sys_id": sys_id}))
    ((version, is_allowed, *rest),) = store.current(rows, request.sight.catalogue)
    if version is None:
        raise record_not_found()
    if change.is_current is not None and not change.is_current(version):
        raise Stale
    stored = {
        column: Stored(_plain(table, designed.loaded(column, rest[3 * at])), *rest[3 * at + 1 : 3 * at + 3])
        for at, column in enumerate(columns)
    }
    return Standing(version, is_allowed, stored)


def _plain(table: Table, value: Any) -> Any:
    """The models hold an empty text or list for nothing, where a designed table has NULL."""
    return None if table.is_system and value in ("", []) else value


UNCHANGED = object()


def _changed(change: Change, column: Column, value: Any, stored: Stored, *, replaces: bool) -> Any:
    """The value to store, or UNCHANGED. One that the caller does not see always counts as changed: whether it was the
    same must not show."""
    if column.is_sys or column.read_only or _is_made_here(change.table, column):
        if stored.is_seen and _is_same_shown(column, stored.value, value):
            return UNCHANGED
        raise _read_only(column)
    if column.type == "json" and not replaces and isinstance(value, dict):
        value = values.merged(stored.value, value)
    new = _read(change, column, value)
    if stored.is_seen and _is_converted(column, stored.value, value):
        return UNCHANGED
    return UNCHANGED if stored.is_seen and values.is_same(column, stored.value, new) else new


def _is_same_shown(column: Column, stored: Any, value: Any) -> bool:
    if value is None and stored in ("", []):
        return True  # "`null` for empty"
    if _is_converted(column, stored, value):
        return True
    try:
        return values.is_same(column, stored, values.read(column, value))
    except Invalid:
        return False


def _is_converted(column: Column, stored: Any, value: Any) -> bool:
    """Whether this is what a converted text column reads as: sent back, it must not take the formatting away, nor
    what only looks like a tag in a text from before."""
    return column.converted_from_text and value in (stored, values.plain_of(column, stored))


def _is_theirs(table: Table, column: Column, stored: Stored) -> bool:
    """Whether the caller both sees and writes the column of this record."""
    is_ours = column.is_sys or column.read_only or _is_made_here(table, column)
    return stored.is_seen and stored.is_allowed and not is_ours


def _left_out(table: Table, sent: Iterable[Column], stand: Standing) -> dict[Column, Any]:
    """ "Writable columns left out get their default or null"; what the caller does not see or write stays."""
    found = {}
    for column, stored in stand.columns.items():
        if column in sent or not column.is_readable or not _is_theirs(table, column, stored):
            continue
        value = values.default(column)
        if not values.is_same(column, stored.value, value):
            found[column] = value
    return found


def _read(change: Change, column: Column, value: Any) -> Any:
    if change.by_display:
        value = _from_display(change, column, value)
    if change.table.is_system and column.type in ("password", "secret", "json"):
        return value  # the model has its own way with it
    return _plain(change.table, values.read(column, value))


def _from_display(change: Change, column: Column, value: Any) -> Any:
    if column.type == "list":
        items = value if isinstance(value, list) else [value]
        return [_id_of(change, column, item) for item in items] if value is not None else None
    return _id_of(change, column, value) if column.type == "reference" else values.from_display(column, value)


def _id_of(change: Change, column: Column, value: Any) -> Any:
    """The one readable record that is called so."""
    if not isinstance(value, str) or value == "":
        return value
    sight = change.request.sight
    target = sight.catalogue.tables.get(column.reference or "")
    shown = plan.display_leaf(sight, column)
    if target is None or shown is None:
        raise _no_such_record(column)
    statement = sight.kept(
        ("called", target.name), lambda: checks.called(sight.rights, target, shown.column.name, shown.guard)
    )
    rows = store.fetch(statement, replace(change.request.inputs, given={"called": value}))
    if len(rows) != 1:
        raise _no_such_record(column)
    return rows[0][0]


def _check_references(change: Change, given: Mapping[Column, Any]) -> None:
    """A dangling reference and one to a record that the caller may not read are refused alike."""
    sight = change.request.sight
    for column, value in given.items():
        if column.type not in ("reference", "list") or not value:
            continue
        target = sight.catalogue.tables.get(column.reference or "")
        if target is None or not sight.can_read(target):
            raise _no_such_record(column)
        ids = value if isinstance(value, list) else [value]
        statement = sight.kept(("there", target.name), lambda target=target: checks.there(sight.rights, target))
        ((count,),) = store.fetch(statement, replace(change.request.inputs, given={"ids": ids}))
        if count != len(ids):
            raise _no_such_record(column)


def _check_allowed(change: Change, operation: str, sys_id: str, columns: tuple[Column, ...]) -> None:
    """On the record as it has become; what is denied here is undone with the transaction."""
    request, table = change.request, change.table
    rights = request.sight.rights
    if not checks.is_conditional(rights, table, operation, columns):
        return
    statement = request.sight.kept(
        ("allowed", table.name, operation, tuple(column.name for column in columns)),
        lambda: checks.allowed(rights, table, operation, columns),
    )
    ((is_allowed, *each),) = store.fetch(statement, replace(request.inputs, given={"sys_id": sys_id}))
    if not is_allowed:
        raise (
            _no_creation(request, table)
            if operation == CREATE
            else AccessDenied("You have no access to change this record in this way.")
        )
    if not all(each):
        if operation == CREATE and not request.sight.can_read(table):
            raise _no_creation(request, table)
        # "Denied: 403 naming only columns that the client sent": one that PUT empties was not.
        named = [column.name for column, holds in zip(columns, each, strict=True) if not holds]
        raise _denied([name for name in named if name in change.body])


def _no_creation(request: Request, table: Table) -> AccessDenied | NotFound:
    if request.sight.can_read(table):
        return AccessDenied("You have no access to create this record.")
    return NotFound("There is no such table.", code="table_not_found")


def _denied(names: list[str]) -> AccessDenied:
    if not names:
        return AccessDenied("You have no access to change this record in this way.")
    return AccessDenied(f"You have no access to write {', '.join(names)}.", field=names[0])


def _read_only(column: Column) -> BadRequest:
    return BadRequest("Only the server writes this column.", code="read_only", field=column.name)


def _no_such_record(column: Column) -> Invalid:
    return Invalid("The record referred to is not there.", field=column.name)


@contextmanager
def _naming_only(body: Body) -> Iterator[None]:
    """Takes the column's name out of an error when the caller did not send it."""
    try:
        yield
    except designed.Duplicate as error:
        if error.field not in body:
            error.field = None
        raise
