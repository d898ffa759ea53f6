"""Short lists of the home page: the work of the caller, and the records that they opened last."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.urls import reverse

from accounts.models import User
from system import properties
from system.encoded_query import ComparisonKind
from system.property_definitions import ASSIGNMENT_COLUMNS
from tableapi.catalogue.definitions import USER_TABLE, Catalogue, Column, Table
from tableapi.changes.logged_values import table_of
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller, ReadContext
from workspace.forms.display import display_text
from workspace.forms.parameters import read_list
from workspace.models import RecentRecord

from .columns import list_columns
from .list_state import ListState
from .rows import link_path, list_parameter

MAX_ROWS = 5
MAX_RECENT = 8
MAX_SHORT_COLUMNS = 3
OPENER_COLUMNS = ("opened_by",)

# For each id, the `url`, `title` and `details` of the record.
ShortRows = dict[str, dict[str, Any]]


@on_current_catalogue
def work_lists(catalogue: Catalogue, caller: Caller) -> list[dict[str, Any]]:
    """The records that are assigned to the caller, and those that they opened, of each table with such columns."""
    context = caller.context(catalogue)
    titles = {"Assigned to me": properties.get(ASSIGNMENT_COLUMNS), "Opened by me": OPENER_COLUMNS}
    lists = []
    for table in _top_tables(context):
        for title, names in titles.items():
            if query := _work_query(context, table, names):
                state = ListState(table.name, {"sysparm_query": query})
                rows = _read_rows(context, table, query, MAX_ROWS, list_parameter(state)).values()
                lists.append({"title": title, "table": table, "rows": rows, "url": state.url})
    return lists


def _work_query(context: ReadContext, table: Table, names: Iterable[str]) -> str:
    """The open records in which one of these columns contains the caller; empty without such a column."""
    found = [(name, _column(context, table, name)) for name in names]
    users = [f"{name}DYNAMICme" for name, column in found if column is not None and column.reference == USER_TABLE]
    if not users:
        return ""
    active = _column(context, table, "active")
    has_flag = active is not None and active.compare_as is ComparisonKind.BOOLEAN
    closed = "^closed_atISEMPTY" if _column(context, table, "closed_at") else ""
    order = "^ORDERBYDESCsys_updated_at" if _column(context, table, "sys_updated_at") else ""
    return f"{'^OR'.join(users)}{'^active=true' if has_flag else ''}{closed}{order}"


@on_current_catalogue
def recent_records(catalogue: Catalogue, caller: Caller, user: User) -> list[dict[str, Any]]:
    """The records that the caller opened last and can still read."""
    context = caller.context(catalogue)
    recent = list(RecentRecord.objects.filter(user=user).order_by("-opened_at", "-pk")[:MAX_RECENT])
    rows: dict[str, ShortRows] = {}
    for key in dict.fromkeys(record.table_key for record in recent):
        table = table_of(catalogue, key)
        if table is not None and context.view.can_read(table) and _column(context, table, "sys_id"):
            ids = ",".join(record.record_id for record in recent if record.table_key == key)
            rows[key] = _read_rows(context, table, f"sys_idIN{ids}", MAX_RECENT)
    found = (rows.get(record.table_key, {}).get(record.record_id) for record in recent)
    return [row for row in found if row is not None]


def _top_tables(context: ReadContext) -> Iterator[Table]:
    """The readable designed tables that extend no other readable one."""
    view = context.view
    for table in sorted(view.catalogue.tables.values(), key=lambda table: table.label.casefold()):
        parents = [view.catalogue.tables[name] for name in table.lineage[1:]]
        if not table.is_system and view.can_read(table) and not any(map(view.can_read, parents)):
            yield table


def _column(context: ReadContext, table: Table, name: str) -> Column | None:
    column_and_guard = context.view.column(table, name)
    return column_and_guard[0] if column_and_guard else None


def _read_rows(context: ReadContext, table: Table, query: str, limit: int, parameter: str = "") -> ShortRows:
    """The records with the first columns of the table's list. Their URLs end with the parameter."""
    columns = list_columns(context.view, table)
    link = link_path(table, columns)
    columns = sorted(columns, key=lambda column: column.path != link)[:MAX_SHORT_COLUMNS]
    fields = ["sys_id", *(column.path for column in columns)]
    zone, rows = context.caller.time_zone, {}
    for record in read_list(context, table, fields, sysparm_query=query, sysparm_limit=limit).records():
        title, *details = [display_text(column.column, record.get(column.path), zone) for column in columns] or [""]
        if "sys_id" in record:
            sys_id = record["sys_id"]["value"]
            url = reverse("record-page", args=[table.name, sys_id]) + parameter
            rows[sys_id] = {"url": url, "title": title or "(no name)", "details": list(filter(None, details))}
    return rows
