"""Reads the record of a form, as the Table API returns it to the caller."""

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

from .controls import sent_texts
from .display import display_text

FINGERPRINT_LENGTH = 16


@dataclass(frozen=True)
class StoredRecord:
    """Fields as `sysparm_display_value=all` returns them. `version` is None if the caller cannot read it."""

    fields: Mapping[str, Any]
    version: int | None
    title: str


def read_stored(context: ReadContext, table: Table, sys_id: str, keys: Iterable[str] = ()) -> StoredRecord:
    """Read these columns and paths, and the title: the display value or the id. Raises 404 like the API."""
    display, zone = table.display_column, context.caller.time_zone
    names = dict.fromkeys([*keys, *([display.name] if display else [])])
    readable = tuple(key for key in names if "." in key or context.view.column(table, key) is not None)
    output = OutputOptions(readable, display_mode=DisplayMode.BOTH, with_links=False)
    result = pipeline.fetch_record(
        context, table, sys_id, output if readable else pipeline.minimal_output(context, table)
    )
    # A float would change the digits of decimals.
    fields = json.loads(result.body, parse_float=Decimal)
    title = display_text(display, fields.get(display.name), zone) if display else ""
    return StoredRecord(fields, result.version, title or sys_id)


def fingerprint(column_name: str, text: str) -> str:
    return hashlib.sha256(f"{column_name}={text}".encode(errors="surrogatepass")).hexdigest()[:FINGERPRINT_LENGTH]


def fingerprints(context: ReadContext, column: Column, field: Any) -> set[str]:
    """The fingerprints of the texts that leave the value unchanged. Secrets have none."""
    texts = sent_texts(column, field, context.caller.time_zone) if column.is_readable else []
    return {fingerprint(column.name, text) for text in texts}
