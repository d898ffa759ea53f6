"""Writes rows of a file as records, through the code of the bulk and single endpoints and with their errors, and undoes
what it wrote."""

import json
import operator
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from django.db import DataError, transaction
from django.utils.text import Truncator

from system.errors import BadRequest, InvalidInput, NotFound, PreconditionFailed, ServiceError, combine_errors
from tableapi.bulk import bulk_write
from tableapi.bulk.bulk_request import BulkRequest
from tableapi.bulk.upsert import lock_by_key
from tableapi.catalogue.definitions import Column
from tableapi.query.expressions import ALWAYS
from tableapi.query.parameters import OutputOptions
from tableapi.read import pipeline
from tableapi.read.context import Caller
from tableapi.write import create, delete, payload, update
from tableapi.write.write_request import WriteInput, WriteRequest, write

from . import cells, references
from .cells import CellFormat
from .options import CREATE_MODE, UPDATE_MODE, ImportOptions, key_column

CREATED, UPDATED, UNCHANGED, FAILED = "created", "updated", "unchanged", "failed"
MAX_SHOWN_CHARACTERS = 40
# A line number with the cells, with the parser's error, or with the body of its request.
Line = tuple[int, Any]
LineRecord = tuple[int, dict[str, Any]]


class PieceWriter:
    """Writes what can be written of a piece. Changes nothing else, because a newer catalogue repeats the call. An entry
    to undo has the operation, the id, the version and the replaced values."""

    def __init__(
        self, change: WriteRequest, options: ImportOptions, column_names: Sequence[str | None], format: CellFormat
    ) -> None:
        known = change.table.columns
        if missing := next((name for name in column_names if name and name not in known), None):
            raise BadRequest(f'The column "{missing}" no longer exists.', code="unknown_field", field=missing)
        self.columns = [known[name] if name else None for name in column_names]
        self.change, self.options, self.format = change, options, format
        self.counts = dict.fromkeys((CREATED, UPDATED, UNCHANGED, FAILED), 0)
        self.errors: list[tuple[int, list[dict[str, Any]]]] = []
        self.undo: list[tuple[Any, ...]] = []
        self.cells: dict[int, Sequence[Any]] = {}

    def write(self, lines: Sequence[Line]) -> None:
        rows: list[Line] = []
        for line, row in lines:
            if isinstance(row, list):
                rows.append((line, [cell.strip() if isinstance(cell, str) else cell for cell in row]))
            else:
                self._fail(line, BadRequest(str(row)[:200], code="invalid_line"))
        self.cells = dict(rows)
        with transaction.atomic():
            while rows:
                records, rows = self._read_rows(rows)
                if self.options.mode == CREATE_MODE:
                    self._create(records)
                else:
                    self._update_or_create(records)
        self.errors.sort(key=lambda entry: entry[0])

    def _fail(self, line: int, error: ServiceError) -> None:
        """Add the errors of a line with the wrong values as they are in the file, except passwords and secrets."""
        shown = [None if column is None or column.column_type.is_write_only else column.name for column in self.columns]
        values = dict(zip(shown, self.cells.get(line, ()), strict=False))
        items = error.as_items()
        for item in items:
            item.pop("position", None)  # the line tells it
            value = values.get(str(item.get("field")))
            if not cells.is_empty(value):
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                item["value"] = Truncator(text).chars(MAX_SHOWN_CHARACTERS)
        self.errors.append((line, items))
        self.counts[FAILED] += 1

    def _read_rows(self, rows: list[Line]) -> tuple[list[LineRecord], list[Line]]:
        """Return the bodies of the rows, and the rows that have to wait until these records exist: they refer to one of
        them, or repeat the key of one."""
        ids = self._reference_ids(rows)
        records: list[LineRecord] = []
        keys: set[str | None] = set()
        for position, (line, row) in enumerate(rows):
            body, missing = self._body(row, ids)
            value = None if self.options.mode == CREATE_MODE else body.get(self.options.key)
            key = None if value is None else str(value).casefold()
            may_be_earlier = any(column.reference in self.change.table.lineage for column in missing)
            if (key is not None and key in keys) or (records and may_be_earlier):
                return records, rows[position:]
            if missing:
                self._fail(line, self._all_errors(body, missing))
            else:
                keys.add(key)
                records.append((line, body))
        return records, []

    def _reference_ids(self, rows: Sequence[Line]) -> dict[Column, dict[str, str]]:
        ids = {}
        for position, column in enumerate(self.columns):
            if column is not None and column.column_type.has_target:
                values = [row[position] for _, row in rows if position < len(row)]
                names = dict.fromkeys(name for value in values for name in cells.names_in(column, value))
                ids[column] = references.resolve(self.change.context, column, list(names))
        return ids

    def _body(self, row: Sequence[Any], ids: Mapping[Column, Mapping[str, str]]) -> tuple[dict[str, Any], list[Column]]:
        """The body of the request for a row, and the columns whose references were not found. An empty cell leaves a
        column out, so that it keeps its value or default."""
        body: dict[str, Any] = {}
        missing: list[Column] = []
        for column, cell in zip(self.columns, row, strict=False):
            if column is None:
                continue
            if cells.is_empty(cell):
                if self.options.clear_empty:
                    body[column.name] = None
            elif column not in ids:
                body[column.name] = cells.convert(column, cell, self.format)
            else:
                values = [ids[column].get(name) for name in cells.names_in(column, cell)]
                if None in values:
                    missing.append(column)
                else:
                    body[column.name] = values if column.column_type.is_list else next(iter(values), None)
        return body, missing

    def _all_errors(self, body: dict[str, Any], missing: Sequence[Column]) -> ServiceError:
        """The errors of references that were not found, with those of the other values of a new record."""
        errors = [InvalidInput(references.NOT_FOUND, field=column.name) for column in missing]
        if self.options.mode == CREATE_MODE:
            with suppress(ServiceError):
                prepared = create.prepare(replace(self.change, body=body))
                names = {column.name for column in missing}
                errors += [error for error in prepared.errors + prepared.missing_errors if error.field not in names]
        return combine_errors(errors)

    def _create(self, records: Sequence[LineRecord]) -> None:
        bulk = BulkRequest([body for _, body in records], continues_on_error=True, is_time_limited=False)
        for (line, _), outcome in zip(records, bulk_write.create_records(self.change, bulk), strict=True):
            if outcome.error is not None:
                self._fail(line, outcome.error)
            else:
                self.counts[CREATED] += 1
                self.undo.append((CREATED, outcome.sys_id, 0, {}))

    def _update_or_create(self, records: Sequence[LineRecord]) -> None:
        key = key_column(self.change.context, self.change.table, self.options)
        keyed, values = [], []
        for line, body in records:
            try:
                value = payload.parse_value(replace(self.change, body=body), key, body.get(key.name))
                if value is None:
                    raise InvalidInput("The line has no value for the key.", code="mandatory", field=key.name)
            except InvalidInput as error:
                self._fail(line, error)
            else:
                keyed.append((line, body))
                values.append(value)
        ids = lock_by_key(self.change, key, values) if keyed else {}
        unknown = [record for position, record in enumerate(keyed) if position not in ids]
        if self.options.mode != UPDATE_MODE:
            self._create(unknown)
        else:
            for line, _ in unknown:
                message = "There is no record with this value that you can read."
                self._fail(line, NotFound(message, code="record_not_found", field=key.name))
        self._update([(*keyed[position], sys_id) for position, sys_id in sorted(ids.items())])

    def _update(self, records: Sequence[tuple[int, dict[str, Any], str]]) -> None:
        stored = self._stored_records(records)
        output = pipeline.minimal_output(self.change.context, self.change.table)
        change = replace(self.change, is_import=False, output=output)
        for line, body, sys_id in records:
            old_version, old_values = stored.get(sys_id, (None, {}))
            try:
                with transaction.atomic():
                    written = update.update(replace(change, body=body), sys_id, replaces=False).record
            except DataError:
                self._fail(line, BadRequest("A value cannot be stored or compared."))
            except ServiceError as error:
                if error.status >= 500:
                    raise
                self._fail(line, error)
            else:
                version = None if written is None else written.version
                if version is not None and version == old_version:
                    self.counts[UNCHANGED] += 1
                else:
                    self.counts[UPDATED] += 1
                    self.undo.append((UPDATED, sys_id, version, self._restorable(body, old_values)))

    def _restorable(self, body: Mapping[str, Any], old_values: Mapping[str, Any]) -> dict[str, Any]:
        """The replaced values. NULL can also mean that the caller cannot read the value, which then stays as it is."""
        view, table = self.change.context.view, self.change.table
        return {
            name: value
            for name, value in old_values.items()
            if name in body and (value is not None or view.column(table, name) == (table.columns[name], ALWAYS))
        }

    def _stored_records(
        self, records: Sequence[tuple[int, dict[str, Any], str]]
    ) -> dict[str, tuple[int | None, dict[str, Any]]]:
        """The versions and values that the rows may replace, as the caller reads them."""
        context, table = self.change.context, self.change.table
        names = dict.fromkeys(name for _, body, _ in records for name in body)
        readable = tuple(name for name in names if context.view.column(table, name) is not None)
        if not readable:
            return {}
        output = OutputOptions(fields=readable, with_links=False)
        stored = pipeline.fetch_records(context, table, [sys_id for _, _, sys_id in records], output)
        return {sys_id: (record.version, json.loads(record.body)) for sys_id, record in stored.items()}


def undo_entries(caller: Caller, table: str, entries: list[Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Undo the entries of a piece from its end, with the caller's rights. Returns the records that stay as they are,
    with the reasons."""
    left: list[tuple[str, list[dict[str, Any]]]] = []
    for operation, sys_id, version, values in reversed(entries):
        undo = delete.delete if operation == CREATED else partial(update.update, replaces=False)
        change = WriteInput(values, OutputOptions(), is_current=partial(operator.eq, version), replaces_json=True)
        try:
            write(caller, table, change, partial(undo, sys_id=sys_id))
        except PreconditionFailed:
            left.append((sys_id, [{"message": "The record has changed since the import.", "code": "stale"}]))
        except ServiceError as error:
            if error.status >= 500:
                raise
            left.append((sys_id, error.as_items()))
    return left
