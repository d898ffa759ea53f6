"""The previous and the next record on the page of the list from which a form was opened."""

from dataclasses import dataclass

from django.http import QueryDict

from system.encoded_query import QueryError
from system.errors import ServiceError
from tableapi.catalogue.definitions import Table
from tableapi.read.context import ReadContext

from .list_contents import columns_of
from .list_state import ListState, parse_state
from .rows import TABLE_NAME, RowFormatter, id_of, read_page


@dataclass(frozen=True)
class Siblings:
    """URLs; empty if there is no such record on the page."""

    list_url: str = ""
    previous_url: str = ""
    next_url: str = ""


def siblings(context: ReadContext, table: Table, sys_id: str, list_text: str) -> Siblings:
    """Read the page again. `list_text` is the query string of the list, with its table, which may be a parent."""
    query = QueryDict(list_text)
    listed = context.view.table(query.get(TABLE_NAME) or table.name)
    if listed is None:
        return Siblings()
    state = ListState(listed.name)
    try:
        state = parse_state(listed.name, query)
        # A cursor is valid only with the columns of its list.
        records = read_page(context, listed, state, columns_of(context, listed, state)).records()
    except (ServiceError, QueryError):
        return Siblings(state.url)  # the link is old, or its columns are no longer visible
    ids, formatter = [id_of(record) for record in records], RowFormatter(context, listed, state, [])
    urls = ["", *map(formatter.record_url, records, ids), ""]
    place = ids.index(sys_id) if sys_id in ids else None
    return Siblings(state.url, *([urls[place], urls[place + 2]] if place is not None else []))
