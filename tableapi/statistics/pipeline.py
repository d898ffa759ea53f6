"""Reads statistics: parse → open the table for the caller → plan → compile → run."""

from dataclasses import dataclass

from tableapi.catalogue.definitions import Catalogue
from tableapi.database import statement_runner
from tableapi.query.parameters import RawParameters
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller

from .parameters import parse_statistics
from .plan import plan_statistics
from .statement import statistics_statement


@dataclass(frozen=True)
class StatisticsResult:
    # The JSON of all groups; None if there are none.
    body: bytes | None


@on_current_catalogue
def read_statistics(catalogue: Catalogue, caller: Caller, table_name: str, raw: RawParameters) -> StatisticsResult:
    request, context = parse_statistics(raw), caller.context(catalogue)
    table = context.view.open_table(table_name)
    statement = context.view.cached(
        ("statistics", table.name, request.shape, request.query.shape),
        lambda: statistics_statement(plan_statistics(context.view, table, request)),
    )
    values = {f"having{number}": value for number, value in enumerate(request.having_values)}
    rows = statement_runner.fetch_bytes(statement, context.inputs(request.query.conditions, **values))
    ((body,),) = statement_runner.strip_version(rows, catalogue)
    return StatisticsResult(body)
