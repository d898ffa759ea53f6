"""Related lists: the records that refer to a record, as the caller's own lists would contain them."""

from typing import Any

from tableapi.catalogue.definitions import CREATE, Column, Table
from tableapi.query.expressions import NEVER
from tableapi.read.context import ReadContext

from .display import column_label, display_text
from .layout import summary_columns
from .parameters import read_list

MAX_RELATED_RECORDS = 10
MAX_RELATED_COLUMNS = 5


def related_lists(context: ReadContext, table: Table, sys_id: str) -> list[dict[str, Any]]:
    """The lists that contain records or to which the caller may add one; those with records come first."""
    view = context.view
    lists = []
    for column in view.catalogue.referring_columns(table):
        other = view.table(column.owner)
        if other is not None and view.can_read(other) and view.column(other, column.name) is not None:
            lists.append(_related_list(context, other, column, f"{column.name}={sys_id}"))
    shown = [related for related in lists if related["rows"] or related["can_create"]]
    return sorted(shown, key=lambda related: (not related["rows"], related["title"].casefold()))


def _related_list(context: ReadContext, table: Table, column: Column, query: str) -> dict[str, Any]:
    view, permissions, zone = context.view, context.view.permissions, context.caller.time_zone
    columns = [other for other in summary_columns(view, table, MAX_RELATED_COLUMNS) if other is not column]
    names = [other.name for other in columns] + ["sys_id"] * (view.column(table, "sys_id") is not None)
    sorted_query = f"{query}^ORDERBYDESCsys_updated_at" if view.column(table, "sys_updated_at") else query
    names = names or [column.name]
    result = read_list(context, table, names, sysparm_query=sorted_query, sysparm_limit=MAX_RELATED_RECORDS)
    decisions = [permissions.record_decision(CREATE, table), permissions.column_decision(CREATE, table, column)]
    return {
        "table": table,
        "title": f"{table.label} ({column_label(column)})",
        "headings": [column_label(other) for other in columns],
        # The id of each record, and the texts of its columns.
        "rows": [
            (
                record.get("sys_id", {}).get("value"),
                [display_text(other, record.get(other.name), zone) for other in columns],
            )
            for record in result.records()
        ],
        "has_more": bool(result.next_page),
        "query": query,
        "can_create": NEVER not in decisions and not table.is_server_managed(column),
    }
