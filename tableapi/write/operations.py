"""Answers writes: who may do it, are the values right, then the change and what the caller may see of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from django.db import transaction

from system import deletion_log
from system.errors import AccessDenied, Conflict, Invalid, together
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import CREATE, DELETE, DISPLAY_NAME, NUMBER, OWN_TABLE, WRITE, Column, Table
from tableapi.database import statement_runner
from tableapi.query import read_plan
from tableapi.query.expressions import NEVER
from tableapi.read import pipeline
from tableapi.read.pipeline import RecordResult
from tableapi.values import defaults

from . import changes, current_record, deferred_records, designed_records, payload, references, system_records
from .change_request import WriteRequest, WriteResult
from .current_record import CurrentRecord, check_allowed, is_made_here
from .prevalidation import prevalidate


def create(change: WriteRequest) -> WriteResult:
    """ "POST needs `create` on the record as it will be and on each column sent." """
    request, table = change.request, change.table
    if request.view.permissions.records(CREATE, table) == NEVER:
        raise current_record.no_creation(request, table)
    look = _prepare_answer(change)
    named, sys_id = payload.columns_of_new(change)
    given: dict[Column, Any] = {}
    wrong: list[Invalid] = []
    for column, value in named.items():
        with _noted(wrong):
            given[column] = payload.value(change, column, value)
    has_told_version = False
    with _noted(wrong):
        has_told_version = payload.check_references(change, given)
    if not has_told_version:
        # Before anything is written: a write may itself raise the version, and takes a number that would be lost.
        statement_runner.check_version(request.inputs())
    _complete(change, given, named, wrong)
    if wrong:
        raise together(wrong)

    def make() -> WriteResult:
        new_id = _insert(change, given, sys_id)
        check_allowed(change, CREATE, new_id, tuple(named))
        return WriteResult(new_id, look(new_id))

    return _later(change, given, make) if table.deferred_create else make()


@contextmanager
def _noted(wrong: list[Invalid]) -> Iterator[None]:
    """Goes on after what is wrong with one column, so that all of it is told at once."""
    try:
        yield
    except Invalid as error:
        if error.as_items() not in [each.as_items() for each in wrong]:
            wrong.append(error)


def _complete(
    change: WriteRequest, given: dict[Column, Any], named: Mapping[Column, Any], wrong: list[Invalid]
) -> None:
    """Defaults for what was not sent, and a word about what is still missing."""
    view, table = change.request.view, change.table
    concerned = view.cached(
        ("completed", table.name),
        lambda: [each for each in table.columns.values() if not each.is_sys and (each.default or each.mandatory)],
    )
    for column in concerned:
        if column in named and column not in given:
            continue  # what was sent for it is wrong, and told already
        if column not in given and (value := defaults.default(column)) is not None:
            given[column] = value
        if not is_made_here(table, column) and not table.is_system:
            with _noted(wrong):
                _need(view, table, column, given.get(column))


def _need(view: CallerView, table: Table, column: Column, value: Any) -> None:
    """That something is missing is told; which column, only to somebody for whom it is there."""
    try:
        defaults.check_mandatory(column, value)
    except Invalid as error:
        if not view.permissions.is_known(table, column):
            error.field = None
        raise


def _later(change: WriteRequest, given: dict[Column, Any], make: Callable[[], WriteResult]) -> WriteResult:
    """ "Validated at once, kept as a row of a queue table, created by the worker": tried and undone, so that every rule
    and every constraint has been asked."""
    table = change.table
    mark = transaction.savepoint()
    written = make()
    tried = designed_records.stored(table, written.sys_id)
    transaction.savepoint_rollback(mark)
    for name in (NUMBER, DISPLAY_NAME):  # given out already, as the answer tells
        if name in table.columns and tried.get(name) is not None:
            given[table.columns[name]] = tried[name]
    deferred_records.accept(table, written.sys_id, given)
    if written.answer is None:
        return written
    # "dot-walking yields `null`": there is no record yet that a path could start from.
    shown = {name: None if "." in name else value for name, value in json.loads(written.answer.body).items()}
    body = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    return replace(written, answer=replace(written.answer, body=body.encode()))


def _insert(change: WriteRequest, given: Mapping[Column, Any], sys_id: str | None) -> str:
    with _naming_what_is_known(change):
        if change.table.is_system:
            return system_records.insert(change.table, given)
        return designed_records.insert(change.request.view.catalogue, change.table, given, sys_id)


def change_record(change: WriteRequest, sys_id: str, *, replaces: bool) -> WriteResult:
    """PUT and PATCH: `write` before and after, and on each column whose value changes."""
    table = change.table
    look = _prepare_answer(change)
    named = payload.payload_columns(change)
    found_ahead = prevalidate(change, sys_id, named)
    stand = current_record.lock_current_record(
        change, sys_id, WRITE, tuple(table.columns.values()) if replaces else tuple(named)
    )
    if not stand.is_allowed:
        raise AccessDenied("You are not allowed to update this record.")
    wrong: list[Invalid] = []
    given = _changes(change, named, stand, wrong, replaces=replaces)
    denied = [column.name for column in given if not stand.columns[column].is_allowed]
    if denied:
        raise current_record.denied(denied)
    if replaces:
        given |= changes.left_out(table, named, stand)
    with _noted(wrong):
        payload.check_references(change, _not_yet_there(given, stand))
    _check_mandatory(change, given, stand, wrong, replaces=replaces)
    if wrong:
        raise together(wrong)
    if given:
        _update(change, sys_id, given, found_ahead)
        check_allowed(change, WRITE, sys_id, tuple(given))
    return WriteResult(sys_id, look(sys_id))


def _changes(
    change: WriteRequest, named: Mapping[Column, Any], stand: CurrentRecord, wrong: list[Invalid], *, replaces: bool
) -> dict[Column, Any]:
    found = {}
    for column, value in named.items():
        new = changes.UNCHANGED
        with _noted(wrong):
            new = changes.changed_value(change, column, value, stand.columns[column], replaces=replaces)
        if new is not changes.UNCHANGED:
            found[column] = new
    return found


def _not_yet_there(given: Mapping[Column, Any], stand: CurrentRecord) -> dict[Column, Any]:
    """Of the lists that the caller sees only what is added: what stands there may be of records that they may not read,
    and who adds another must not have to throw it out."""
    added = dict(given)
    for column, ids in given.items():
        if column.column_type.is_list and ids and stand.columns[column].is_seen:
            there = set(stand.columns[column].value or ())
            added[column] = [each for each in ids if each not in there]
    return added


def _check_mandatory(
    change: WriteRequest, given: Mapping[Column, Any], stand: CurrentRecord, wrong: list[Invalid], *, replaces: bool
) -> None:
    view, table = change.request.view, change.table
    told = {error.field for error in wrong}
    found = dict(given)
    for column, stored in stand.columns.items() if replaces else ():
        # "A missing mandatory column is a 422", also where it was missing before; but no secret, which stays as it
        # is: whether one is set is nobody's to know.
        if column not in given and changes.is_theirs(table, column, stored):
            found[column] = stored.value
    for column, value in found.items():
        if column.name not in told:
            with _noted(wrong):
                _need(view, table, column, value)


def _update(change: WriteRequest, sys_id: str, given: Mapping[Column, Any], found_ahead: Any) -> None:
    with _naming_what_is_known(change):
        if change.table.is_system:
            system_records.update(change.table, sys_id, given, found_ahead)
        else:
            designed_records.update(change.request.view.catalogue, change.table, sys_id, given)


def delete(change: WriteRequest, sys_id: str) -> None:
    """Delete, with its entry in the Record Deletion Log in the same transaction."""
    try:
        _delete(change, sys_id)
    except references.StillReferenced as refused:
        raise references.told(change.request, refused, sys_id) from None


def _delete(change: WriteRequest, sys_id: str) -> None:
    catalogue, table = change.request.view.catalogue, change.table
    own_table = table.columns.get(OWN_TABLE) if not table.is_system else None
    stand = current_record.lock_current_record(change, sys_id, DELETE, (own_table,) if own_table else ())
    if not stand.is_allowed:
        raise AccessDenied("You have no access to delete the records.")
    if own_table is None:
        system_records.delete(table, sys_id)  # which releases what refers to it, as in the admin
        return
    own = catalogue.tables_by_id.get(stand.columns[own_table].value, table)
    if own is not table:
        designed_records.lock(own, sys_id)
    references.release(catalogue, own, sys_id)
    kept = designed_records.stored(own, sys_id)
    shown = own.display_column
    deletion_log.write(own.name, sys_id, str((kept.get(shown.name) if shown else None) or sys_id), kept)
    designed_records.delete(own, sys_id)


def _prepare_answer(change: WriteRequest) -> Callable[[str], RecordResult | None]:
    """The way to the answer, checked before anything is written: a wrong field list must not cost a record."""
    request, table, shown = change.request, change.table, change.shown
    if not request.view.can_read(table):
        if shown.fields or shown.view:
            raise read_plan.no_fields()
        return lambda sys_id: None
    plan, statement = pipeline.compile_record(request, table, shown)

    def answer(sys_id: str) -> RecordResult | None:
        rows = statement_runner.fetch_bytes(statement, request.inputs(sys_id=sys_id))
        if not table.is_system:
            statement_runner.without_version(rows, request.view.catalogue)
        ((_, version, body),) = rows
        return pipeline.record_result(version, body, plan) if body is not None else None

    return answer


@contextmanager
def _naming_what_is_known(change: WriteRequest) -> Iterator[None]:
    """Names the column in an error when the caller sent it, or it is there for them. What is taken tells of other
    records, so there it must have been sent."""
    permissions, columns = change.request.view.permissions, change.table.columns
    try:
        yield
    except (Conflict, Invalid) as error:
        for each in (error, *error.others):
            if isinstance(each, designed_records.Duplicate):
                # Of several that are unique together, the last: it stands within the others, as a value in its column.
                each.field = next((name for name in reversed(each.columns) if name in change.body), None)
            elif each.field is not None and each.field not in change.body:
                column = columns.get(each.field)
                if column is None or not permissions.is_known(change.table, column):
                    each.field = None
        raise
