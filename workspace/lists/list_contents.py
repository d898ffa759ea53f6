"""Everything that the list page shows, as the context of its template."""

import shlex
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from system.errors import NotFound
from tableapi.access.permissions import CATALOGUE_TABLES
from tableapi.catalogue.definitions import CREATE, DELETE, WRITE, Table
from tableapi.changes.logged_values import table_key
from tableapi.query.expressions import NEVER
from tableapi.read.context import ReadContext
from workspace.models import ListLayout

from . import columns, groups, query_tree, rows, search
from .columns import ListColumn
from .list_state import ListState
from .query_description import filter_context
from .saved_lists import saved_lists_for

SELECT_WIDTH = 48
# For the direction in which a column is sorted, `aria-sort` and the order after a click. The third click does not sort.
SORTS = {None: ("", "ORDERBY{}"), False: ("ascending", "ORDERBYDESC{}"), True: ("descending", "")}


def read_settings(context: ReadContext, table: Table) -> tuple[list[dict[str, Any]], bool]:
    """The columns that the caller chose, with their widths, and whether saved lists may be offered to them."""
    return ListLayout.objects.read_settings(context.caller.user_id, table_key(table))


def columns_of(context: ReadContext, table: Table, state: ListState) -> list[ListColumn]:
    layout, _ = read_settings(context, table)
    return _choose_columns(context, table, state, layout)


def _choose_columns(
    context: ReadContext, table: Table, state: ListState, layout: list[dict[str, Any]]
) -> list[ListColumn]:
    view_name = state.parameters.get("sysparm_view", "")
    return columns.list_columns(context.view, table, state.columns, view_name, layout)


def read_contents(context: ReadContext, table: Table, state: ListState, *, counts: bool = False) -> dict[str, Any]:
    """Read the page. Raises the errors of the Table API, and QueryError."""
    layout, has_saved_lists = read_settings(context, table)
    shown = _choose_columns(context, table, state, layout)
    saved_lists = saved_lists_for(context, table) if has_saved_lists else []
    paths = [column.path for column in shown]
    if "group" in state.parameters:
        contents = {"grouping": groups.read_groups(context, table, state)}
    else:
        contents = _rows_context(context, table, state, shown, counts=counts)
    saved_id, table_search = state.parameters.get("saved"), search.search_of(context.view, table)
    can_create, can_write = (_is_allowed(context, table, operation) for operation in (CREATE, WRITE))
    return {
        "table": table,
        "state": state,
        "can_read": context.view.can_read(table),
        "can_create": can_create,
        "can_import": table.name not in CATALOGUE_TABLES and (can_create or can_write),
        "group_options": context.view.cached(
            ("group options", table.name), lambda: columns.group_options(context.view, table)
        ),
        "saved_lists": saved_lists,
        "saved_list": next((item for item in saved_lists if item.saved.pk == saved_id), None),
        # For others, whose own columns may be different.
        "shared": state.first_page(columns=",".join(paths)),
        "curl": curl_command(
            f"{context.caller.api_url}{table.name}",
            sysparm_query=state.query,
            sysparm_fields=",".join(dict.fromkeys(["sys_id", *paths])),
            sysparm_limit=str(rows.PAGE_SIZE),
        ),
        "search_hint": table_search.hint,
        "search_words": search.searched_words(table_search, state.query),
        **filter_context(context, table, state.query),
        **contents,
    }


def read_more(context: ReadContext, table: Table, state: ListState) -> dict[str, Any]:
    """Only the rows of a page."""
    return _rows_context(context, table, state, columns_of(context, table, state))


def count_records(context: ReadContext, table: Table, state: ListState) -> int | None:
    return rows.read_page(context, table, state.first_page(), [], counts=True).total


def search_state(context: ReadContext, table: Table, state: ListState, words: str) -> ListState:
    """The list that is searched for these words."""
    table_search = search.search_of(context.view, table)
    if not table_search.operators:
        raise NotFound
    return state.first_page(sysparm_query=search.with_search(table_search, state.query, words.strip()))


def _is_allowed(context: ReadContext, table: Table, operation: str) -> bool:
    """Whether the caller may do this with some records; the write decides about each record."""
    return context.view.permissions.record_decision(operation, table) != NEVER


def _rows_context(
    context: ReadContext, table: Table, state: ListState, shown: Sequence[ListColumn], *, counts: bool = False
) -> dict[str, Any]:
    has_ids = context.view.column(table, "sys_id") is not None
    can_write, can_delete = (has_ids and _is_allowed(context, table, operation) for operation in (WRITE, DELETE))
    can_select = can_write or can_delete
    result = rows.read_page(context, table, state, shown, counts=counts)
    formatter = rows.RowFormatter(context, table, state, shown)
    lines = [formatter.row(record, can_select=can_select) for record in result.records()]
    width = sum(column.width for column in shown)
    return {
        "headers": header_cells(table, state, shown),
        "table_width": width + SELECT_WIDTH if width else 0,
        "select_width": SELECT_WIDTH,
        "rows": lines,
        "total": result.total if result.next_page or state.position else len(lines),
        "next_url": state.first_page(**result.next_page).url if result.next_page else "",
        "can_write": can_write,
        "can_delete": can_delete,
        "can_select": can_select,
    }


def header_cells(table: Table, state: ListState, shown: Sequence[ListColumn]) -> list[dict[str, Any]]:
    """`sort_url` is missing for columns that cannot be sorted, and `aria_sort` is empty for those that are not."""
    order = query_tree.parse_tree(state.query)["order"][:1]
    directions, unsorted = {key["path"]: key["is_descending"] for key in order}, query_tree.with_order(state.query)
    link, cells = rows.link_path(table, shown), []
    others = state.first_page(sysparm_query="").encoded
    for column in shown:
        cell = {"column": column, "is_link": column.path == link}
        if column.column.column_type.is_sortable:
            aria_sort, next_order = SORTS[directions.get(column.path)]
            query = urlencode({"sysparm_query": "^".join(filter(None, (unsorted, next_order.format(column.path))))})
            cell |= {"aria_sort": aria_sort, "sort_url": f"?{query}&{others}"}
        cells.append(cell)
    return cells


def curl_command(url: str, **parameters: str) -> str:
    r"""The list as a command for POSIX shells; the key comes from the variable TOKEN.

    >>> print(curl_command("https://a.example/rest/v1/table/task", sysparm_query="name=it's"))
    curl -G https://a.example/rest/v1/table/task \
      -H "Authorization: Bearer $TOKEN" \
      --data-urlencode 'sysparm_query=name=it'"'"'s'
    """
    options = [f"--data-urlencode {shlex.quote(f'{name}={value}')}" for name, value in parameters.items() if value]
    return " \\\n  ".join([f"curl -G {shlex.quote(url)}", '-H "Authorization: Bearer $TOKEN"', *options])
