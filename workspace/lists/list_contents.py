"""Everything that the list page shows, as the context of its template."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from system.encoded_query import ComparisonKind
from system.errors import NotFound
from tableapi.access.caller_view import CallerView
from tableapi.access.permissions import CATALOGUE_TABLES
from tableapi.catalogue.definitions import CREATE, DELETE, NUMBER_COLUMN, WRITE, Column, Table
from tableapi.changes.logged_values import table_key
from tableapi.query.expressions import NEVER
from tableapi.query.path_resolver import required_path
from tableapi.read.context import ReadContext
from tableapi.statistics import pipeline
from workspace.forms.display import display_text, path_label
from workspace.forms.parameters import parameters, quoted_value
from workspace.models import ListLayout

from . import columns, query_tree, rows
from .columns import ListColumn
from .list_state import ListState
from .query_description import filter_context
from .saved_lists import saved_lists_for

SELECT_WIDTH = 48
MAX_GROUPS = 200
MAX_SEARCH_LABELS = 3
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
        contents = {"grouping": read_groups(context, table, state)}
    else:
        contents = _rows_context(context, table, state, shown, counts=counts)
    saved_id, table_search = state.parameters.get("saved"), search_of(context.view, table)
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
        "search_words": searched_words(table_search, state.query),
        **filter_context(context, table, state.query),
        **contents,
    }


def read_more(context: ReadContext, table: Table, state: ListState) -> dict[str, Any]:
    return _rows_context(context, table, state, columns_of(context, table, state))


def count_records(context: ReadContext, table: Table, state: ListState) -> int | None:
    return rows.read_page(context, table, state.first_page(), [], counts=True).total


def search_state(context: ReadContext, table: Table, state: ListState, words: str) -> ListState:
    table_search = search_of(context.view, table)
    if not table_search.operators:
        raise NotFound
    return state.first_page(sysparm_query=with_search(table_search, state.query, words.strip()))


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
    directions, unsorted = {key["path"]: key["is_descending"] for key in order}, query_tree.without_order(state.query)
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


def curl_command(url: str, **options: str) -> str:
    r"""The list as a command for POSIX shells; the key comes from the variable TOKEN.

    >>> print(curl_command("https://a.example/rest/v1/table/task", sysparm_query="name=it's"))
    curl -G https://a.example/rest/v1/table/task \
      -H "Authorization: Bearer $TOKEN" \
      --data-urlencode 'sysparm_query=name=it'"'"'s'
    """
    data = [f"--data-urlencode {shlex.quote(f'{name}={value}')}" for name, value in options.items() if value]
    return " \\\n  ".join([f"curl -G {shlex.quote(url)}", '-H "Authorization: Bearer $TOKEN"', *data])


def read_groups(context: ReadContext, table: Table, state: ListState) -> dict[str, Any]:
    """The label of the column, and the largest groups. Times are grouped by day."""
    path = state.parameters["group"]
    resolved = required_path(context.view, table, tuple(path.split(".")))
    is_time = resolved.column.compare_as is ComparisonKind.DATETIME
    key = f"{path}:day" if is_time else path
    raw = parameters(
        sysparm_query=query_tree.without_order(state.query),
        sysparm_group_by=key,
        sysparm_count="true",
        sysparm_order_by="-count",
        sysparm_display_value="all",
        sysparm_limit=MAX_GROUPS + 1,
    )
    text = pipeline.read_statistics(context.caller, table.name, raw) or b""
    entries = json.loads(b"[" + text + b"]", parse_float=Decimal)
    groups = []
    for entry in entries[:MAX_GROUPS]:
        field = entry["group"][key]
        label = _day_label(field) if is_time else display_text(resolved.column, field, context.caller.time_zone)
        query = query_tree.with_condition(state.query, f"{path}{_condition(field['value'], is_time=is_time)}")
        url = state.first_page(sysparm_query=query, group="").url
        groups.append({"label": label or "(empty)", "count": int(entry["count"]), "url": url})
    return {
        "label": path_label(resolved),
        "groups": groups,
        "is_cut": len(entries) > MAX_GROUPS,
        "list_url": state.first_page(group="").url,
    }


def _day_label(field: dict[str, Any]) -> str:
    if field["value"] is None:
        return ""
    day = date.fromisoformat(field["value"])
    return f"{day.day} {day:%b %Y}"


def _condition(value: Any, *, is_time: bool) -> str:
    """The operator and value for the records of a group."""
    if value is None:
        return "ISEMPTY"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{'ON' if is_time else '='}{quoted_value(text)}"


@dataclass(frozen=True)
class Search:
    """The columns that the quick search of a table searches, and the condition with which it searches them."""

    columns: tuple[Column, ...]
    # Paths and operators, any of which may match. A table without them cannot be searched.
    operators: tuple[tuple[str, str], ...]

    @property
    def hint(self) -> str:
        return ", ".join(column.label or column.name for column in self.columns[:MAX_SEARCH_LABELS])


def search_of(view: CallerView, table: Table) -> Search:
    """Searches the words of searchable text, and the beginning of the number and the display value. If the caller can
    see no searchable text, the latter contain the words."""
    visible = [column for column in table.columns.values() if view.column(table, column.name)]
    texts = [column for column in visible if column.column_type.is_text]
    has_ids = view.column(table, "sys_id") is not None
    words = [column for column in texts if column.is_indexed and has_ids]
    names = [column for column in texts if column in (table.columns.get(NUMBER_COLUMN), table.display_column)]
    names = [column for column in names if column not in words]
    operators = [(column.name, "STARTSWITH" if words else "LIKE") for column in names]
    return Search((*names, *words), tuple([("sys_id", "ARE"), *operators] if words else operators))


def searched_words(search: Search, query: str) -> str:
    """The words that the query searches for; empty without a search.

    >>> search = Search((), (("sys_id", "ARE"), ("name", "STARTSWITH")))
    >>> searched_words(search, "state=1^sys_idAREmail server^ORnameSTARTSWITHmail server")
    'mail server'
    """
    return next((term[0]["value"] for term in _search_terms(search, query_tree.parse_tree(query))), "")


def with_search(search: Search, query: str, words: str) -> str:
    """The query with these words in place of those it searched for. Punctuation alone is not a word.

    >>> with_search(Search((), (("sys_id", "ARE"),)), "sys_idAREa^b=1^ORDERBYc", "x y")
    'b=1^sys_idAREx y^ORDERBYc'
    """
    tree = query_tree.parse_tree(query)
    terms = _search_terms(search, tree)
    groups = [[term for term in group if term not in terms] for group in tree["groups"]]
    rest = query_tree.to_text(tree | {"groups": [group for group in groups if group]})
    term = "^OR".join(f"{path}{operator}{quoted_value(words)}" for path, operator in search.operators)
    return query_tree.with_condition(rest, term) if any(map(str.isalnum, words)) else rest


def _search_terms(search: Search, tree: query_tree.JsonObject) -> query_tree.JsonGroup:
    """The terms that consist of a search only. With ^NQ, each group has conditions of its own."""
    return [
        term
        for term in (tree["groups"][0] if len(tree["groups"]) == 1 else [])
        if tuple((factor.get("path"), factor.get("operator")) for factor in term) == search.operators
        and len({factor["value"] for factor in term}) == 1
    ]
