"""The options of an import, for the endpoint, the command, the pages and the OpenAPI document, and their checks."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields
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

CREATE_MODE, UPDATE_MODE, UPSERT_MODE = "create", "update", "upsert"
FORMATS = {
    "text/csv": "csv",
    "text/tab-separated-values": "csv",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
}
FORMATS_BY_SUFFIX = {"csv": "csv", "tsv": "csv", "txt": "csv", "xlsx": "xlsx", "jsonl": "jsonl", "ndjson": "jsonl"}
MAX_MAPPED_NAMES = 1_000


def format_of(declared_type: str, file_name: str) -> str:
    """By the content type; by the file name if the client sent none that tells it."""
    suffix = file_name.rpartition(".")[2].lower()
    format = FORMATS.get(declared_type.partition(";")[0].strip().lower()) or FORMATS_BY_SUFFIX.get(suffix)
    if format is None:
        message = "Send a CSV file, an XLSX workbook or JSON lines, with a content type such as text/csv."
        raise UnsupportedMediaType(message, field=FILE_FIELD)
    return format


def _parse_mapping(text: str) -> dict[str, str | None]:
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
    try:
        bytes(4).decode(name)
    except (LookupError, ValueError):
        message = "encoding must be a text encoding such as utf-8 or cp1252."
        raise InvalidParameter(message, field="encoding") from None
    return name


def _parse_time_zone(name: str) -> str:
    try:
        time_zones.check_name(name)
    except ValidationError as error:
        raise InvalidParameter(error.messages[0], field="time_zone") from None
    return name


def _option(
    description: str, default: Any = "", choices: tuple[str, ...] = (), parse: Callable[[str], Any] = str
) -> Any:
    return field(default=default, metadata={"description": description, "choices": choices, "parse": parse})


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """A row for each option, with the name of its parameter. Booleans are switches."""

    mode: str = _option(
        "Whether to create records, to update those with the same value in the column `key`, or both.",
        CREATE_MODE,
        (CREATE_MODE, UPDATE_MODE, UPSERT_MODE),
    )
    key: str = _option("The unique column that identifies records. Updates also accept `sys_id`.")
    on_error: str = _option(
        "`stop` writes nothing if a line has an error. `continue` writes the other lines.", "stop", ("stop", "continue")
    )
    dry_run: bool = _option("`1` checks all lines and writes nothing.", False)
    mapping: Mapping[str, str | None] | None = _option(
        "A JSON object of names in the header row and columns. `null` leaves a name out. It is remembered.",
        None,
        parse=_parse_mapping,
    )
    delimiter: str = _option(
        "The character between values, or `tab`. If omitted, it is guessed.", parse=_parse_delimiter
    )
    encoding: str = _option(
        "The encoding of the text, such as `utf-8`. If omitted, it is guessed.", parse=parse_encoding
    )
    sheet: str = _option("The name of the sheet. If omitted, the first one is read.")
    date_order: str = _option(
        "Whether `1/2/2024` starts with the day or the month. If omitted, it is guessed.", choices=("dmy", "mdy")
    )
    decimal: str = _option("The decimal sign. If omitted, it is guessed.", choices=(".", ","))
    time_zone: str = _option(
        "The time zone of times without one. If omitted, that of the user.", parse=_parse_time_zone
    )
    clear_empty: bool = _option("`1` removes the values of empty cells.", False)
    sysparm_import: bool = _option(
        "`1` lets an administrator keep IDs, numbers, and creation and update data. Designed tables only.", False
    )

    @property
    def reading(self) -> dict[str, str]:
        """The options that decide how the file is read."""
        return {name: getattr(self, name) for name in ("delimiter", "encoding", "sheet", "date_order", "decimal")}


def parse_options(raw: RawParameters) -> ImportOptions:
    return ImportOptions(**{option.name: _parse(raw, option) for option in fields(ImportOptions)})


def _parse(raw: RawParameters, option: Field[Any]) -> Any:
    if option.default is False:
        return parse_switch(raw, option.name)
    if choices := option.metadata["choices"]:
        return parse_choice(raw, option.name, ("", *choices)) or option.default
    text = parse_text(raw, option.name)
    return option.metadata["parse"](text) if text else option.default


@on_current_catalogue
def check(catalogue: Catalogue, caller: Caller, table_name: str, options: ImportOptions) -> None:
    """Raise the error of a write for callers who can write no record of the table in this mode."""
    context = caller.context(catalogue)
    table = context.view.open_table(table_name)
    permissions = context.view.permissions
    if table_name in CATALOGUE_TABLES:
        raise InvalidParameter("Tables, columns, views and rules cannot be imported.", field="table")
    if options.sysparm_import and not permissions.is_admin:
        raise AccessDenied("Only administrators can import records.", field=IMPORT)
    if options.sysparm_import and table.is_system:
        raise InvalidParameter("Only records of designed tables can be imported.", field=IMPORT)
    if options.mode != UPDATE_MODE and permissions.record_decision(CREATE, table) == NEVER:
        raise create_denied_error(context, table)
    if options.mode != CREATE_MODE:
        if permissions.record_decision(WRITE, table) == NEVER:
            raise AccessDenied("You are not allowed to update records of this table.")
        if not context.view.can_read(table):
            raise NotFound("There is no such table.", code="table_not_found")
        key_column(context, table, options)
    for name in filter(None, (options.mapping or {}).values()):
        visible_column(context, table, name)


def visible_column(context: ReadContext, table: Table, name: str) -> Column:
    """The column; the same error for missing columns and for columns that the caller can never read."""
    column = context.view.permissions.visible_column(table, name)
    if column is None:
        message = f'There is no column named "{name[:80]}".'
        raise InvalidParameter(message, code="unknown_field", field="mapping")
    return column


def key_column(context: ReadContext, table: Table, options: ImportOptions) -> Column:
    """The column that identifies a record. An upsert needs one that can be written, an update only one to read."""
    column = table.columns.get(options.key)
    if column is None or context.view.column(table, options.key) is None:
        raise InvalidParameter("key must be the name of a unique column that you can read.", field="key")
    is_identifying = column.is_unique or column.name == "sys_id"
    if not is_identifying or (options.mode == UPSERT_MODE and table.is_server_managed(column)):
        raise InvalidParameter(f'"{options.key}" is not a unique column for this mode.', field="key")
    return column
