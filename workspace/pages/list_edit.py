"""Edits the records of a list: a cell in place, or the selected records, each on its own."""

import json
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render

from system.errors import InvalidInput, NotFound, PreconditionFailed, ServiceError
from tableapi.bulk import bulk_write
from tableapi.bulk.bulk_request import BulkRequest
from tableapi.bulk.bulk_write import RecordOutcome
from tableapi.catalogue.definitions import OWN_TABLE_COLUMN, Table
from tableapi.query.parameters import OutputOptions, parse_output
from tableapi.read import pipeline
from tableapi.read.context import ReadContext
from tableapi.write import update
from tableapi.write.write_request import WriteInput, WriteRequest, write
from workspace.forms import controls
from workspace.forms.display import display_text
from workspace.forms.options import labels_of
from workspace.forms.parameters import output_parameters
from workspace.lists import columns, rows
from workspace.lists.list_state import ListState, parse_state
from workspace.pages.base import TablePage

MAX_SELECTED_RECORDS = 500


class CellView(TablePage):
    """`/tables/{table}/{sys_id}/cell/{column}/`: the control of a cell; a POST saves its value and returns the cell."""

    cell: columns.ListColumn

    def handle(self, context: ReadContext, opened: Table, /, *args: Any, **kwargs: Any) -> HttpResponseBase:
        found = columns.list_columns(context.view, opened, [kwargs["column"]])[:1]
        if [cell.path for cell in found if cell.is_editable] != [kwargs["column"]]:
            raise NotFound
        (self.cell,) = found
        return super().handle(context, opened, *args, **kwargs)

    def get(self, request: HttpRequest, table: str, sys_id: str, column: str) -> HttpResponse:
        record, version = self.read_record(sys_id)
        field = record[column]
        control = controls.control_of_field(self.read_context, self.cell.column, field, id_prefix="cell-")
        return self.show(control, version)

    def post(self, request: HttpRequest, table: str, sys_id: str, column: str) -> HttpResponse:
        text, version = request.POST.get(column, ""), request.POST.get("cell-version", "")
        try:
            value = controls.parse_control(self.read_context, self.cell.column, text)
            is_current = (lambda stored: str(stored) == version) if version else None
            change = WriteInput({column: value}, OutputOptions(), is_current=is_current, replaces_json=True)
            write(self.caller, table, change, partial(update.update, sys_id=sys_id, replaces=False))
        except NotFound:
            raise
        except ServiceError as error:
            return self.refuse(sys_id, text, version, error)
        try:
            record, _ = self.read_record(sys_id)
        except NotFound:  # with the new value, the record is hidden from the person
            return HttpResponse(headers={"HX-Refresh": "true"})
        state = parse_state(table, QueryDict(request.GET.get("list", "")))
        formatter = rows.RowFormatter(self.read_context, self.table, state, [self.cell])
        formatter.link_path = column if request.GET.get("link") else ""
        return HttpResponse(formatter.cells(record), headers={"HX-Reswap": "outerHTML"})

    def read_record(self, sys_id: str) -> tuple[dict[str, Any], str]:
        """The record with this column, and its version as text; empty if the caller cannot read it."""
        output = parse_output(output_parameters([self.cell.path, "sys_id", OWN_TABLE_COLUMN]))
        result = pipeline.fetch_record(self.read_context, self.table, sys_id, output)
        return json.loads(result.body, parse_float=Decimal), "" if result.version is None else str(result.version)

    def refuse(self, sys_id: str, text: str, version: str, error: ServiceError) -> HttpResponse:
        """Show the control again with the errors, and for a conflict with the value that somebody else saved."""
        errors, column, stored = [item.message for item in (error, *error.other_errors)], self.cell.column, ""
        if isinstance(error, PreconditionFailed):
            record, version = self.read_record(sys_id)
            stored = display_text(column, record[column.name], self.caller.time_zone) or rows.EMPTY_LABEL
        control = controls.control_of_text(self.read_context, column, text, id_prefix="cell-", errors=tuple(errors))
        return self.show(control, version, stored, status=error.status)

    def show(self, control: controls.Control, version: str, stored: str = "", status: int = 200) -> HttpResponse:
        values = {"control": control, "version": version, "stored": stored, "url": self.request.get_full_path()}
        return render(self.request, "workspace/list_cell.html", values, status=status)


class BulkPage(TablePage):
    """`/tables/{table}/bulk/`. The steps are POSTs: choose a column, enter its value, write; or confirm, delete.

    The names of the controls contain a hyphen, so that they differ from those of columns.
    """

    state: ListState
    ids: list[str]

    def get(self, request: HttpRequest, table: str) -> HttpResponse:
        return redirect("table-list", table)

    def post(self, request: HttpRequest, table: str) -> HttpResponse:
        self.state = parse_state(table, QueryDict(request.POST.get("list-state", "")))
        self.ids = list(dict.fromkeys(request.POST.getlist("record-id")))
        if not 0 < len(self.ids) <= MAX_SELECTED_RECORDS:
            limit = f"Select at most {MAX_SELECTED_RECORDS} records."
            messages.error(request, limit if self.ids else "Select at least one record.")
            return redirect(self.state.url)
        match request.POST.get("bulk-step"):
            case "delete":
                return self.show("list_bulk_delete")
            case "delete-confirmed":
                return self.write({}, bulk_write.delete_records)
            case step:
                return self.edit(is_complete=step == "write")

    def edit(self, *, is_complete: bool) -> HttpResponse:
        choices = columns.writable_columns(self.read_context.view, self.table)
        name = self.request.POST.get("bulk-column", "")
        if name not in choices:
            return self.show("list_bulk_edit", choices=choices)
        column, text, errors = self.table.columns[name], self.request.POST.get(name, ""), []
        if is_complete:
            try:
                value = controls.parse_control(self.read_context, column, text)
                return self.write({name: value}, bulk_write.update_records)
            except InvalidInput as error:
                errors.append(error.message)
        control = controls.control_of_text(self.read_context, column, text, errors=tuple(errors))
        return self.show("list_bulk_edit", control=control, status=InvalidInput.status if errors else 200)

    def write(
        self, values: dict[str, Any], operation: Callable[[WriteRequest, BulkRequest], list[RecordOutcome]]
    ) -> HttpResponse:
        labels = labels_of(self.read_context, self.table, self.ids)
        request = BulkRequest([{**values, "sys_id": sys_id} for sys_id in self.ids], continues_on_error=True)
        change = WriteInput({}, OutputOptions(), replaces_json=True)
        outcomes = write(self.caller, self.table.name, change, lambda change: operation(change, request))
        results = [
            {"sys_id": sys_id, "label": labels.get(sys_id, sys_id), "error": outcome.error}
            for sys_id, outcome in zip(self.ids, outcomes, strict=True)
        ]
        failed = sum(outcome.error is not None for outcome in outcomes)
        is_deletion = operation is bulk_write.delete_records
        return self.show("list_bulk_result", results=results, failed=failed, is_deletion=is_deletion)

    def show(self, template: str, *, status: int = 200, **values: Any) -> HttpResponse:
        values |= {"table": self.table, "state": self.state, "ids": self.ids}
        return render(self.request, f"workspace/{template}.html", values, status=status)
