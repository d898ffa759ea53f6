"""Reads one page of a list and prepares its rows. The cells of a row are one piece of HTML, because rendering 500 cells
with a template takes several times as long."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from tableapi.catalogue.definitions import NUMBER_COLUMN, OWN_TABLE_COLUMN, Table
from tableapi.query.parameters import parse_list
from tableapi.read import pipeline
from tableapi.read.context import ReadContext
from workspace.forms.display import display_text
from workspace.forms.parameters import parameters

from .columns import ListColumn
from .list_state import ListState

PAGE_SIZE = 50
MAX_CELL_LENGTH = 160
EMPTY_LABEL = "(empty)"
TABLE_NAME = "table"

# The text and, if it is a link, the URL of a cell.
CellContent = tuple[str, str]


@dataclass(frozen=True)
class ListRow:
    sys_id: str
    label: str
    cells: SafeString
    url: str = ""


@dataclass(frozen=True)
class RowPage:
    rows: list[ListRow]
    # The parameters of the next page; empty on the last one.
    next_position: Mapping[str, str] = field(default_factory=dict)
    total: int | None = None


def read_rows(
    context: ReadContext, table: Table, state: ListState, columns: Sequence[ListColumn], *, counts: bool = False
) -> RowPage:
    """Read the page with one request to the Table API's pipeline."""
    names = ["sys_id", *([OWN_TABLE_COLUMN] if len(table.family) > 1 else []), *(column.path for column in columns)]
    fields = [name for name in dict.fromkeys(names) if "." in name or context.view.column(table, name)]
    raw = output_parameters(state, fields, "all", sysparm_limit=PAGE_SIZE, sysparm_count="exact" if counts else "")
    for name, value in state.position.items():
        raw[name] = value
    result = pipeline.fetch_list(context, table.name, parse_list(raw))
    records = json.loads(b"[" + b",".join(result.blocks) + b"]")
    make_row = RowFormatter(context, table, state, columns).row
    return RowPage([make_row(record) for record in records], result.next_page, result.total)


def output_parameters(state: ListState, fields: Sequence[str], display: str, **values: str | int) -> Any:
    """The parameters of the Table API that return these fields of what the list shows."""
    return parameters(
        sysparm_query=state.query,
        sysparm_fields=",".join(fields),
        sysparm_display_value=display,
        sysparm_exclude_reference_link="1",
        **values,
    )


def link_path(table: Table, columns: Sequence[ListColumn]) -> str:
    """The column whose cells lead to the record: the display column, the number, or the first one."""
    display = table.display_column
    wanted = [*([display.name] if display else []), NUMBER_COLUMN]
    paths = [column.path for column in columns]
    return next((name for name in wanted if name in paths), paths[0] if paths else "")


class RowFormatter:
    """Formats the records of one page."""

    def __init__(self, context: ReadContext, table: Table, state: ListState, columns: Sequence[ListColumn]) -> None:
        self.view, self.zone = context.view, context.caller.time_zone
        self.table, self.columns = table, columns
        self.root = reverse("tables")
        # Tells the form from which list it was opened.
        self.list_parameter = f"?list={quote(urlencode({TABLE_NAME: table.name, **state.parameters}))}"
        self.link_path = link_path(table, columns)
        self.target_roots = [self._target_root(column) for column in columns]

    def _target_root(self, column: ListColumn) -> str:
        name = column.column.reference if column.column.column_type.is_reference else None
        target = self.view.table(name) if name else None
        return f"{self.root}{target.name}/" if target is not None and self.view.can_read(target) else ""

    def row(self, record: Mapping[str, Any]) -> ListRow:
        sys_id = str(record["sys_id"]["value"]) if "sys_id" in record else ""
        url = f"{self._table_root(record)}{sys_id}/{self.list_parameter}" if sys_id else ""
        pieces, values, label = [], [], ""
        for column, target_root in zip(self.columns, self.target_roots, strict=True):
            field_ = record.get(column.path)
            text = one_line(display_text(column.column, field_, self.zone))
            if column.path == self.link_path:
                text = label = text or EMPTY_LABEL
                href = url
            else:
                href = f"{target_root}{field_['value']}/" if target_root and text and field_ else ""
            pieces.append(_cell_template(column.is_number, bool(href)))
            values += [href, text] if href else [text]
        return ListRow(sys_id, label, format_html("".join(pieces), *values) if pieces else SafeString(), url)

    def _table_root(self, record: Mapping[str, Any]) -> str:
        """The URL of the record's own table, which may extend the table of the list, if the caller can see it."""
        table_id = (record.get(OWN_TABLE_COLUMN) or {}).get("value")
        own_table = self.view.catalogue.tables_by_id.get(table_id or "")
        is_visible = own_table is not None and self.view.table(own_table.name) is not None
        return f"{self.root}{own_table.name if own_table and is_visible else self.table.name}/"


def _cell_template(is_number: bool, is_link: bool) -> str:
    start = '<td class="number">' if is_number else "<td>"
    return start + ('<a href="{}">{}</a></td>' if is_link else "{}</td>")


def one_line(text: str) -> str:
    """
    >>> one_line(" two\\n lines ")
    'two lines'
    """
    line = " ".join(text[: 4 * MAX_CELL_LENGTH].split()) if "\n" in text or len(text) > MAX_CELL_LENGTH else text
    return f"{line[: MAX_CELL_LENGTH - 1]}…" if len(line) > MAX_CELL_LENGTH else line.strip()
