"""Writes rows of a file as records, through the code of the bulk and single endpoints and with their errors."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from django.db import DataError, transaction

from system.errors import BadRequest, InvalidInput, NotFound, ServiceError, combine_errors
from tableapi.bulk import bulk_write
from tableapi.bulk.bulk_request import BulkRequest
from tableapi.bulk.upsert import lock_by_key
from tableapi.catalogue.definitions import Column
from tableapi.database import statement_runner
from tableapi.query.expressions import ALWAYS
from tableapi.query.parameters import OutputOptions
from tableapi.read import pipeline
from tableapi.write import create, payload, update
from tableapi.write.write_request import WriteRequest

from . import cells, references
from .cells import CellFormat
from .options import CREATE_MODE, UPDATE_MODE, ImportOptions, key_column

CREATED, UPDATED = "created", "updated"

# A line number with the cells, or with the parser's error.
Line = tuple[int, Any]
# A line number with the body of its request.
LineRecord = tuple[int, dict[str, Any]]


class FileLayout(NamedTuple):
    """What a file has in common with all its rows; `columns` are the names of the columns, or None, by position."""

    options: ImportOptions
    columns: Sequence[str | None]
    format: CellFormat


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


def write_lines(change: WriteRequest, layout: FileLayout, lines: Sequence[Line]) -> RowsResult:
    """Write what can be written. Changes nothing else, because a newer catalogue repeats the call."""
    result = RowsResult()
    with transaction.atomic():
        while lines:
            records, lines = _read_lines(change, layout, lines, result)
            if layout.options.mode == CREATE_MODE:
                _create(change, records, result)
            else:
                _update_or_create(change, layout.options, records, result)
    result.errors.sort(key=lambda entry: entry[0])
    return result


def _read_lines(
    change: WriteRequest, layout: FileLayout, lines: Sequence[Line], result: RowsResult
) -> tuple[list[LineRecord], Sequence[Line]]:
    """Return the bodies of the lines, and the lines that have to wait until these records exist: they refer to one of
    them, or repeat the key of one."""
    columns = _columns(change, layout)
    ids = _reference_ids(change, columns, lines)
    records: list[LineRecord] = []
    keys: set[str | None] = set()
    for position, (line, row) in enumerate(lines):
        if not isinstance(row, list):
            result.fail(line, BadRequest(str(row)[:200], code="invalid_line"))
            continue
        body, missing = _body(layout, columns, ids, row)
        value = None if layout.options.mode == CREATE_MODE else body.get(layout.options.key)
        key = None if value is None else str(value).casefold()
        may_be_earlier = any(column.reference in change.table.lineage for column in missing)
        if (key is not None and key in keys) or (records and may_be_earlier):
            return records, lines[position:]
        if missing:
            result.fail(line, _all_errors(change, layout.options, body, missing))
        else:
            keys.add(key)
            records.append((line, body))
    return records, ()


def _columns(change: WriteRequest, layout: FileLayout) -> list[Column | None]:
    known = change.table.columns
    if missing := next((name for name in layout.columns if name and name not in known), None):
        raise BadRequest(f'The column "{missing}" no longer exists.', code="unknown_field", field=missing)
    return [known[name] if name else None for name in layout.columns]


def _reference_ids(
    change: WriteRequest, columns: Sequence[Column | None], lines: Sequence[Line]
) -> dict[Column, dict[str, str]]:
    ids = {}
    rows = [row for _, row in lines if isinstance(row, list)]
    for position, column in enumerate(columns):
        if column is not None and column.column_type.has_target:
            values = [_stripped(row[position]) for row in rows if position < len(row)]
            names = dict.fromkeys(name for value in values for name in cells.names_in(column, value))
            ids[column] = references.resolve(change.context, column, list(names))
    return ids


def _stripped(cell: Any) -> Any:
    return cell.strip() if isinstance(cell, str) else cell


def _body(
    layout: FileLayout, columns: Sequence[Column | None], ids: Mapping[Column, Mapping[str, str]], row: Sequence[Any]
) -> tuple[dict[str, Any], list[Column]]:
    """The body of the request for a row, and the columns whose references were not found. An empty cell leaves a column
    out, so that it keeps its value or default."""
    body: dict[str, Any] = {}
    missing: list[Column] = []
    for column, cell in zip(columns, map(_stripped, row), strict=False):
        if column is None:
            continue
        if cells.is_empty(cell):
            if layout.options.clear_empty:
                body[column.name] = None
        elif column not in ids:
            body[column.name] = cells.convert(column, cell, layout.format)
        else:
            values = [ids[column].get(name) for name in cells.names_in(column, cell)]
            if None in values:
                missing.append(column)
            else:
                body[column.name] = values if column.column_type.is_list else next(iter(values), None)
    return body, missing


def _all_errors(
    change: WriteRequest, options: ImportOptions, body: dict[str, Any], missing: Sequence[Column]
) -> ServiceError:
    """The errors of references that were not found, with those of the other values of a new record."""
    errors = [InvalidInput(references.NOT_FOUND, field=column.name) for column in missing]
    if options.mode == CREATE_MODE:
        with suppress(ServiceError):
            prepared = create.prepare(replace(change, body=body))
            names = {column.name for column in missing}
            errors += [error for error in prepared.errors + prepared.missing_errors if error.field not in names]
    return combine_errors(errors)


def _create(change: WriteRequest, records: Sequence[LineRecord], result: RowsResult) -> None:
    bulk = BulkRequest([body for _, body in records], continues_on_error=True, is_time_limited=False)
    for (line, _), outcome in zip(records, bulk_write.create_records(change, bulk), strict=True):
        if outcome.error is not None:
            result.fail(line, outcome.error)
        else:
            result.counts[CREATED] += 1
            result.undo.append((CREATED, outcome.sys_id, 0, {}))


def _update_or_create(
    change: WriteRequest, options: ImportOptions, records: Sequence[LineRecord], result: RowsResult
) -> None:
    key = key_column(change.context, change.table, options)
    keyed, values = [], []
    for line, body in records:
        try:
            value = payload.parse_value(replace(change, body=body), key, body.get(key.name))
            if value is None:
                raise InvalidInput("The line has no value for the key.", code="mandatory", field=key.name)
        except InvalidInput as error:
            result.fail(line, error)
        else:
            keyed.append((line, body))
            values.append(value)
    ids = lock_by_key(change, key, values) if keyed else {}
    unknown = [record for position, record in enumerate(keyed) if position not in ids]
    if options.mode != UPDATE_MODE:
        _create(change, unknown, result)
    else:
        for line, _ in unknown:
            message = "There is no record with this value that you can read."
            result.fail(line, NotFound(message, code="record_not_found", field=key.name))
    _update(change, [(*keyed[position], sys_id) for position, sys_id in sorted(ids.items())], result)


def _update(change: WriteRequest, records: Sequence[tuple[int, dict[str, Any], str]], result: RowsResult) -> None:
    stored = _stored_records(change, records)
    change = replace(change, is_import=False, output=pipeline.minimal_output(change.context, change.table))
    for line, body, sys_id in records:
        old_version, old_values = stored.get(sys_id, (None, {}))
        try:
            with transaction.atomic():
                written = update.update(replace(change, body=body), sys_id, replaces=False).record
        except DataError:
            result.fail(line, BadRequest("A value cannot be stored or compared."))
        except ServiceError as error:
            if error.status >= 500:
                raise
            result.fail(line, error)
        else:
            version = None if written is None else written.version
            if version is not None and version == old_version:
                result.counts["unchanged"] += 1
            else:
                result.counts[UPDATED] += 1
                result.undo.append((UPDATED, sys_id, version, _restorable(change, body, old_values)))


def _restorable(change: WriteRequest, body: Mapping[str, Any], old_values: Mapping[str, Any]) -> dict[str, Any]:
    """The replaced values. NULL can also mean that the caller cannot read the value, which then stays as it is."""
    view, table = change.context.view, change.table
    return {
        name: value
        for name, value in old_values.items()
        if name in body and (value is not None or view.column(table, name) == (table.columns[name], ALWAYS))
    }


def _stored_records(
    change: WriteRequest, records: Sequence[tuple[int, dict[str, Any], str]]
) -> dict[str, tuple[int | None, dict[str, Any]]]:
    """The versions and values that the rows may replace, as the caller reads them."""
    names = dict.fromkeys(name for _, body, _ in records for name in body)
    readable = tuple(name for name in names if change.context.view.column(change.table, name) is not None)
    if not readable:
        return {}
    output = OutputOptions(fields=readable, with_links=False)
    _, statement = pipeline.compile_record(change.context, change.table, output, has_many=True)
    inputs = change.context.inputs(sys_ids=[sys_id for _, _, sys_id in records])
    rows = statement_runner.strip_version(
        statement_runner.fetch_bytes(statement, inputs), change.context.view.catalogue
    )
    return {
        sys_id.decode(): (None if version is None else int(version), json.loads(body))
        for sys_id, version, body in rows
        if sys_id is not None and body is not None
    }
