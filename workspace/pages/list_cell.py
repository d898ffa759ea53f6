"""Edits one cell of a list in place."""

import json
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render

from system.errors import NotFound, PreconditionFailed, ServiceError
from tableapi.catalogue.definitions import Catalogue, Table
from tableapi.query.parameters import OutputOptions, parse_output
from tableapi.read import pipeline
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller, ReadContext
from tableapi.read.pipeline import RecordResult
from tableapi.write import update
from tableapi.write.table_write import write
from tableapi.write.write_request import WriteInput
from workspace.forms import controls, submitted
from workspace.forms.display import display_text
from workspace.lists import columns, rows
from workspace.lists.columns import ListColumn
from workspace.lists.list_state import ListState, parse_state
from workspace.pages.base import WorkspacePage


class CellView(WorkspacePage):
    """`/tables/{table}/{sys_id}/cell/{column}/`: the control of a cell; a POST saves its value and returns the cell."""

    def get(self, request: HttpRequest, table: str, sys_id: str, column: str) -> HttpResponse:
        context, _, cell_column = self.open_cell(table, column)
        record, version = read_cell(self.caller, table, sys_id, column)
        control = controls.control_of_field(context, cell_column.column, record[column], id_prefix="cell-")
        return self.show(control, version)

    def post(self, request: HttpRequest, table: str, sys_id: str, column: str) -> HttpResponse:
        context, opened, cell_column = self.open_cell(table, column)
        text, version = request.POST.get(column, ""), request.POST.get("cell-version", "")
        try:
            value = submitted.parse_control(context, cell_column.column, text)
            is_current = (lambda stored: str(stored) == version) if version else None
            change = WriteInput({column: value}, OutputOptions(), is_current=is_current, replaces_json=True)
            write(self.caller, table, change, partial(update.update, sys_id=sys_id, replaces=False))
        except ServiceError as error:
            if isinstance(error, NotFound) or error.status >= 500:
                raise
            return self.refuse(context, cell_column, sys_id, text, error)
        record, _ = read_cell(self.caller, table, sys_id, column)
        state = parse_state(table, QueryDict(request.GET.get("list", "")))
        return HttpResponse(
            self.cell_html(context, opened, state, cell_column, record), headers={"HX-Reswap": "outerHTML"}
        )

    def open_cell(self, table: str, column: str) -> tuple[ReadContext, Table, ListColumn]:
        context, opened = self.open_table(table)
        if column not in opened.columns or column not in columns.visible_paths(context.view, opened, [column]):
            raise NotFound
        (cell_column,) = columns.list_columns(context.view, opened, [column], "", [])
        if not cell_column.is_editable:
            raise NotFound
        return context, opened, cell_column

    def cell_html(
        self, context: ReadContext, table: Table, state: ListState, column: ListColumn, record: dict[str, Any]
    ) -> str:
        formatter = rows.RowFormatter(context, table, state, [column])
        formatter.link_path = column.path if self.request.GET.get("link") else ""
        return formatter.row(record).cells

    def refuse(
        self, context: ReadContext, column: ListColumn, sys_id: str, text: str, error: ServiceError
    ) -> HttpResponse:
        """Show the control again with the errors, and for a conflict with the value that somebody else saved."""
        errors = tuple(item.message for item in (error, *error.other_errors))
        control = controls.control_of_text(context, column.column, text, id_prefix="cell-", errors=errors)
        is_conflict = isinstance(error, PreconditionFailed)
        version, stored = self.request.POST.get("cell-version", ""), ""
        if is_conflict:
            record, version = read_cell(self.caller, self.kwargs["table"], sys_id, column.path)
            stored = display_text(column.column, record[column.path], context.caller.time_zone) or "(empty)"
        return self.show(control, version, stored if is_conflict else "", status=error.status)

    def show(self, control: controls.Control, version: str, stored: str = "", status: int = 200) -> HttpResponse:
        values = {"control": control, "version": version, "stored": stored, "url": self.request.get_full_path()}
        return render(self.request, "workspace/list_cell.html", values, status=status)


@on_current_catalogue
def read_record(catalogue: Catalogue, caller: Caller, table: str, sys_id: str, column: str) -> RecordResult:
    context = caller.context(catalogue)
    names = [
        name for name in ("sys_id", "sys_db_table_id") if context.view.column(context.view.open_table(table), name)
    ]
    raw = rows.output_parameters(ListState(table), [column, *names], "all")
    return pipeline.fetch_record(context, context.view.open_table(table), sys_id, parse_output(raw))


def read_cell(caller: Caller, table: str, sys_id: str, column: str) -> tuple[dict[str, Any], str]:
    """The record with this column, and its version as text; empty if the caller cannot read it."""
    result = read_record(caller, table, sys_id, column)
    return json.loads(result.body), "" if result.version is None else str(result.version)
