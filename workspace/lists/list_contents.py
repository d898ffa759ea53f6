"""Everything that the list page shows, as the context of its template."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from system.errors import NotFound
from tableapi.access.permissions import CATALOGUE_TABLES
from tableapi.catalogue.definitions import CREATE, DELETE, WRITE, Table
from tableapi.changes.logged_values import table_key
from tableapi.query.expressions import NEVER
from tableapi.read.context import ReadContext
from workspace.models import ListLayout

from . import columns, groups, query_tree, rows, search
from .columns import ListColumn
from .curl import curl_command
from .list_state import ListState
from .query_description import filter_context
from .saved_lists import saved_lists_for

SORT_LABELS = {None: "none", False: "ascending", True: "descending"}
SELECT_WIDTH = 48
MAX_SEARCH_LABELS = 3
# A click sorts ascending, the next one descending, the third one not at all.
NEXT_SORT = {None: False, False: True, True: None}
SORT_MARKS = {False: "▲", True: "▼"}


@dataclass(frozen=True)
class HeaderCell:
    """`sort_url` is empty for a column that cannot be sorted; `aria_sort` for one that is not."""

    column: ListColumn
    width: int
    is_link: bool
    sort_url: str = ""
    aria_sort: str = ""
    mark: str = ""


def read_layout(context: ReadContext, table: Table) -> list[dict[str, Any]]:
    layout = ListLayout.objects.filter(user_id=context.caller.user_id, table_key=table_key(table)).first()
    return layout.columns if layout is not None else []


def columns_of(context: ReadContext, table: Table, state: ListState) -> list[ListColumn]:
    return columns.list_columns(context.view, table, state.columns, state.view, read_layout(context, table))


def read_contents(context: ReadContext, table: Table, state: ListState, *, counts: bool = False) -> dict[str, Any]:
    """Read the page. Raises the errors of the Table API, and QueryError."""
    view = context.view
    shown = columns_of(context, table, state)
    contents: dict[str, Any] = {"table": table, "state": state, "can_read": view.can_read(table)}
    if state.group:
        contents["grouping"] = groups.read_groups(context, table, state)
    else:
        contents |= rows_context(context, table, state, shown, counts=counts)
    offered = saved_lists_for(context, table)
    saved_list = next((item for item in offered if item.saved.pk == state.saved), None)
    operator = search.search_operator(view, table)
    # A link for others, whose own columns may be different.
    shared = replace(state.first_page, columns=tuple(column.path for column in shown))
    contents |= filter_context(context, table, state.query)
    permissions = view.permissions
    can_create = permissions.record_decision(CREATE, table) != NEVER
    return contents | {
        "can_create": can_create,
        "can_import": table.name not in CATALOGUE_TABLES
        and (can_create or permissions.record_decision(WRITE, table) != NEVER),
        "groupable": columns.groupable_columns(view, table),
        "search_hint": ", ".join(column.label for column in search.searched_columns(view, table)[:MAX_SEARCH_LABELS]),
        "search_words": search.searched_words(operator, state.query),
        "saved_lists": offered,
        "saved_list": saved_list,
        "edit_saved_url": shared.url("saved-list", saved_list.saved.pk) if saved_list else "",
        "save_url": shared.url("saved-list-new"),
        "columns_url": state.first_page.url("list-columns"),
        "ungrouped_url": replace(state, group="").url(),
        "share_path": shared.url(),
        "curl": curl(context, table, state, shown),
    }


def read_more(context: ReadContext, table: Table, state: ListState) -> dict[str, Any]:
    """Only the rows of a page."""
    return rows_context(context, table, state, columns_of(context, table, state))


def count_records(context: ReadContext, table: Table, state: ListState) -> int | None:
    return rows.read_rows(context, table, state.first_page, [], counts=True).total


def search_state(context: ReadContext, table: Table, state: ListState, words: str) -> ListState:
    """The list that is searched for these words."""
    operator = search.search_operator(context.view, table)
    if operator is None:
        raise NotFound
    return state.with_query(search.with_search(operator, state.query, words.strip()))


def rows_context(
    context: ReadContext, table: Table, state: ListState, shown: Sequence[ListColumn], *, counts: bool = False
) -> dict[str, Any]:
    permissions, has_ids = context.view.permissions, context.view.column(table, "sys_id") is not None
    can_write, can_delete = (
        has_ids and permissions.record_decision(operation, table) != NEVER for operation in (WRITE, DELETE)
    )
    can_select = can_write or can_delete
    page = rows.read_rows(context, table, state, shown, counts=counts, can_select=can_select)
    total = page.total if page.next_position or state.position else len(page.rows)
    width = sum(column.width or columns.USUAL_WIDTH for column in shown) if any(c.width for c in shown) else 0
    return {
        "headers": header_cells(table, state, shown, has_widths=bool(width)),
        "table_width": width + SELECT_WIDTH if width else 0,
        "select_width": SELECT_WIDTH,
        "page": page,
        "total": total,
        "next_url": replace(state, position=page.next_position).url() if page.next_position else "",
        "can_write": can_write,
        "can_delete": can_delete,
        "can_select": can_select,
        "has_editable": any(column.is_editable for column in shown),
        "count_url": state.first_page.url(count="1"),
    }


def header_cells(table: Table, state: ListState, shown: Sequence[ListColumn], *, has_widths: bool) -> list[HeaderCell]:
    tree = query_tree.parse_tree(state.query)
    order = {key["path"]: key["is_descending"] for key in tree["order"][:1]}
    rest = query_tree.to_text(tree | {"order": []})
    link, cells = rows.link_path(table, shown), []
    for column in shown:
        width, is_link = (column.width or columns.USUAL_WIDTH) if has_widths else 0, column.path == link
        if not column.is_sortable:
            cells.append(HeaderCell(column, width, is_link))
            continue
        current = order.get(column.path)
        following = NEXT_SORT[current]
        key = "" if following is None else f"ORDERBY{'DESC' if following else ''}{column.path}"
        url = state.with_query("^".join(filter(None, (rest, key)))).url()
        is_sorted = current is not None
        aria_sort = SORT_LABELS[current] if is_sorted else ""
        cells.append(
            HeaderCell(column, width, is_link, url, aria_sort, SORT_MARKS[current] if current is not None else "")
        )
    return cells


def curl(context: ReadContext, table: Table, state: ListState, shown: Sequence[ListColumn]) -> str:
    fields = ",".join(["sys_id", *(column.path for column in shown if column.path != "sys_id")])
    values = {"sysparm_query": state.query, "sysparm_fields": fields, "sysparm_limit": str(rows.PAGE_SIZE)}
    return curl_command(f"{context.caller.api_url}{table.name}", values)
