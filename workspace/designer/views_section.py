"""The section of the form views: the columns of forms and lists, in order and under headings."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from tableapi.database import catalogue_loader
from tableapi.models import Table, View, ViewColumn
from tableapi.query.path_resolver import RuleScope, resolve_path
from workspace.forms.display import path_label

from .rows import LinesField, RowForm, RowSection
from .section import save_record

HEADING = "#"
Entries = dict[str, str]


def parse_lines(text: str) -> Entries:
    """The section of each path, in order. A line that begins with # is the heading of the lines below it.

    >>> parse_lines("name\\n# Purchase\\nbought_on\\nmaker.name")
    {'name': '', 'bought_on': 'Purchase', 'maker.name': 'Purchase'}
    """
    entries: Entries = {}
    section = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith(HEADING):
            section = line.removeprefix(HEADING).strip()
        else:
            entries.setdefault(line, section)
    return entries


def format_lines(entries: Entries) -> str:
    """
    >>> format_lines({"name": "", "bought_on": "Purchase"})
    'name\\n# Purchase\\nbought_on'
    """
    lines, current = [], ""
    for path, section in entries.items():
        if section != current:
            lines.append(f"{HEADING} {section}".strip())
            current = section
        lines.append(path)
    return "\n".join(lines)


class ViewForm(RowForm):
    name = forms.CharField(
        max_length=100,
        help_text="“form” arranges the form of a record, “list” chooses the columns of lists. “Default” is for both.",
    )
    columns = LinesField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 6, "data-view-columns": ""}),
        help_text="One column per line, in order. Leave empty for all columns. A line such as “# Purchase” is a "
        "heading. Dots follow references, such as maker.name.",
    )

    def __init__(self, *args: Any, table: Table, record: View | None = None, **options: Any) -> None:
        self.stored_columns = {} if record is None else {column.path: column for column in record.columns.all()}
        entries = {path: column.section for path, column in self.stored_columns.items()}
        initial = {} if record is None else {"name": record.name, "columns": format_lines(entries)}
        super().__init__(*args, table=table, record=record, initial=initial, **options)

    @property
    def labels(self) -> str:
        """The labels of stored paths, as JSON."""
        catalogue = catalogue_loader.cached_catalogue()
        table = catalogue.tables.get(self.table.name)
        if table is None:
            return "{}"
        scope, paths = RuleScope(catalogue), self.stored_columns
        found = {path: resolve_path(scope, table, tuple(path.split("."))) for path in paths}
        return json.dumps({path: path_label(resolved) for path, resolved in found.items() if resolved})

    def save_record(self) -> None:
        view = self.record or View(table=self.table)
        if view.name != self.cleaned_data["name"]:
            view.name = self.cleaned_data["name"]
            save_record(view)
        entries = parse_lines(self.cleaned_data["columns"]) or all_columns(self.table)
        for path, column in self.stored_columns.items():
            if path not in entries:
                column.delete()
        for position, (path, section) in enumerate(entries.items()):
            self._save_column(view, path, section, position)

    def _save_column(self, view: View, path: str, section: str, position: int) -> None:
        column = self.stored_columns.get(path) or ViewColumn(view=view, path=path)
        if column.is_new or (column.section, column.position) != (section, position):
            column.section, column.position = section, position
            try:
                save_record(column)
            except ValidationError as error:
                raise ValidationError({"columns": error.messages}) from None


def all_columns(table: Table) -> Entries:
    """The columns of a new view for which none were chosen: those of the parents first."""
    columns = [column for owner in reversed(table.lineage) for column in owner.columns.order_by("sys_id")]
    return {column.name: "" for column in columns}


class ViewsSection(RowSection):
    title, template = "Views", "workspace/designer/views.html"
    prefix, row_form = "views", ViewForm

    def load_records(self) -> Iterable[View]:
        return View.objects.filter(table=self.table).prefetch_related("columns")

    def costs(self) -> Iterator[str]:
        for view in self.records_to_delete:
            yield f"The view “{view.name}” is deleted. Requests that name it are refused."
