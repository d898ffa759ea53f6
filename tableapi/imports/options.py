"""Parses the parameters of an import, and checks them against the table."""

import codecs
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import tzinfo
from typing import Any

from django.core.exceptions import ValidationError

from accounts.models import time_zones
from system.errors import AccessDenied, InvalidParameter, NotFound, UnsupportedMediaType
from system.http.uploads import FILE_FIELD
from tableapi.access.permissions import CATALOGUE_TABLES
from tableapi.catalogue.definitions import CREATE, WRITE, Catalogue, Column, Table
from tableapi.query.expressions import NEVER
from tableapi.query.parameters import IMPORT, RawParameters, parse_choice, parse_switch, parse_text
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller, ReadContext
from tableapi.write.current_record import create_denied_error

from .parser import DAY_FIRST, ENCODINGS, MONTH_FIRST, UNICODE_ENCODINGS

CREATE_MODE, UPDATE_MODE, UPSERT_MODE = "create", "update", "upsert"
FORMATS = {
    "text/csv": "csv",
    "application/csv": "csv",
    "text/tab-separated-values": "csv",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/json-lines": "jsonl",
}
FORMATS_BY_SUFFIX = {"csv": "csv", "tsv": "csv", "txt": "csv", "xlsx": "xlsx", "jsonl": "jsonl", "ndjson": "jsonl"}
ALLOWED_ENCODINGS = frozenset(
    codecs.lookup(name).name for name in ("utf-8", "ascii", "latin-1", *UNICODE_ENCODINGS, *ENCODINGS)
)
MAX_MAPPED_NAMES = 1_000


def format_of(declared_type: str, file_name: str) -> str:
    """By the content type; by the file name if the client sent none that tells it."""
    suffix = file_name.rpartition(".")[2].lower()
    format = FORMATS.get(declared_type.partition(";")[0].strip().lower()) or FORMATS_BY_SUFFIX.get(suffix)
    if format is None:
        message = "Send a CSV file, an XLSX workbook or JSON lines, with a content type such as text/csv."
        raise UnsupportedMediaType(message, field=FILE_FIELD)
    return format


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    mode: str = CREATE_MODE
    key: str = ""
    on_error: str = "stop"
    dry_run: bool = False
    # The column of each name in the header row, or None to leave it out; None if the client sent no mapping.
    mapping: Mapping[str, str | None] | None = None
    delimiter: str = ""
    encoding: str = ""
    sheet: str = ""
    date_order: str = ""
    decimal: str = ""
    time_zone: str = ""
    clear_empty: bool = False
    is_import: bool = False

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "ImportOptions":
        return cls(**{field.name: stored[field.name] for field in fields(cls) if field.name in stored})

    @property
    def is_atomic(self) -> bool:
        return self.on_error == "stop"

    @property
    def reading(self) -> tuple[str, ...]:
        """The options that decide how the file is read."""
        return (self.delimiter, self.encoding, self.sheet, self.date_order, self.decimal)

    def zone(self, caller: Caller) -> tzinfo:
        return time_zones.zone_of(self.time_zone) if self.time_zone else caller.time_zone


def parse_options(raw: RawParameters) -> ImportOptions:
    return ImportOptions(
        mode=parse_choice(raw, "mode", ("", CREATE_MODE, UPDATE_MODE, UPSERT_MODE)) or CREATE_MODE,
        key=parse_text(raw, "key"),
        on_error=parse_choice(raw, "on_error", ("", "stop", "continue")) or "stop",
        dry_run=parse_switch(raw, "dry_run"),
        mapping=_parse_mapping(parse_text(raw, "mapping")),
        delimiter=_parse_delimiter(parse_text(raw, "delimiter")),
        encoding=parse_encoding(parse_text(raw, "encoding")),
        sheet=parse_text(raw, "sheet")[:255],
        date_order=parse_choice(raw, "date_order", ("", DAY_FIRST, MONTH_FIRST)),
        decimal=parse_choice(raw, "decimal", ("", ".", ",")),
        time_zone=_parse_time_zone(parse_text(raw, "time_zone")),
        clear_empty=parse_switch(raw, "clear_empty"),
        is_import=parse_switch(raw, IMPORT),
    )


