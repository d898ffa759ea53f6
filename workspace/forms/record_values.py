"""Reads the record of a form, and compares texts of its controls with what was stored when they were shown."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tableapi.catalogue.definitions import Column, Table
from tableapi.query.parameters import DisplayMode, OutputOptions
from tableapi.read import pipeline
from tableapi.read.context import ReadContext

from .controls import form_text, items_of
from .display import display_text

FINGERPRINT_LENGTH = 16


@dataclass(frozen=True)
class StoredRecord:
    """Fields as `sysparm_display_value=all` returns them. `version` is None if the caller cannot read it."""

    fields: Mapping[str, Any]
    version: int | None = None


def read_stored(context: ReadContext, table: Table, sys_id: str, keys: Iterable[str]) -> StoredRecord:
    """Read these columns and paths of a record. Raises 404 if the caller cannot read it."""
    readable = [key for key in dict.fromkeys(keys) if "." in key or context.view.column(table, key) is not None]
    output = OutputOptions(tuple(readable), display_mode=DisplayMode.BOTH, with_links=False)
    if not readable:
        output = pipeline.minimal_output(context, table)
    result = pipeline.fetch_record(context, table, sys_id, output)
    # A float would change the digits of decimals.
    return StoredRecord(json.loads(result.body, parse_float=Decimal), result.version)


def fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:FINGERPRINT_LENGTH]


def fingerprints(context: ReadContext, column: Column, field: Any) -> list[str]:
    """Of every text with which a control sends the stored value unchanged: pickers send ids, plain inputs names."""
    texts = [form_text(column, field, context.caller.time_zone)]
    if column.column_type.has_target:
        texts.append(",".join(item["id"] for item in items_of(column, field)))
    return [fingerprint(text) for text in dict.fromkeys(texts)]


def record_title(context: ReadContext, table: Table, sys_id: str, fields: Mapping[str, Any]) -> str:
    """The display value of the record, otherwise its id."""
    column = table.display_column
    return (display_text(column, fields.get(column.name), context.caller.time_zone) if column else "") or sys_id


def read_title(context: ReadContext, table: Table, sys_id: str) -> str:
    """The title of a record. Raises 404 if the caller cannot read it."""
    names = [table.display_column.name] if table.display_column else []
    return record_title(context, table, sys_id, read_stored(context, table, sys_id, names).fields)
