"""A write to one record: what the client sent, and the result."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tableapi.catalogue.definitions import Table
from tableapi.query.parameters import OutputOptions
from tableapi.read.context import ReadContext
from tableapi.read.pipeline import RecordResult


@dataclass(frozen=True)
class WriteInput:
    """The body and parameters of a write, as the client sent them."""

    body: dict[str, Any]
    output: OutputOptions
    uses_display_values: bool = False
    # Tells whether If-Match names this version; None without the header.
    is_current: Callable[[int | None], bool] | None = None
    # Whether the response is stored together with the write.
    is_idempotent: bool = False
    # Whether an administrator creates the record with values that the server would set.
    is_import: bool = False

    def for_table(self, context: ReadContext, table: Table) -> "WriteRequest":
        return WriteRequest(**vars(self), context=context, table=table)


@dataclass(frozen=True, kw_only=True)
class WriteRequest(WriteInput):
    context: ReadContext
    table: Table


@dataclass(frozen=True)
class WriteResult:
    """`record` is None if the caller may not read the record after the write."""

    sys_id: str
    record: RecordResult | None
