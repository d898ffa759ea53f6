"""Short lists of the home page: the work of the caller, and the records that they opened last."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import tzinfo
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from accounts.models import User
from system import properties
from system.encoded_query import ComparisonKind
from system.property_definitions import ASSIGNMENT_COLUMNS
from tableapi.catalogue.definitions import USER_TABLE, Catalogue, Column, Table
from tableapi.changes.logged_values import table_of
from tableapi.query.parameters import parse_list
from tableapi.read import pipeline
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller, ReadContext
from workspace.forms.display import display_text
from workspace.forms.parameters import parameters
from workspace.models import RecentRecord

MAX_ROWS = 5
MAX_RECENT = 8
OPENER_COLUMNS = ("opened_by",)


@dataclass(frozen=True)
class ShortRow:
    table: Table
    sys_id: str
    title: str
    details: list[str]


@dataclass(frozen=True)
class ShortList:
    """`query` is that of the list with all records."""

    title: str
    table: Table
    rows: list[ShortRow]
    parameters: str = ""
    has_more: bool = field(default=False)


@on_current_catalogue
def work_lists(catalogue: Catalogue, caller: Caller) -> list[ShortList]:
    """The records that are assigned to the caller, and those that they opened, of each table with such columns."""
    context = caller.context(catalogue)
    lists = []
    for table in _top_tables(context):
        for title, names in (("Assigned to me", properties.get(ASSIGNMENT_COLUMNS)), ("Opened by me", OPENER_COLUMNS)):
            conditions = [f"{name}DYNAMICme" for name in names if _is_user_reference(context, table, name)]
            if conditions:
                query = f"{'^OR'.join(conditions)}{_active_condition(context, table)}^ORDERBYDESCsys_updated_at"
                lists.append(_read(context, table, title, query))
    return lists


@on_current_catalogue
def recent_records(catalogue: Catalogue, caller: Caller, user: User) -> list[ShortRow]:
    """The records that the caller opened last and can still read."""
    context = caller.context(catalogue)
    recent = list(RecentRecord.objects.filter(user=user).order_by("-opened_at")[:MAX_RECENT])
    rows: dict[tuple[str, str], ShortRow] = {}
    for key in dict.fromkeys(row.table_key for row in recent):
        table = table_of(catalogue, key)
        if table is not None and context.view.can_read(table) and context.view.column(table, "sys_id"):
            ids = [row.record_id for row in recent if row.table_key == key]
            found = _read(context, table, "", f"sys_idIN{','.join(ids)}", limit=MAX_RECENT)
            rows |= {(key, row.sys_id): row for row in found.rows}
    return [rows[place] for row in recent if (place := (row.table_key, row.record_id)) in rows]


def _top_tables(context: ReadContext) -> Iterator[Table]:
    """The readable designed tables that extend no other readable one."""
    view = context.view
    for table in sorted(view.catalogue.tables.values(), key=lambda table: table.label.casefold()):
        parents = [view.catalogue.tables[name] for name in table.lineage[1:]]
        if not table.is_system and view.can_read(table) and not any(map(view.can_read, parents)):
            yield table


def _is_user_reference(context: ReadContext, table: Table, name: str) -> bool:
    column_and_guard = context.view.column(table, name)
    return column_and_guard is not None and column_and_guard[0].reference == USER_TABLE


def _active_condition(context: ReadContext, table: Table) -> str:
    column_and_guard = context.view.column(table, "active")
    is_flag = column_and_guard is not None and column_and_guard[0].compare_as is ComparisonKind.BOOLEAN
    return "^active=true" if is_flag else ""


def _read(context: ReadContext, table: Table, title: str, query: str, limit: int = MAX_ROWS) -> ShortList:
    columns = list(islice(_shown_columns(context, table), 3))
    fields = ["sys_id", *(column.name for column in columns)]
    if context.view.column(table, "sys_updated_at") is None:
        query = query.removesuffix("^ORDERBYDESCsys_updated_at")
    raw = parameters(
        sysparm_query=query,
        sysparm_fields=",".join(fields),
        sysparm_display_value="all",
        sysparm_exclude_reference_link=1,
        sysparm_limit=limit,
    )
    if context.view.column(table, "sys_id") is None or not columns:
        return ShortList(title, table, [])
    result = pipeline.fetch_list(context, table.name, parse_list(raw))
    rows = list(_rows(table, columns, result.records(), context.caller.time_zone))
    return ShortList(title, table, rows, urlencode({"sysparm_query": query}), bool(result.next_page))


def _shown_columns(context: ReadContext, table: Table) -> Iterator[Column]:
    """The display column, then those of the form view `list`, then the others."""
    view = context.view
    display = [table.display_column.name] if table.display_column else []
    names: Iterable[str] = dict.fromkeys([*display, *(view.catalogue.view(table, "list") or ()), *table.columns])
    for name in names:
        column_and_guard = view.column(table, name)
        if column_and_guard is not None and not column_and_guard[0].is_sys:
            yield column_and_guard[0]


def _rows(table: Table, columns: list[Column], records: list[dict[str, Any]], zone: tzinfo) -> Iterator[ShortRow]:
    for record in records:
        if "sys_id" in record:
            texts = [display_text(column, record.get(column.name), zone) for column in columns]
            title, *details = texts
            yield ShortRow(table, record["sys_id"]["value"], title or "(no name)", [text for text in details if text])
