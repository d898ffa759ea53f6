"""Reads statistics: parse → open the table for the caller → plan → compile → run."""

from tableapi.catalogue.definitions import Catalogue
from tableapi.query.parameters import RawParameters
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller, ReadContext

from .parameters import StatisticsRequest, parse_statistics
from .plan import plan_statistics
from .statement import StatisticsCompiler


@on_current_catalogue
def read_statistics(catalogue: Catalogue, caller: Caller, table_name: str, raw: RawParameters) -> bytes | None:
    """Return the JSON of all groups; None if there are none."""
    return fetch_statistics(caller.context(catalogue), table_name, parse_statistics(raw))


def fetch_statistics(context: ReadContext, table_name: str, request: StatisticsRequest) -> bytes | None:
    table = context.view.open_table(table_name)
    statement = context.view.cached(
        ("statistics", table.name, request.shape, request.query.shape),
        lambda: StatisticsCompiler(plan_statistics(context.view, table, request)).statement(),
    )
    values = {f"having{number}": value for number, value in enumerate(request.having_values)}
    ((groups,),) = context.fetch_bytes(statement, conditions=request.query.conditions, **values)
    return groups
