"""Edits one cell of a list in place."""

import json
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.html import format_html

from system.errors import NotFound, PreconditionFailed, ServiceError
from tableapi.catalogue.definitions import OWN_TABLE_COLUMN
from tableapi.query.parameters import OutputOptions, parse_output
from tableapi.read import pipeline
from tableapi.write import update
from tableapi.write.table_write import write
from tableapi.write.write_request import WriteInput
from workspace.forms import controls, submitted
from workspace.forms.display import display_text
from workspace.lists import columns, rows
from workspace.lists.list_state import ListState, parse_state
from workspace.pages.table_page import TablePage


class CellView(TablePage):
    """`/tables/{table}/{sys_id}/cell/{column}/`: the control of a cell; a POST saves its value and returns the cell."""

    column: columns.ListColumn
    sys_id: str

    def get(self, request: HttpRequest, table: str, sys_id: str, column: str) -> HttpResponse:
        return self.respond(table, partial(self.edit, sys_id, column))

    def post(self, request: HttpRequest, table: str, sys_id: str, column: str) -> HttpResponse:
        return self.respond(table, partial(self.save, sys_id, column))

    def edit(self, sys_id: str, column: str) -> HttpResponse:
        self.open_cell(sys_id, column)
        record, version = self.read_record()
        control = controls.control_of_field(self.read_context, self.column.column, record[column], id_prefix="cell-")
        return self.show(control, version)

    def save(self, sys_id: str, column: str) -> HttpResponse:
        self.open_cell(sys_id, column)
        text, version = self.request.POST.get(column, ""), self.request.POST.get("cell-version", "")
        try:
            value = submitted.parse_control(self.read_context, self.column.column, text)
            is_current = (lambda stored: str(stored) == version) if version else None
            change = WriteInput({column: value}, OutputOptions(), is_current=is_current, replaces_json=True)
            write(self.caller, self.table.name, change, partial(update.update, sys_id=sys_id, replaces=False))
        except NotFound:
            raise
        except ServiceError as error:
            return self.refuse(text, error)
        try:
            return HttpResponse(self.cell_html(), headers={"HX-Reswap": "outerHTML"})
        except NotFound:  # with the new value, the record is hidden from the person
            return HttpResponse(headers={"HX-Refresh": "true"})

    def open_cell(self, sys_id: str, column: str) -> None:
        view = self.read_context.view
        if column not in columns.selectable_columns(view, self.table):
            raise NotFound
        (self.column,), self.sys_id = columns.list_columns(view, self.table, [column], "", []), sys_id
        if not self.column.is_editable:
            raise NotFound

    def read_record(self) -> tuple[dict[str, Any], str]:
        """The record with this column, and its version as text; empty if the caller cannot read it."""
        names = [self.column.path, "sys_id", *([OWN_TABLE_COLUMN] if not self.table.is_system else [])]
        raw = rows.output_parameters(ListState(self.table.name), names, "all")
        result = pipeline.fetch_record(self.read_context, self.table, self.sys_id, parse_output(raw))
        return json.loads(result.body), "" if result.version is None else str(result.version)

    def cell_html(self) -> str:
        state = parse_state(self.table.name, QueryDict(self.request.GET.get("list", "")))
        formatter = rows.RowFormatter(self.read_context, self.table, state, [self.column])
        formatter.link_path = self.column.path if self.request.GET.get("link") else ""
        template, values, _ = formatter.cells(self.read_record()[0], self.sys_id)
        return format_html(template, *values, id=self.sys_id)

    def refuse(self, text: str, error: ServiceError) -> HttpResponse:
        """Show the control again with the errors, and for a conflict with the value that somebody else saved."""
        errors = tuple(item.message for item in (error, *error.other_errors))
        column, version, stored = self.column.column, self.request.POST.get("cell-version", ""), ""
        control = controls.control_of_text(self.read_context, column, text, id_prefix="cell-", errors=errors)
        if isinstance(error, PreconditionFailed):
            record, version = self.read_record()
            stored = display_text(column, record[column.name], self.caller.time_zone) or rows.EMPTY_LABEL
        return self.show(control, version, stored, status=error.status)

    def show(self, control: controls.Control, version: str, stored: str = "", status: int = 200) -> HttpResponse:
        values = {"control": control, "version": version, "stored": stored, "url": self.request.get_full_path()}
        return render(self.request, "workspace/list_cell.html", values, status=status)
