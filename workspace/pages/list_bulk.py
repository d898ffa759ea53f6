"""Changes or deletes the selected records of a list, each on its own, and shows the result of each."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render

from system.errors import InvalidInput
from tableapi.bulk import bulk_write
from tableapi.bulk.bulk_request import BulkRequest
from tableapi.bulk.bulk_write import RecordOutcome
from tableapi.query.parameters import OutputOptions
from tableapi.write.table_write import write
from tableapi.write.write_request import WriteInput, WriteRequest
from workspace.forms import controls, submitted
from workspace.forms.options import labels_of
from workspace.lists import columns
from workspace.lists.list_state import ListState, parse_state
from workspace.pages.table_page import TablePage

MAX_SELECTED_RECORDS = 500


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
            return redirect(self.state.url())
        return self.respond(table, self.take_step)

    def take_step(self) -> HttpResponse:
        match self.request.POST.get("bulk-step"):
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
        column, text = self.table.columns[name], self.request.POST.get(name, "")
        errors: tuple[str, ...] = ()
        if is_complete:
            try:
                value = submitted.parse_control(self.read_context, column, text)
                return self.write({name: value}, bulk_write.update_records)
            except InvalidInput as error:
                errors = (error.message,)
        control = controls.control_of_text(self.read_context, column, text, errors=errors)
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
        shared = {"table": self.table, "state": self.state, "ids": self.ids}
        return render(self.request, f"workspace/{template}.html", {**shared, **values}, status=status)
