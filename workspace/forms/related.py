"""Related lists: the records that refer to a record, as the caller's own lists would contain them."""

import json
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from tableapi.catalogue.definitions import CREATE, Column, Table
from tableapi.query.expressions import NEVER
from tableapi.query.parameters import parse_list
from tableapi.read import pipeline
from tableapi.read.context import ReadContext

from .controls import column_label
from .display import display_text
from .layout import summary_columns
from .parameters import parameters

MAX_RELATED_RECORDS = 10
MAX_RELATED_COLUMNS = 5


@dataclass(frozen=True)
class RelatedList:
    """`rows` has the id of each record and the texts of its columns. `new_url` is empty if the caller creates none."""

    table: Table
    column: Column
    headings: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    has_more: bool
    query: str
    new_url: str

    @property
    def title(self) -> str:
        return f"{self.table.label} ({column_label(self.column)})"


def related_lists(context: ReadContext, table: Table, sys_id: str) -> list[RelatedList]:
    """The lists that contain records or to which the caller may add one; those with records come first."""
    view = context.view
    lists = []
    for column in view.catalogue.referring_columns(table):
        other = view.table(column.owner)
        if other is not None and view.can_read(other) and view.column(other, column.name) is not None:
            lists.append(_related_list(context, other, column, sys_id))
    shown = [related for related in lists if related.rows or related.new_url]
    return sorted(shown, key=lambda related: (not related.rows, related.title.casefold()))


def _related_list(context: ReadContext, table: Table, column: Column, sys_id: str) -> RelatedList:
    view, zone = context.view, context.caller.time_zone
    columns = [other for other in summary_columns(view, table, MAX_RELATED_COLUMNS) if other is not column]
    has_ids = view.column(table, "sys_id") is not None
    names = [other.name for other in columns] + ["sys_id"] * has_ids
    query = f"{column.name}={sys_id}"
    raw = parameters(
        sysparm_query=f"{query}^ORDERBYDESCsys_updated_at" if view.column(table, "sys_updated_at") else query,
        sysparm_fields=",".join(names or [column.name]),
        sysparm_display_value="all",
        sysparm_limit=MAX_RELATED_RECORDS,
    )
    result = pipeline.fetch_list(context, table.name, parse_list(raw))
    records: list[dict[str, Any]] = json.loads(b"[" + b",".join(result.blocks) + b"]")
    permissions = view.permissions
    can_create = NEVER not in (
        permissions.record_decision(CREATE, table),
        permissions.column_decision(CREATE, table, column),
    ) and not table.is_server_managed(column)
    return RelatedList(
        table,
        column,
        tuple(map(column_label, columns)),
        tuple(
            (
                record["sys_id"]["value"] if has_ids else "",
                tuple(display_text(other, record.get(other.name), zone) for other in columns),
            )
            for record in records
        ),
        bool(result.next_page),
        query,
        f"{reverse('record-new', args=[table.name])}?{column.name}={sys_id}" if can_create else "",
    )
