"""Writes rows of a file as records, through the code of the bulk and single endpoints and with their errors."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import DataError, transaction

from system.errors import BadRequest, InvalidInput, NotFound, ServiceError
from tableapi.bulk import bulk_write
from tableapi.bulk.bulk_request import BulkRequest
from tableapi.catalogue.column_type import StorageFormat
from tableapi.catalogue.definitions import WRITE
from tableapi.database import statement_runner
from tableapi.query.expressions import ALWAYS
from tableapi.query.parameters import OutputOptions
from tableapi.read import pipeline
from tableapi.values import column_values
from tableapi.write import payload, update
from tableapi.write.write_request import WriteRequest

from . import references, rows
from .options import CREATE_MODE, UPDATE_MODE, key_column
from .rows import Line, LineRecord, RowWriter

# Saving a user hashes a password for a quarter of a second, and a bulk write has a time limit.
PRODUCT_ROWS, DESIGNED_ROWS = 20, 1_000
CREATED, UPDATED = "created", "updated"


@dataclass
class RowsResult:
    """The outcome of rows. An entry to undo has the operation, the id, the version and the replaced values."""

    counts: dict[str, int] = field(default_factory=lambda: {"created": 0, "updated": 0, "unchanged": 0, "failed": 0})
    errors: list[tuple[int, list[dict[str, Any]]]] = field(default_factory=list)
    undo: list[tuple[Any, ...]] = field(default_factory=list)

    def fail(self, line: int, error: ServiceError) -> None:
        items = error.as_items()
        for item in items:
            item.pop("position", None)  # the line tells it
        self.errors.append((line, items))
        self.counts["failed"] += 1

    def add(self, other: "RowsResult") -> None:
        self.counts = {name: count + other.counts[name] for name, count in self.counts.items()}
        self.errors += other.errors
        self.undo += other.undo


def groups_of(lines: Sequence[Line], is_product_table: bool) -> Iterator[Sequence[Line]]:
    size = PRODUCT_ROWS if is_product_table else DESIGNED_ROWS
    return (lines[start : start + size] for start in range(0, len(lines), size))


def write_lines(change: WriteRequest, writer: RowWriter, lines: Sequence[Line]) -> RowsResult:
    """Write what can be written. Changes nothing else, because a newer catalogue repeats the call."""
    result = RowsResult()
    try:
        with transaction.atomic():
            _write_lines(change, writer, lines, result)
    except BaseException:
        writer.cache.ids.clear()  # it may contain records that were rolled back
        raise
    result.errors.sort()
    return result


def _write_lines(change: WriteRequest, writer: RowWriter, lines: Sequence[Line], result: RowsResult) -> None:
    while lines:
        records, failures, lines = rows.read_lines(change, writer, lines)
        for line, error in failures:
            result.fail(line, error)
        if writer.options.mode == CREATE_MODE:
            _create(change, records, result)
        else:
            _update_or_create(change, writer, records, result)


def _create(change: WriteRequest, records: Sequence[LineRecord], result: RowsResult) -> None:
    bodies = [record.body for record in records]
    outcomes = bulk_write.create_records(change, BulkRequest(bodies, continues_on_error=True))
    for record, outcome in zip(records, outcomes, strict=True):
        if outcome.error is not None:
            result.fail(record.line, outcome.error)
        else:
            result.counts[CREATED] += 1
            result.undo.append((CREATED, outcome.sys_id, 0, {}))


def _update_or_create(
    change: WriteRequest, writer: RowWriter, records: Sequence[LineRecord], result: RowsResult
) -> None:
    key = key_column(change.context, change.table, writer.options)
    keyed, values = [], []
    for record in records:
        try:
            value = payload.parse_value(replace(change, body=record.body), key, record.body.get(key.name))
            if value is None:
                raise InvalidInput("The line has no value for the key.", code="mandatory", field=key.name)
        except InvalidInput as error:
            result.fail(record.line, error)
        else:
            keyed.append(record)
            values.append(value)
    ids = references.lock_by_key(change, key, values) if keyed else {}
    created = []
    for position, record in enumerate(keyed):
        if position not in ids and writer.options.mode == UPDATE_MODE:
            message = "There is no record with this value that you can read."
            result.fail(record.line, NotFound(message, code="record_not_found", field=key.name))
        elif position not in ids:
            created.append(record)
    if created:
        _create(change, created, result)
    _update(change, [(record, ids[position]) for position, record in enumerate(keyed) if position in ids], result)


def _update(change: WriteRequest, pairs: Sequence[tuple[LineRecord, str]], result: RowsResult) -> None:
    change = replace(change, is_import=False)
    stored = _stored_records(change, pairs)
    minimal = replace(change, output=pipeline.minimal_output(change.context, change.table))
    for record, sys_id in pairs:
        old_version, old_values = stored.get(sys_id, (None, {}))
        try:
            if old_version is not None and _is_unchanged(change, record.body, old_values):
                result.counts["unchanged"] += 1
                continue
            with transaction.atomic():
                written = update.update(replace(minimal, body=record.body), sys_id, replaces=False).record
        except DataError:
            result.fail(record.line, BadRequest("A value cannot be stored or compared."))
        except ServiceError as error:
            if error.status >= 500:
                raise
            result.fail(record.line, error)
        else:
            version = None if written is None else written.version
            if version is not None and version == old_version:
                result.counts["unchanged"] += 1
                continue
            result.counts[UPDATED] += 1
            result.undo.append((UPDATED, sys_id, version, _restorable(change, record.body, old_values)))


def _restorable(change: WriteRequest, body: Mapping[str, Any], old_values: Mapping[str, Any]) -> dict[str, Any]:
    """The replaced values. NULL can also mean that the caller cannot read the value, which then stays as it is."""
    view, table = change.context.view, change.table
    always_readable = {name for name in old_values if view.column(table, name) == (table.columns[name], ALWAYS)}
    return {
        name: value
        for name, value in old_values.items()
        if name in body and (value is not None or name in always_readable)
    }


def _stored_records(
    change: WriteRequest, pairs: Sequence[tuple[LineRecord, str]]
) -> dict[str, tuple[int | None, dict[str, Any]]]:
    """The versions and values that the rows may replace, as the caller reads them."""
    names = dict.fromkeys(name for record, _ in pairs for name in record.body)
    readable = tuple(name for name in names if change.context.view.column(change.table, name) is not None)
    if not readable:
        return {}
    output = OutputOptions(fields=readable, with_links=False)
    _, statement = pipeline.compile_record(change.context, change.table, output, has_many=True)
    fetched = statement_runner.fetch_bytes(statement, change.context.inputs(sys_ids=[sys_id for _, sys_id in pairs]))
    return {
        sys_id.decode(): (None if version is None else int(version), json.loads(body))
        for sys_id, version, body in statement_runner.strip_version(fetched, change.context.view.catalogue)
        if sys_id is not None and body is not None
    }


def _is_unchanged(change: WriteRequest, body: Mapping[str, Any], old_values: Mapping[str, Any]) -> bool:
    """Whether all values are as the caller reads them. Others are compared by the update, as are those of records that
    the caller may not be allowed to update."""
    if change.context.view.permissions.record_decision(WRITE, change.table) != ALWAYS:
        return False
    for name, value in body.items():
        column = change.table.columns[name]
        old = old_values.get(name)
        if column.column_type.storage is not StorageFormat.PLAIN or old is None or value is None:
            return False
        try:
            if not column_values.is_same(column, column_values.parse(column, old), column_values.parse(column, value)):
                return False
        except InvalidInput:
            return False
    return True
