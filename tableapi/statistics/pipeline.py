"""Reads statistics: parse → open the table for the caller → plan → compile → run."""

from dataclasses import dataclass

from system.encoded_query import QueryError
from tableapi.catalogue.definitions import Catalogue
from tableapi.database import statement_runner
from tableapi.query.parameters import RawParameters, invalid_query
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller

from .parameters import StatisticsRequest, parse_statistics
from .plan import plan_statistics
from .statement import statistics_statement


@dataclass(frozen=True)
class StatisticsResult:
    # The JSON of all groups; None if there are none.
    body: bytes | None


def read_statistics(caller: Caller, table_name: str, raw: RawParameters) -> StatisticsResult:
    try:
        return _read_statistics(caller, table_name, parse_statistics(raw))
    except QueryError as error:
        raise invalid_query(error) from None


@on_current_catalogue
def _read_statistics(
    catalogue: Catalogue, caller: Caller, table_name: str, request: StatisticsRequest
) -> StatisticsResult:
    context = caller.context(catalogue)
    table = context.view.open_table(table_name)
    statement = context.view.cached(
        ("statistics", table.name, request.shape, request.query.shape),
        lambda: statistics_statement(plan_statistics(context.view, table, request)),
    )
    values = {f"having{number}": value for number, value in enumerate(request.having_values)}
    rows = statement_runner.fetch_bytes(statement, context.inputs(request.query.conditions, **values))
    ((body,),) = statement_runner.strip_version(rows, catalogue)
    return StatisticsResult(body)
