"""Reads one page of a list and prepares its rows. The cells of a row are one piece of HTML, because rendering 500 cells
with a template takes several times as long."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from django.urls import reverse
from django.utils.html import escape, format_html
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

SELECT_TEMPLATE = (
    '<td class="select"><input type="checkbox" form="bulk" name="record-id" value="{id}" aria-label="Select {}"></td>'
)


@dataclass(frozen=True)
class ListRow:
    sys_id: str
    url: str
    html: SafeString


@dataclass(frozen=True)
class RowPage:
    rows: list[ListRow]
    # The parameters of the next page; empty on the last one.
    next_position: Mapping[str, str] = field(default_factory=dict)
    total: int | None = None


def read_rows(
    context: ReadContext,
    table: Table,
    state: ListState,
    columns: Sequence[ListColumn],
    *,
    counts: bool = False,
    can_select: bool = False,
) -> RowPage:
    """Read the page with one request to the Table API's pipeline."""
    names = ["sys_id", *([OWN_TABLE_COLUMN] if len(table.family) > 1 else []), *(column.path for column in columns)]
    fields = [name for name in dict.fromkeys(names) if "." in name or context.view.column(table, name)]
    raw = output_parameters(state, fields, "all", sysparm_limit=PAGE_SIZE, sysparm_count="exact" if counts else "")
    for name, value in state.position.items():
        raw[name] = value
    result = pipeline.fetch_list(context, table.name, parse_list(raw))
    records = json.loads(b"[" + b",".join(result.blocks) + b"]")
    formatter = RowFormatter(context, table, state, columns, can_select=can_select)
    return RowPage([formatter.row(record) for record in records], result.next_page, result.total)


def output_parameters(state: ListState, fields: Sequence[str], display: str, **values: str | int) -> Any:
    """The parameters of the Table API that return these fields of what the list shows."""
    return parameters(
        sysparm_query=state.query,
        sysparm_fields=",".join(fields),
        sysparm_display_value=display,
        sysparm_exclude_reference_link="1",
        **values,
    )


class EscapedTexts(dict[str, SafeString]):
    """Escapes each text once. Many cells of a page have equal texts."""

    def __missing__(self, text: str) -> SafeString:
        self[text] = escaped = escape(text)
        return escaped


def link_path(table: Table, columns: Sequence[ListColumn]) -> str:
    """The column whose cells lead to the record: the display column, the number, or the first one."""
    display = table.display_column
    wanted = [*([display.name] if display else []), NUMBER_COLUMN]
    paths = [column.path for column in columns]
    return next((name for name in wanted if name in paths), paths[0] if paths else "")


class RowFormatter:
    """Formats the records of one page."""

    def __init__(
        self,
        context: ReadContext,
        table: Table,
        state: ListState,
        columns: Sequence[ListColumn],
        *,
        can_select: bool = False,
    ) -> None:
        self.view, self.zone = context.view, context.caller.time_zone
        self.table, self.columns, self.can_select = table, columns, can_select
        self.root = reverse("tables")
        # Tells the form from which list it was opened.
        self.list_parameter = f"?list={quote(urlencode({TABLE_NAME: table.name, **state.parameters}))}"
        self.link_path = link_path(table, columns)
        self.escaped = EscapedTexts()
        self.target_roots = [self._target_root(column) for column in columns]

    def _target_root(self, column: ListColumn) -> str:
        name = column.column.reference if column.column.column_type.is_reference else None
        target = self.view.table(name) if name else None
        return f"{self.root}{target.name}/" if target is not None and self.view.can_read(target) else ""

    def row(self, record: Mapping[str, Any]) -> ListRow:
        sys_id = str(record["sys_id"]["value"]) if "sys_id" in record else ""
        template, values, label = self.cells(record, sys_id)
        if self.can_select:
            template, values = SELECT_TEMPLATE + template, [self.escaped[label or sys_id], *values]
        html = format_html(f'<tr data-id="{{id}}">{template}</tr>\n', *values, id=sys_id)
        return ListRow(sys_id, self._record_url(record).format(id=sys_id), html)

    def cells(self, record: Mapping[str, Any], sys_id: str) -> tuple[str, list[SafeString], str]:
        """The template of the cells with `{id}`, its other values, and the text that names the record."""
        pieces, values, label = [], [], ""
        for column, target_root in zip(self.columns, self.target_roots, strict=True):
            field_ = record.get(column.path)
            text = one_line(self._text(column, field_))
            start = '<td class="number">' if column.is_number else "<td>"
            if column.path == self.link_path:
                text = label = text or EMPTY_LABEL
                link = f'<a href="{self._record_url(record)}">{{}}</a>'
                pieces.append(f"{start}{link if sys_id else '{}'}</td>")
            elif target_root and text and field_:
                pieces.append(f'{start}<a href="{target_root}{{}}/">{{}}</a></td>')
                values.append(self.escaped[field_["value"]])
            else:
                pieces.append(f"{start}{{}}</td>")
            values.append(self.escaped[text])
        return "".join(pieces), values, label

    def _text(self, column: ListColumn, field_: Any) -> str:
        if column.is_plain:  # most columns
            text = field_["display_value"] if field_ else None
            if isinstance(text, str):
                return text
        return display_text(column.column, field_, self.zone)

    def _record_url(self, record: Mapping[str, Any]) -> str:
        """The URL with `{id}`, in the record's own table, which may extend that of the list, if the caller sees it."""
        table_id = (record.get(OWN_TABLE_COLUMN) or {}).get("value")
        own_table = self.view.catalogue.tables_by_id.get(table_id or "")
        is_visible = own_table is not None and self.view.table(own_table.name) is not None
        name = own_table.name if own_table and is_visible else self.table.name
        return f"{self.root}{name}/{{id}}/{self.list_parameter}"


def one_line(text: str) -> str:
    """
    >>> one_line(" two\\n lines ")
    'two lines'
    """
    line = " ".join(text[: 4 * MAX_CELL_LENGTH].split()) if "\n" in text or len(text) > MAX_CELL_LENGTH else text
    return f"{line[: MAX_CELL_LENGTH - 1]}…" if len(line) > MAX_CELL_LENGTH else line.strip()
