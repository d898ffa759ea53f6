"""A write to a table that was opened for a caller, with its input and result: the only way to write, for endpoints and
pages."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

from system.errors import AccessDenied
from tableapi.access.permissions import ADMIN, CATALOGUE_TABLES
from tableapi.catalogue.definitions import Catalogue, Table
from tableapi.database import statement_runner
from tableapi.ddl import schema_editor
from tableapi.query import read_plan
from tableapi.query.parameters import OutputOptions
from tableapi.read import pipeline
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller, ReadContext
from tableapi.read.pipeline import RecordResult

Result = TypeVar("Result")


@dataclass(frozen=True)
class WriteInput:
    """The body and parameters of a write, as the client sent them."""

    body: dict[str, Any]
    output: OutputOptions
    uses_display_values: bool = False
    # Returns whether If-Match contains this version; None without the header.
    is_current: Callable[[int | None], bool] | None = None
    # Whether the response is stored together with the write.
    is_idempotent: bool = False
    # Whether an administrator creates the record with values that the server would set.
    is_import: bool = False
    # Whether an update replaces JSON objects instead of merging them: pages send the whole value.
    replaces_json: bool = False
    # The id of a new record of a designed table, if the client chooses it.
    chosen_id: str | None = None

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


def write(caller: Caller, table_name: str, change: WriteInput, operation: Callable[[WriteRequest], Result]) -> Result:
    """Open the table for the caller and write to it. Design changes run one at a time: each takes the lock before it
    loads the catalogue."""
    is_designer = table_name in CATALOGUE_TABLES and ADMIN in caller.role_names
    with schema_editor.design_lock() if is_designer else nullcontext():
        return _write(caller, table_name, change, operation)


@on_current_catalogue
def _write(
    catalogue: Catalogue,
    caller: Caller,
    table_name: str,
    change: WriteInput,
    operation: Callable[[WriteRequest], Result],
) -> Result:
    context = caller.context(catalogue)
    if change.is_import and not context.view.permissions.is_admin:
        raise AccessDenied("Only administrators can import records.", field="sysparm_import")
    return operation(change.for_table(context, context.view.open_table(table_name)))


def prepare_reader(change: WriteRequest) -> Callable[[str], RecordResult | None]:
    """Return a function that reads the record. Fields are checked now, so that an invalid one prevents the write."""
    context, table, output = change.context, change.table, change.output
    if not context.view.can_read(table):
        if output.fields or output.view:
            raise read_plan.no_fields_error()
        return lambda sys_id: None
    plan, statement = pipeline.compile_record(context, table, output)

    def read(sys_id: str) -> RecordResult | None:
        rows = statement_runner.fetch_bytes(statement, context.inputs(sys_id=sys_id))
        if not table.is_system:
            statement_runner.strip_version(rows, context.view.catalogue)
        ((_, _, version, body),) = rows
        return pipeline.record_result(version, body, plan) if body is not None else None

    return read
