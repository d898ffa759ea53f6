"""Reads the written record for the response."""

from collections.abc import Callable

from tableapi.database import statement_runner
from tableapi.query import read_plan
from tableapi.read import pipeline
from tableapi.read.pipeline import RecordResult

from .write_request import WriteRequest


def prepare_reader(change: WriteRequest) -> Callable[[str], RecordResult | None]:
    """A function that reads the record. The field list is checked now, so that an invalid one writes nothing."""
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
        ((_, version, body),) = rows
        return pipeline.record_result(version, body, plan) if body is not None else None

    return read
