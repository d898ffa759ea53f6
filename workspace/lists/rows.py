"""Reads one page of a list and formats its rows as HTML, because a template takes several times as long."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from django.urls import reverse
from django.utils.html import escape, format_html

from system.encoded_query import ComparisonKind
from tableapi.catalogue.definitions import NUMBER_COLUMN, OWN_TABLE_COLUMN, Table
from tableapi.read.context import ReadContext
from tableapi.read.list_page import ListResult
from workspace.forms.display import display_text
from workspace.forms.parameters import read_list

from .columns import ListColumn
from .list_state import ListState

PAGE_SIZE = 50
MAX_CELL_LENGTH = 160
EMPTY_LABEL = "(empty)"
# In the link to a record, the table of the list from which it was opened.
TABLE_NAME = "table"
SELECT_CELL = (
    '<td class="select"><input type="checkbox" form="bulk" name="record-id" value="{}" aria-label="Select {}"></td>'
)


def read_page(
    context: ReadContext, table: Table, state: ListState, columns: Iterable[ListColumn], *, counts: bool = False
) -> ListResult:
    names = ["sys_id", *([OWN_TABLE_COLUMN] if len(table.family) > 1 else []), *(column.path for column in columns)]
    count = "exact" if counts else ""
    values: dict[str, str | int] = {"sysparm_query": state.query, "sysparm_limit": PAGE_SIZE, **state.position}
    return read_list(context, table, names, sysparm_count=count, **values)


def link_path(table: Table, columns: Sequence[ListColumn]) -> str:
    """The column whose cells lead to the record: the display column, the number, or the first one."""
    display = table.display_column
    paths = [column.path for column in columns]
    wanted = [*([display.name] if display else []), NUMBER_COLUMN, *paths]
    return next((path for path in wanted if path in paths), "")


def list_parameter(state: ListState) -> str:
    """Tells the form from which list it was opened. It contains no braces, so it can be part of a template."""
    return f"?list={quote(urlencode({TABLE_NAME: state.table, **state.parameters}))}"


class RowFormatter:
    def __init__(self, context: ReadContext, table: Table, state: ListState, columns: Sequence[ListColumn]) -> None:
        self.view, self.zone, self.table = context.view, context.caller.time_zone, table
        self.root = reverse("tables")
        self.list_parameter = list_parameter(state)
        self.link_path = link_path(table, columns)
        self.columns = [
            (column, '<td class="number">' if column.is_number else "<td>", _is_plain(column), self._target_url(column))
            for column in columns
        ]
        self.escaped_line = cache(lambda text: escape(one_line(text)))  # many cells of a page have equal texts

    def _target_url(self, column: ListColumn) -> str:
        target = self.view.table(column.column.reference or "") if column.column.column_type.is_reference else None
        return f"{self.root}{target.name}/" if target is not None and self.view.can_read(target) else ""

    def row(self, record: Mapping[str, Any], *, can_select: bool) -> str:
        template, values, name = self._cells(record)
        sys_id = self.escaped_line(id_of(record))
        if can_select:
            template, values = SELECT_CELL + template, [sys_id, name or sys_id, *values]
        return format_html(f'<tr data-id="{{}}">{template}</tr>\n', sys_id, *values)

    def cells(self, record: Mapping[str, Any]) -> str:
        template, values, _ = self._cells(record)
        return format_html(template, *values)

    def _cells(self, record: Mapping[str, Any]) -> tuple[str, list[str], str]:
        """The template of the cells, and as escaped texts its values and the name of the record."""
        values: list[str] = []
        template = name = ""
        for column, start, is_plain, target_url in self.columns:
            field = record.get(column.path)
            text = field["display_value"] if is_plain and field else None
            if not isinstance(text, str):
                text = display_text(column.column, field, self.zone)
            text = self.escaped_line(text)
            if column.path == self.link_path and "sys_id" in record:
                name = text = text or EMPTY_LABEL
                template += f'{start}<a href="{self.record_url(record, "{}")}">{{}}</a></td>'
                values.append(self.escaped_line(id_of(record)))
            elif target_url and text and field:
                template += f'{start}<a href="{target_url}{{}}/">{{}}</a></td>'
                values.append(self.escaped_line(field["value"]))
            else:
                template += f"{start}{{}}</td>"
            values.append(text)
        return template, values, name

    def record_url(self, record: Mapping[str, Any], sys_id: str) -> str:
        """The URL in the record's own table, which may extend that of the list, if the caller can see it."""
        table_id = (record.get(OWN_TABLE_COLUMN) or {}).get("value")
        own_table = self.view.catalogue.tables_by_id.get(table_id or "")
        is_visible = own_table is not None and self.view.table(own_table.name) is not None
        name = own_table.name if own_table and is_visible else self.table.name
        return f"{self.root}{name}/{sys_id}/{self.list_parameter}"


def id_of(record: Mapping[str, Any]) -> str:
    """The id of a record; empty if the caller cannot read it."""
    return record["sys_id"]["value"] if "sys_id" in record else ""


def _is_plain(column: ListColumn) -> bool:
    """Whether the display value is the text to show."""
    kind = column.column.column_type
    return not (kind.is_html or kind.is_list or kind.is_json or column.column.compare_as is ComparisonKind.DATETIME)


def one_line(text: str) -> str:
    """
    >>> one_line(" two\\n lines ")
    'two lines'
    """
    line = " ".join(text[: 4 * MAX_CELL_LENGTH].split()) if "\n" in text or len(text) > MAX_CELL_LENGTH else text
    return f"{line[: MAX_CELL_LENGTH - 1]}…" if len(line) > MAX_CELL_LENGTH else line.strip()
