"""Turns rows of a file into the bodies of requests: cells become values, and names of records become their ids."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from system.errors import BadRequest, ServiceError, combine_errors
from tableapi.catalogue.definitions import Column
from tableapi.write import create
from tableapi.write.write_request import WriteRequest

from . import cells, references
from .cells import CellFormat
from .options import CREATE_MODE, ImportOptions
from .references import ReferenceCache

# Longer texts are rarely repeated.
MAX_REMEMBERED_CHARACTERS = 40

# A line number with the cells, or with the parser's error.
Line = tuple[int, Any]


@dataclass(frozen=True)
class RowWriter:
    """What a file has in common with all its rows; `columns` are the names of the columns, or None, by position."""

    options: ImportOptions
    columns: Sequence[str | None]
    format: CellFormat
    cache: ReferenceCache


@dataclass(frozen=True)
class LineRecord:
    line: int
    body: dict[str, Any]


def read_lines(
    change: WriteRequest, writer: RowWriter, lines: Sequence[Line]
) -> tuple[list[LineRecord], list[tuple[int, ServiceError]], Sequence[Line]]:
    """Return the records of the lines, the errors, and the lines that have to wait until these records exist: they
    refer to one of them, or repeat the key of one."""
    columns = _columns(change, writer)
    ids = _reference_ids(change, writer.cache, columns, lines)
    converted: list[dict[Any, Any]] = [{} for _ in columns]  # few different values occur in many columns
    records: list[LineRecord] = []
    failures: list[tuple[int, ServiceError]] = []
    keys: set[Any] = set()
    key = writer.options.key if writer.options.mode != CREATE_MODE else ""
    for position, (line, row) in enumerate(lines):
        if not isinstance(row, list):
            failures.append((line, BadRequest(str(row)[:200], code="invalid_line")))
            continue
        body, missing = _body(writer, columns, ids, converted, row)
        if missing:
            if records and any(column.reference in change.table.lineage for column in missing):
                return records, failures, lines[position:]
            failures.append((line, _all_errors(change, writer, body, missing)))
            continue
        value = str(body.get(key)).casefold() if key else None
        if key and value in keys:
            return records, failures, lines[position:]
        keys.add(value)
        records.append(LineRecord(line, body))
    return records, failures, ()


def _all_errors(
    change: WriteRequest, writer: RowWriter, body: dict[str, Any], missing: Sequence[Column]
) -> ServiceError:
    """The errors of references that were not found, with those of the other values of a new record."""
    errors = [references.not_found(column) for column in missing]
    if writer.options.mode == CREATE_MODE:
        with suppress(ServiceError):
            prepared = create.prepare(replace(change, body=body))
            names = {column.name for column in missing}
            errors += [error for error in prepared.errors + prepared.missing_errors if error.field not in names]
    return combine_errors(errors)


def _columns(change: WriteRequest, writer: RowWriter) -> list[Column | None]:
    known = change.table.columns
    if missing := next((name for name in writer.columns if name and name not in known), None):
        raise BadRequest(f'The column "{missing}" no longer exists.', code="unknown_field", field=missing)
    return [known[name] if name else None for name in writer.columns]


def _reference_ids(
    change: WriteRequest, cache: ReferenceCache, columns: Sequence[Column | None], lines: Sequence[Line]
) -> dict[Column, dict[str, str]]:
    ids = {}
    for position, column in enumerate(columns):
        if column is not None and column.column_type.has_target:
            rows = [row for _, row in lines if isinstance(row, list) and position < len(row)]
            values = [row[position] for row in rows if not cells.is_empty(row[position])]
            names = dict.fromkeys(name for value in values for name in cells.names_in(column, value))
            ids[column] = cache.resolve(change.context, column, names)
    return ids


def _body(
    writer: RowWriter,
    columns: Sequence[Column | None],
    ids: Mapping[Column, Mapping[str, str]],
    converted: Sequence[dict[Any, Any]],
    row: Sequence[Any],
) -> tuple[dict[str, Any], list[Column]]:
    """The body of the request for a row, and the columns whose references were not found. An empty cell leaves a column
    out, so that it keeps its value or default."""
    body: dict[str, Any] = {}
    missing: list[Column] = []
    for column, known_values, cell in zip(columns, converted, row, strict=False):
        if column is None:
            continue
        if isinstance(cell, str):
            cell = cell.strip()
        if cells.is_empty(cell):
            if writer.options.clear_empty:
                body[column.name] = None
        elif column in ids:
            names = cells.names_in(column, cell)
            if not all(name in ids[column] for name in names):
                missing.append(column)
                continue
            values = [ids[column][name] for name in names]
            body[column.name] = values if column.column_type.is_list else values[0] if values else None
        elif isinstance(cell, str) and len(cell) < MAX_REMEMBERED_CHARACTERS:
            if cell not in known_values:
                known_values[cell] = cells.convert(column, cell, writer.format)
            body[column.name] = known_values[cell]
        else:
            body[column.name] = cells.convert(column, cell, writer.format)
    return body, missing