def _parse_mapping(text: str) -> dict[str, str | None] | None:
    if not text:
        return None
    mapping: Any = None
    with suppress(ValueError, RecursionError):
        mapping = json.loads(text)
    is_valid = isinstance(mapping, dict) and len(mapping) <= MAX_MAPPED_NAMES
    if not is_valid or not all(value is None or isinstance(value, str) for value in mapping.values()):
        message = "mapping must be a JSON object of names in the header row and columns. null leaves a name out."
        raise InvalidParameter(message, field="mapping")
    return {name.strip(): value or None for name, value in mapping.items()}


def _parse_delimiter(text: str) -> str:
    delimiter = "\t" if text == "tab" else text
    if len(delimiter) > 1 or delimiter in ('"', "\r", "\n"):
        raise InvalidParameter("delimiter must be one character, or tab.", field="delimiter")
    return delimiter


def parse_encoding(name: str) -> str:
    with suppress(LookupError):
        if not name or codecs.lookup(name).name in ALLOWED_ENCODINGS:
            return name and codecs.lookup(name).name
    raise InvalidParameter("encoding must be a text encoding such as utf-8 or cp1252.", field="encoding")


def _parse_time_zone(name: str) -> str:
    try:
        if name:
            time_zones.check_name(name)
    except ValidationError as error:
        raise InvalidParameter(error.messages[0], field="time_zone") from None
    return name


@on_current_catalogue
def check(catalogue: Catalogue, caller: Caller, table_name: str, options: ImportOptions) -> bool:
    """Raise the error of a write for callers who can write no record of the table in this mode. Returns whether it is a
    product table."""
    context = caller.context(catalogue)
    table = context.view.open_table(table_name)
    permissions = context.view.permissions
    if table_name in CATALOGUE_TABLES:
        raise InvalidParameter("Tables, columns, views and rules cannot be imported.", field="table")
    if options.is_import and not permissions.is_admin:
        raise AccessDenied("Only administrators can import records.", field=IMPORT)
    if options.is_import and table.is_system:
        raise InvalidParameter("Only records of designed tables can be imported.", field=IMPORT)
    if options.mode != UPDATE_MODE and permissions.record_decision(CREATE, table) == NEVER:
        raise create_denied_error(context, table)
    if options.mode != CREATE_MODE and permissions.record_decision(WRITE, table) == NEVER:
        raise AccessDenied("You are not allowed to update records of this table.")
    if options.mode != CREATE_MODE:
        if not context.view.can_read(table):
            raise NotFound("There is no such table.", code="table_not_found")
        key_column(context, table, options)
    for name in filter(None, (options.mapping or {}).values()):
        visible_column(context, table, name)
    return table.is_system


def visible_column(context: ReadContext, table: Table, name: str) -> Column:
    """The column; the same error for missing columns and for columns that the caller can never read."""
    column = table.columns.get(name)
    if column is None or not context.view.permissions.can_see_column(table, column):
        message = f'There is no column named "{name[:80]}".'
        raise InvalidParameter(message, code="unknown_field", field="mapping")
    return column


def key_column(context: ReadContext, table: Table, options: ImportOptions) -> Column:
    """The column that identifies a record. An upsert needs one that can be written, an update only one to read."""
    column = table.columns.get(options.key)
    if not options.key or column is None or context.view.column(table, options.key) is None:
        raise InvalidParameter("key must be the name of a unique column that you can read.", field="key")
    is_identifying = column.is_unique or column.name == "sys_id"
    if not is_identifying or (options.mode == UPSERT_MODE and table.is_server_managed(column)):
        raise InvalidParameter(f'"{options.key}" is not a unique column for this mode.', field="key")
    return column
