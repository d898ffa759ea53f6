"""Checks what an administrator enters for a webhook, as its user sees the table."""

from collections.abc import Sequence

from accounts.models import User
from system.errors import AccessDenied, InvalidParameter
from tableapi.catalogue.definitions import Catalogue
from tableapi.query.parameters import MAX_FIELDS, ListRequest, OutputOptions
from tableapi.query.parsed_query import parse_query_text
from tableapi.read import pipeline
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller


@on_current_catalogue
def check(catalogue: Catalogue, user: User, table_name: str, condition: str, columns: Sequence[str]) -> list[str]:
    """Return the columns to send. Raises AccessDenied for the user, BadRequest for the condition, and InvalidParameter
    for the columns."""
    context = Caller.of(user).context(catalogue)
    view, table = context.view, catalogue.tables.get(table_name)
    if table is None or not view.can_read(table) or view.column(table, "sys_id") is None:
        raise AccessDenied("This user may not read the table, or not the IDs of its records.")
    unknown = [name for name in columns if view.column(table, name) is None]
    if unknown:
        raise InvalidParameter(f"The user can read no column with the name {', '.join(unknown)}.")
    names = list(columns) or [name for name in table.columns if view.column(table, name) is not None][:MAX_FIELDS]
    if len(names) > MAX_FIELDS:
        raise InvalidParameter(f"Enter at most {MAX_FIELDS} columns.")
    # Runs the query, because some values are read only then.
    query = parse_query_text(condition)
    pipeline.fetch_list(context, table.name, ListRequest(OutputOptions(("sys_id",)), query, limit=1))
    return names
